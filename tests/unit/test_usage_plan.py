"""Keys of a usage plan in API Gateway."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from turnfold.adapters.usage_plan import UsagePlan
from turnfold.domain.errors import StoreError


class Gateway:
    """What API Gateway does with keys and plans, as far as it matters here."""

    def __init__(self) -> None:
        self.keys: dict[str, dict[str, Any]] = {}
        self.in_plan: set[str] = set()

    def get_api_keys(self, nameQuery: str) -> dict[str, Any]:  # noqa: N803 - as boto3 calls it
        return {"items": [key for key in self.keys.values() if key["name"].startswith(nameQuery)]}

    def create_api_key(self, **key: Any) -> dict[str, Any]:
        made = {**key, "id": f"id{len(self.keys)}"}
        self.keys[made["id"]] = made
        return made

    def create_usage_plan_key(self, **key: Any) -> None:
        assert key["usagePlanId"] == "plan"
        assert key["keyType"] == "API_KEY"
        if key["keyId"] in self.in_plan:
            raise ClientError({"Error": {"Code": "ConflictException"}}, "CreateUsagePlanKey")
        self.in_plan.add(key["keyId"])

    def delete_api_key(self, apiKey: str) -> None:  # noqa: N803 - the same
        del self.keys[apiKey]
        self.in_plan.discard(apiKey)


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


def test_a_key_is_admitted_once(gateway: Gateway) -> None:
    plan = UsagePlan(gateway, "plan", "turnfold")
    for _ in range(2):
        plan.admit("abc", "usage")
    assert [(key["name"], key["value"]) for key in gateway.keys.values()] == [
        ("turnfold-abc", "usage")
    ]
    assert gateway.in_plan == {"id0"}


def test_only_the_key_itself_is_dismissed(gateway: Gateway) -> None:
    plan = UsagePlan(gateway, "plan", "turnfold")
    plan.admit("abc", "usage")
    plan.admit("abcd", "usage of another")
    plan.dismiss("abc")
    plan.dismiss("abc")
    assert [key["name"] for key in gateway.keys.values()] == ["turnfold-abcd"]


def test_other_errors_are_the_stores(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "CreateUsagePlanKey")

    monkeypatch.setattr(gateway, "create_usage_plan_key", refuse)
    with pytest.raises(StoreError, match="AccessDenied"):
        UsagePlan(gateway, "plan", "turnfold").admit("abc", "usage")
