"""Usage plans of API Gateway: each key of Turnfold is a key of API Gateway, by its usage key.

Clients never see the usage key: the authorizer hands it to API Gateway, which counts by it.
"""

from typing import Any

from turnfold.adapters.aws_errors import mapped_errors


class UsagePlan:
    """A `UsageMeter` over one usage plan."""

    def __init__(self, client: Any, plan_id: str, prefix: str) -> None:  # noqa: ANN401 - untyped
        """Keys are named by the prefix and the key's id."""
        self._client = client
        self._plan_id = plan_id
        self._prefix = prefix

    def admit(self, key_id: str, usage_key: str) -> None:
        """See `UsageMeter`; a CreateApiKey and a CreateUsagePlanKey."""
        with mapped_errors("admit a key"):
            made = self._client.create_api_key(
                name=self._name(key_id), value=usage_key, enabled=True
            )
            self._client.create_usage_plan_key(
                usagePlanId=self._plan_id, keyId=made["id"], keyType="API_KEY"
            )

    def dismiss(self, key_id: str) -> None:
        """See `UsageMeter`; a GetApiKeys and a DeleteApiKey, which takes it from the plan too."""
        name = self._name(key_id)
        with mapped_errors("dismiss a key"):
            found = self._client.get_api_keys(nameQuery=name)
            for key in found.get("items", []):
                if key["name"] == name:  # the query finds all names that begin like it
                    self._client.delete_api_key(apiKey=key["id"])

    def _name(self, key_id: str) -> str:
        return f"{self._prefix}-{key_id}"
