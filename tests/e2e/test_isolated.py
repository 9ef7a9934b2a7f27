"""The stack with tenants isolated below the code, where the emulator's IAM knows partition keys.

MiniStack 1.5.33 itself does not: see tests/support/ministack_leading_keys.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from e2e.stages import stage
from infra.deployed.emulator import Emulator
from infra.deployed.stack import DeployedStack

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.ministack, pytest.mark.slow, pytest.mark.timeout(400)]

SCRIPT = Path(__file__).resolve().parents[1] / "support" / "ministack_leading_keys.py"
TURN = {
    "messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hello"}]
}


@pytest.fixture(scope="module")
def isolated(
    stack: DeployedStack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DeployedStack]:
    """What was built for the other tests, deployed with `TenantIsolation=on`."""
    with Emulator(tmp_path_factory.mktemp("isolated"), server=SCRIPT) as emulator:
        deployed = DeployedStack(emulator, stack.sam, "isolated")
        with stage("sam deploy, with tenants isolated"):
            deployed.deploy({"TenantIsolation": "on"})
        yield deployed


def test_the_function_has_no_rights_to_data(isolated: DeployedStack) -> None:
    resources = isolated.client("cloudformation").describe_stack_resources(StackName=isolated.name)
    roles = {
        one["LogicalResourceId"]: one["PhysicalResourceId"] for one in resources["StackResources"]
    }
    iam = isolated.client("iam")
    policies = [
        iam.get_role_policy(RoleName=roles["ApiRole"], PolicyName=name)["PolicyDocument"]
        for name in iam.list_role_policies(RoleName=roles["ApiRole"])["PolicyNames"]
    ]
    assert "sts:AssumeRole" in str(policies)
    assert "dynamodb:" not in str(policies)
    assert "s3:" not in str(policies)


@pytest.mark.parametrize("tenant", ["acme", "a b/漢#1"])
def test_each_tenant_is_served_by_credentials_of_its_own(
    isolated: DeployedStack, tenant: str
) -> None:
    headers = {"Authorization": f"Bearer {isolated.new_key(tenant)}"}
    with httpx.Client(base_url=isolated.url, timeout=60, headers=headers) as api:
        assert api.get("/v1/sessions").json()["items"] == []
        for number in (1, 2):
            answer = api.post("/v1/sessions/s1/turns", json=TURN)
            assert answer.status_code == 201, answer.text
            assert answer.json()["turn"] == number
        assert api.get("/v1/sessions/s1/context").json()["watermark"]["committed_through"] == 2
        assert len(api.get("/v1/sessions/s1/transcript").json()["items"]) == 2
        assert [one["turns"] for one in api.get("/v1/sessions").json()["items"]] == [2]
        assert api.delete("/v1/sessions/s1").status_code == 202
