"""Lists of messages in DynamoDB, for the library's windows and managers.

A list is one compressed text. It lies in pieces, because an item may have 400 KB; the item `LIST`
of a partition names the version and the number of the others. They are written before that item
names them, and old ones are removed afterwards, so a reader sees the old list or the new one and
never a mixture.

    PK  W#<tenant>#<hash of the id>
    SK  LIST, PIECE#<version>#<number>
"""

import hashlib
import json
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from turnfold.adapters.aws_errors import mapped_errors
from turnfold.adapters.dynamo_keys import escape
from turnfold.domain.errors import StoreUnavailableError
from turnfold.domain.memory_ids import check_memory_id
from turnfold.domain.messages import Message

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PIECE_BYTES = 380_000
"""An item may have 400 KB, names and key included."""

READ_ATTEMPTS = 5
"""Another writer may remove the pieces that were just named; then the list is read anew."""

_LIST = "LIST"


class DynamoMessages:
    """A `MessageStore` in a table with the keys `PK` and `SK`. The last of several writers wins.

    All methods raise `ThrottledError`, `StoreUnavailableError`, or `StoreError` for good.
    """

    def __init__(self, client: "DynamoDBClient", table: str, tenant: str = "library") -> None:
        """Use that table. Lists of different tenants are apart."""
        self._client = client
        self._table = table
        self._tenant = tenant

    def get_messages(self, memory_id: str) -> list[Message]:
        """See `MessageStore`; one GetItem for the list, and one for each further 380 KB."""
        partition = self._partition(memory_id)
        for _ in range(READ_ATTEMPTS):
            head = self._get(partition, _LIST)
            if head is None:
                return []
            body = self._body(partition, head)
            if body is not None:
                messages: list[Message] = json.loads(zlib.decompress(body))
                return messages
        raise StoreUnavailableError("get: other writers were faster")

    def update_messages(self, memory_id: str, messages: Sequence[Message]) -> None:
        """See `MessageStore`."""
        partition = self._partition(memory_id)
        body = zlib.compress(json.dumps(list(messages), default=dict).encode())
        first, *rest = [
            body[at : at + PIECE_BYTES] for at in range(0, max(1, len(body)), PIECE_BYTES)
        ]
        version = uuid.uuid4().hex
        for number, piece in enumerate(rest):
            self._put({"PK": {"S": partition}, "SK": _piece(version, number), "body": {"B": piece}})
        old = self._put(
            {
                "PK": {"S": partition},
                "SK": {"S": _LIST},
                "version": {"S": version},
                "pieces": {"N": str(len(rest))},
                "body": {"B": first},
            }
        )
        self._remove(partition, _pieces_of(old))

    def delete_messages(self, memory_id: str) -> None:
        """See `MessageStore`."""
        partition = self._partition(memory_id)
        with mapped_errors("DeleteItem"):
            answer = self._client.delete_item(
                TableName=self._table,
                Key={"PK": {"S": partition}, "SK": {"S": _LIST}},
                ReturnValues="ALL_OLD",
            )
        self._remove(partition, _pieces_of(answer.get("Attributes")))

    def _body(self, partition: str, head: Mapping[str, Any]) -> bytes | None:
        """The whole text; None if a piece is gone."""
        body: bytes = head["body"]["B"]
        for sort_key in _pieces_of(head):
            piece = self._get(partition, sort_key["S"])
            if piece is None:
                return None
            body += piece["body"]["B"]
        return body

    def _get(self, partition: str, sort_key: str) -> Mapping[str, Any] | None:
        with mapped_errors("GetItem"):
            answer = self._client.get_item(
                TableName=self._table,
                Key={"PK": {"S": partition}, "SK": {"S": sort_key}},
                ConsistentRead=True,
            )
        return answer.get("Item")

    def _put(self, item: Mapping[str, Any]) -> Mapping[str, Any] | None:
        with mapped_errors("PutItem"):
            answer = self._client.put_item(TableName=self._table, Item=item, ReturnValues="ALL_OLD")
        return answer.get("Attributes")

    def _remove(self, partition: str, sort_keys: Iterator[dict[str, str]]) -> None:
        for sort_key in sort_keys:
            with mapped_errors("DeleteItem"):
                self._client.delete_item(
                    TableName=self._table, Key={"PK": {"S": partition}, "SK": {"S": sort_key["S"]}}
                )

    def _partition(self, memory_id: str) -> str:
        digest = hashlib.sha256(
            check_memory_id(memory_id).encode("utf-8", "surrogatepass")
        ).hexdigest()
        return f"W#{escape(self._tenant)}#{digest}"


def _piece(version: str, number: int) -> dict[str, str]:
    return {"S": f"PIECE#{version}#{number:06d}"}


def _pieces_of(head: Mapping[str, Any] | None) -> Iterator[dict[str, str]]:
    """The sort keys of the pieces that a list's item names."""
    if head:
        for number in range(int(head["pieces"]["N"])):
            yield _piece(head["version"]["S"], number)
