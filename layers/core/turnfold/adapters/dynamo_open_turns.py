"""Open turns in the table, beside their session and apart from working memory.

The item `DRAFT` names the open turn, counts its pieces and says when it was appended to; each
append adds one piece or, if it is large, several. Pieces of an earlier open turn may still be
there: they carry its id and are passed over.
"""

import json
import time
import zlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from turnfold.adapters.aws_errors import Sleep, mapped_errors
from turnfold.adapters.dynamo_attributes import (
    item_key,
    moment,
    number,
    read_moment,
    read_number,
    read_text,
    text,
)
from turnfold.adapters.dynamo_changes import Operation, closing_operations
from turnfold.adapters.dynamo_items import idempotency_item, read_idempotency
from turnfold.adapters.dynamo_keys import (
    DRAFT,
    META,
    draft_sort_key,
    idempotency_sort_key,
    partition_key,
)
from turnfold.adapters.dynamo_transactions import transact
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.memory import IdempotencyRecord
from turnfold.domain.messages import Message
from turnfold.domain.open_turn import OPEN_MINUTES, OpenTurn, OpenTurnRef
from turnfold.domain.sessions import SessionKey, SessionStatus

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_PIECE_BYTES = 300_000
"""An item may have 400 KB; an append of more is cut."""

TTL_SECONDS = 24 * 3600
"""Items stay some time behind the end of an open turn, whose own time is checked on every read."""


class DynamoOpenTurns:
    """`OpenTurnStore` in DynamoDB."""

    def __init__(
        self, client: "DynamoDBClient", table: str, clock: Clock, sleep: Sleep = time.sleep
    ) -> None:
        """Use that table. The clock tells when an open turn's time is over."""
        self._client = client
        self._table = table
        self._clock = clock
        self._sleep = sleep

    def read_open_turn(
        self, key: SessionKey, key_hash: str | None = None
    ) -> tuple[OpenTurn | None, IdempotencyRecord | None]:
        """See `OpenTurnStore`; a Query, and a GetItem if a record is asked for."""
        record = self._record(key, key_hash) if key_hash else None
        items: list[Mapping[str, Any]] = []
        start: Any = {}
        while True:
            with mapped_errors("read the open turn"):
                answer = self._client.query(
                    TableName=self._table,
                    ConsistentRead=True,
                    KeyConditionExpression="PK = :pk AND begins_with(SK, :draft)",
                    ExpressionAttributeValues={
                        ":pk": text(partition_key(key)),
                        ":draft": text(DRAFT),
                    },
                    **start,
                )
            items += answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return self._open_turn(items), record
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def append_open_turn(
        self,
        key: SessionKey,
        before: OpenTurnRef | None,
        draft_id: str,
        messages: Sequence[Message],
        record: IdempotencyRecord,
    ) -> None:
        """See `OpenTurnStore`; one TransactWriteItems."""
        now = self._clock()
        ref = before or OpenTurnRef(draft_id, 0)
        written = json.dumps(list(messages), ensure_ascii=False, separators=(",", ":"))
        data = zlib.compress(written.encode())
        parts = [data[at : at + MAX_PIECE_BYTES] for at in range(0, len(data), MAX_PIECE_BYTES)]
        ttl = number(int(now.timestamp()) + OPEN_MINUTES * 60 + TTL_SECONDS)
        head = {
            **item_key(key, DRAFT),
            "draft_id": text(ref.draft_id),
            "pieces": number(ref.pieces + len(parts)),
            "updated_at": moment(now),
            "ttl": ttl,
        }
        operations = [
            Operation("ConditionCheck", "session", _absent_or_live(key, self._table)),
            Operation(
                "Put",
                "open_turn",
                {"TableName": self._table, "Item": head} | self._as_it_was(before),
            ),
            Operation("Put", "idempotency", self._new_record(key, record)),
        ]
        for at, part in enumerate(parts, start=1):
            piece = {
                **item_key(key, draft_sort_key(ref.pieces + at)),
                "draft_id": text(ref.draft_id),
                "data": {"B": part},
                "last": {"BOOL": at == len(parts)},
                "ttl": ttl,
            }
            operations.append(Operation("Put", "items", {"TableName": self._table, "Item": piece}))
        self._write(operations)

    def drop_open_turn(self, key: SessionKey, ref: OpenTurnRef) -> None:
        """See `OpenTurnStore`; one TransactWriteItems."""
        self._write(closing_operations(key, ref, self._table))

    def _open_turn(self, items: Sequence[Mapping[str, Any]]) -> OpenTurn | None:
        head = next((item for item in items if item["SK"]["S"] == DRAFT), None)
        if head is None:
            return None
        ref = OpenTurnRef(read_text(head["draft_id"]), read_number(head["pieces"]))
        messages: list[Message] = []
        data = b""
        for item in items:
            if item is head or read_text(item["draft_id"]) != ref.draft_id:
                continue
            data += item["data"]["B"]
            if item["last"]["BOOL"]:
                messages += json.loads(zlib.decompress(data))
                data = b""
        found = OpenTurn(ref, tuple(messages), read_moment(head["updated_at"]))
        return found if found.expires_at > self._clock() else None

    def _record(self, key: SessionKey, key_hash: str) -> IdempotencyRecord | None:
        with mapped_errors("read"):
            answer = self._client.get_item(
                TableName=self._table,
                Key=item_key(key, idempotency_sort_key(key_hash)),
                ConsistentRead=True,
            )
        if "Item" not in answer:
            return None
        record = read_idempotency(answer["Item"])
        return record if record.expires_at > self._clock() else None

    def _as_it_was(self, before: OpenTurnRef | None) -> dict[str, Any]:
        """The condition that nobody else appended meanwhile."""
        if before is None:
            over = self._clock() - timedelta(minutes=OPEN_MINUTES)
            return {
                "ConditionExpression": "attribute_not_exists(PK) OR updated_at <= :over",
                "ExpressionAttributeValues": {":over": moment(over)},
            }
        return {
            "ConditionExpression": "draft_id = :draft AND pieces = :pieces",
            "ExpressionAttributeValues": {
                ":draft": text(before.draft_id),
                ":pieces": number(before.pieces),
            },
        }

    def _new_record(self, key: SessionKey, record: IdempotencyRecord) -> dict[str, Any]:
        return {
            "TableName": self._table,
            "Item": idempotency_item(key, record),
            "ConditionExpression": "attribute_not_exists(PK) OR expires_at <= :now",
            "ExpressionAttributeValues": {":now": moment(self._clock())},
        }

    def _write(self, operations: Sequence[Operation]) -> None:
        writes: Any = [{one.kind: one.request} for one in operations]
        transact(self._client, writes, [one.part for one in operations], self._sleep)


def _absent_or_live(key: SessionKey, table: str) -> dict[str, Any]:
    return {
        "TableName": table,
        "Key": item_key(key, META),
        "ConditionExpression": "attribute_not_exists(PK) OR #status <> :erasing",
        "ExpressionAttributeNames": {"#status": "status"},
        "ExpressionAttributeValues": {":erasing": text(SessionStatus.ERASING)},
    }
