"""Usage plans of API Gateway: each key of Turnfold is a key of API Gateway, by its usage key.

Clients never see the usage key: the authorizer hands it to API Gateway, which counts by it.
"""

from typing import Any

from botocore.exceptions import ClientError

from turnfold.adapters.aws_errors import error_codes, mapped_errors

_THERE_ALREADY = "ConflictException"


class UsagePlan:
    """A `UsageMeter` over one usage plan."""

    def __init__(self, client: Any, plan_id: str, prefix: str) -> None:  # noqa: ANN401 - untyped
        """Keys are named by the prefix and the key's id."""
        self._client = client
        self._plan_id = plan_id
        self._prefix = prefix

    def admit(self, key_id: str, usage_key: str) -> None:
        """See `UsageMeter`; a GetApiKeys, a CreateApiKey and a CreateUsagePlanKey."""
        name = self._name(key_id)
        with mapped_errors("admit a key"):
            found = self._ids(name)
            if not found:
                made = self._client.create_api_key(name=name, value=usage_key, enabled=True)
                found = [made["id"]]
            try:
                self._client.create_usage_plan_key(
                    usagePlanId=self._plan_id, keyId=found[0], keyType="API_KEY"
                )
            except ClientError as error:
                if _THERE_ALREADY not in error_codes(error):
                    raise

    def dismiss(self, key_id: str) -> None:
        """See `UsageMeter`; a GetApiKeys and a DeleteApiKey, which takes it from the plan too."""
        with mapped_errors("dismiss a key"):
            for found in self._ids(self._name(key_id)):
                self._client.delete_api_key(apiKey=found)

    def _ids(self, name: str) -> list[str]:
        """Ids of API Gateway's keys of that very name; the query finds all that begin like it."""
        found = self._client.get_api_keys(nameQuery=name)
        return [key["id"] for key in found.get("items", []) if key["name"] == name]

    def _name(self, key_id: str) -> str:
        return f"{self._prefix}-{key_id}"
