"""API keys in a DynamoDB table of their own, one item a key.

The table's key is `key_id`. Times are texts, `scopes` is a set of texts, `verifier` is binary.
`name`, `expires_at`, `revoked_at` and `last_used_at` are there only where they say something.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from turnfold.adapters.aws_errors import guarded_write, mapped_errors
from turnfold.domain.api_keys import ApiKey
from turnfold.domain.errors import GuardFailedError
from turnfold.domain.transcript import format_time, parse_time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_PART = "key"


class DynamoKeyStore:
    """A `KeyStore` over one table."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        """Use that table."""
        self._client = client
        self._table = table

    def get(self, key_id: str) -> ApiKey | None:
        """See `KeyStore`; one GetItem."""
        with mapped_errors("read a key"):
            answer = self._client.get_item(
                TableName=self._table, Key={"key_id": {"S": key_id}}, ConsistentRead=True
            )
        item = answer.get("Item")
        return None if item is None else _read_item(item)

    def add(self, key: ApiKey) -> None:
        """See `KeyStore`; one PutItem."""
        guarded_write(
            lambda _token: self._client.put_item(
                TableName=self._table,
                Item=_write_item(key),
                ConditionExpression="attribute_not_exists(key_id)",
            ),
            [_PART],
        )

    def list_keys(self, tenant: str | None) -> tuple[ApiKey, ...]:
        """See `KeyStore`; a Scan. Only operators list keys, and a thousand are a page or two."""
        chosen: Any = {}
        if tenant is not None:
            chosen = {
                "FilterExpression": "tenant = :tenant",
                "ExpressionAttributeValues": {":tenant": {"S": tenant}},
            }
        keys: list[ApiKey] = []
        start: Any = {}
        while True:
            with mapped_errors("list keys"):
                answer = self._client.scan(
                    TableName=self._table, ConsistentRead=True, **chosen, **start
                )
            keys += map(_read_item, answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return tuple(sorted(keys, key=lambda key: (key.created_at, key.key_id)))
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def revoke(self, key_id: str, at: datetime) -> bool:
        """See `KeyStore`; one UpdateItem."""
        try:
            guarded_write(
                lambda _token: self._client.update_item(
                    TableName=self._table,
                    Key={"key_id": {"S": key_id}},
                    ConditionExpression="attribute_exists(key_id)",
                    UpdateExpression="SET revoked_at = if_not_exists(revoked_at, :at)",
                    ExpressionAttributeValues={":at": {"S": format_time(at)}},
                ),
                [_PART],
            )
        except GuardFailedError:
            return False
        return True

    def note_use(self, used: ApiKey, at: datetime, verifier: bytes, pepper_id: str) -> None:
        """See `KeyStore`; one UpdateItem."""
        try:
            guarded_write(
                lambda _token: self._client.update_item(
                    TableName=self._table,
                    Key={"key_id": {"S": used.key_id}},
                    ConditionExpression="verifier = :before AND attribute_not_exists(revoked_at)",
                    UpdateExpression=(
                        "SET last_used_at = :at, verifier = :verifier, pepper_id = :pepper"
                    ),
                    ExpressionAttributeValues={
                        ":before": {"B": used.verifier},
                        ":at": {"S": format_time(at)},
                        ":verifier": {"B": verifier},
                        ":pepper": {"S": pepper_id},
                    },
                ),
                [_PART],
            )
        except GuardFailedError:
            return


def _write_item(key: ApiKey) -> dict[str, Any]:
    item: dict[str, Any] = {
        "key_id": {"S": key.key_id},
        "tenant": {"S": key.tenant},
        "scopes": {"SS": sorted(key.scopes)},
        "verifier": {"B": key.verifier},
        "pepper_id": {"S": key.pepper_id},
        "usage_key": {"S": key.usage_key},
        "created_at": {"S": format_time(key.created_at)},
    }
    for name in ("expires_at", "revoked_at", "last_used_at"):
        moment = getattr(key, name)
        if moment is not None:
            item[name] = {"S": format_time(moment)}
    if key.name:
        item["name"] = {"S": key.name}
    return item


def _read_item(item: Mapping[str, Any]) -> ApiKey:
    def moment(name: str) -> datetime | None:
        return parse_time(item[name]["S"]) if name in item else None

    return ApiKey(
        key_id=item["key_id"]["S"],
        tenant=item["tenant"]["S"],
        scopes=frozenset(item["scopes"]["SS"]),
        verifier=bytes(item["verifier"]["B"]),
        pepper_id=item["pepper_id"]["S"],
        usage_key=item["usage_key"]["S"],
        created_at=parse_time(item["created_at"]["S"]),
        name=item["name"]["S"] if "name" in item else "",
        expires_at=moment("expires_at"),
        revoked_at=moment("revoked_at"),
        last_used_at=moment("last_used_at"),
    )
