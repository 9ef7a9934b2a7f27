"""Erasures in the table: tombstones, receipts, and removing a session's items.

For two days a hash of the session's key (or of the user id) leads to the receipt, so that a
repeated DELETE can be answered; nothing else of what was erased is kept.
"""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from turnfold.adapters.aws_errors import Sleep, mapped_errors
from turnfold.adapters.dynamo_attributes import (
    Item,
    expiry,
    flag,
    item_key,
    moment,
    number,
    read_moment,
    read_text,
    text,
)
from turnfold.adapters.dynamo_keys import (
    DUE_ERASURES,
    META,
    VECTOR,
    due_shard,
    erased_session_partition,
    erased_user_partition,
    erasure_of,
    erasure_partition,
    partition_key,
    shard_of,
)
from turnfold.adapters.dynamo_receipts import read_receipt, receipt_item, receipt_key
from turnfold.adapters.dynamo_transactions import transact
from turnfold.application.ports.clock import Clock
from turnfold.domain.erasures import Erasure, ErasureStatus, Removed
from turnfold.domain.errors import GuardFailedError
from turnfold.domain.limits import ERASURE_ANSWER_SECONDS
from turnfold.domain.sessions import Session, SessionKey, SessionStatus

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

BATCH_ITEMS = 95
"""Items removed by one transaction of 100 operations, beside the session and the receipt."""


class DynamoErasures:
    """`Erasures` over the table of `DynamoMemoryStore`."""

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        clock: Clock,
        sleep: Sleep = time.sleep,
    ) -> None:
        """Use that table. The clock tells when pointers expire; `sleep` waits between attempts."""
        self._client = client
        self._table = table
        self._clock = clock
        self._sleep = sleep

    def begin(self, erasure: Erasure, session: Session) -> None:
        """See `Erasures`; one TransactWriteItems."""
        mark = {
            "TableName": self._table,
            "Key": item_key(session.key, META),
            "ConditionExpression": (
                "#epoch = :epoch AND #status <> :erasing"
                " AND (attribute_not_exists(legal_hold) OR legal_hold = :no)"
            ),
            "UpdateExpression": (
                "SET #status = :erasing, erasure_id = :id, erasing_since = :now, due_at = :now,"
                " due_shard = :shard ADD revision :one"
            ),
            "ExpressionAttributeNames": {"#epoch": "epoch", "#status": "status"},
            "ExpressionAttributeValues": {
                ":epoch": text(session.epoch),
                ":erasing": text(SessionStatus.ERASING),
                ":no": flag(False),  # noqa: FBT003 - it is the value
                ":id": text(erasure.erasure_id),
                ":now": moment(self._clock()),
                ":shard": text(due_shard(shard_of(session.key))),
                ":one": number(1),
            },
        }
        if erasure.user_id is None:
            receipt = self._put(receipt_item(erasure), "attribute_not_exists(PK)")
        else:
            receipt = self._update(
                erasure, "ADD open_sessions :one", "#status = :erasing", {":one": number(1)}
            )
        self._transact([{"Update": mark}, receipt], ["session", "erasure"])

    def begin_user(self, erasure: Erasure) -> None:
        """See `Erasures`; one TransactWriteItems."""
        user_id = erasure.user_id or ""
        known = self.of_user(erasure.tenant, user_id)
        before = self.get(erasure.tenant, known) if known else None
        if before is not None and before.status is ErasureStatus.ERASING:
            raise GuardFailedError("erasure")
        pointer = self._pointer(erased_user_partition(erasure.tenant, user_id), erasure.erasure_id)
        if known is None:
            condition = {
                "ConditionExpression": "attribute_not_exists(PK) OR expires_at <= :now",
                "ExpressionAttributeValues": {":now": moment(self._clock())},
            }
        else:
            condition = {
                "ConditionExpression": "erasure_id = :known",
                "ExpressionAttributeValues": {":known": text(known)},
            }
        pointer["Put"] |= condition
        receipt = self._put(receipt_item(erasure), "attribute_not_exists(PK)")
        self._transact([pointer, receipt], ["erasure", "erasure"])

    def get(self, tenant: str, erasure_id: str) -> Erasure | None:
        """See `Erasures`; one GetItem."""
        item = self._get(erasure_partition(tenant, erasure_id))
        return None if item is None else read_receipt(tenant, erasure_id, item)

    def of_session(self, key: SessionKey) -> str | None:
        """See `Erasures`; one GetItem."""
        return self._led_to(erased_session_partition(key))

    def of_user(self, tenant: str, user_id: str) -> str | None:
        """See `Erasures`; one GetItem."""
        return self._led_to(erased_user_partition(tenant, user_id))

    def remove_items(self, session: Session) -> int:
        """See `Erasures`; one Query and one TransactWriteItems."""
        with mapped_errors("list items"):
            answer = self._client.query(
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="PK = :pk",
                ExpressionAttributeValues={":pk": text(partition_key(session.key))},
                ProjectionExpression="SK",
                Limit=BATCH_ITEMS + 1,
            )
        found = [item["SK"]["S"] for item in answer["Items"] if item["SK"]["S"] != META]
        sort_keys = found[:BATCH_ITEMS]
        if not sort_keys:
            return 0
        deletes: list[Any] = [
            {"Delete": {"TableName": self._table, "Key": item_key(session.key, sort_key)}}
            for sort_key in sort_keys
        ]
        vectors = sum(sort_key.startswith(VECTOR) for sort_key in sort_keys)
        counts = {"items": len(sort_keys), "vectors": vectors}
        self._transact(
            [self._check(session), self._count(session, counts), *deletes],
            ["session", "erasure", *(["items"] * len(deletes))],
        )
        return len(sort_keys)

    def note_objects(self, session: Session, removed: Removed) -> None:
        """See `Erasures`; one TransactWriteItems."""
        counts = {
            "objects": removed.objects,
            "versions": removed.versions,
            "vectors": removed.vectors,
        }
        count = self._count(session, counts)
        self._transact([self._check(session), count], ["session", "erasure"])

    def finish(self, session: Session, erasure: Erasure, now: datetime) -> None:
        """See `Erasures`; one TransactWriteItems."""
        update = "ADD #items :one, open_sessions :less"
        values = {":one": number(1), ":less": number(-1)}
        if erasure.user_id is None:
            update = f"SET #status = :erased, finished_at = :now {update}"
            values |= {":erased": text(ErasureStatus.ERASED), ":now": moment(now)}
        guards, names, given = _still_erasing(session)
        gone = {
            "TableName": self._table,
            "Key": item_key(session.key, META),
            "ConditionExpression": guards,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": given,
        }
        pointer = self._pointer(erased_session_partition(session.key), erasure.erasure_id)
        receipt = self._update(erasure, update, "#status = :erasing", values)
        receipt["Update"]["ExpressionAttributeNames"]["#items"] = "items"
        self._transact([{"Delete": gone}, receipt, pointer], ["session", "erasure", "items"])

    def mark_listed(self, erasure: Erasure, due_at: datetime | None, *, listed: bool) -> None:
        """See `Erasures`; one UpdateItem."""
        values = {":listed": flag(listed)}
        if due_at is None:
            update = "SET listed = :listed REMOVE due_at, due_shard"
        else:
            update = "SET listed = :listed, due_at = :due, due_shard = :shard"
            values |= {":due": moment(due_at), ":shard": text(DUE_ERASURES)}
        self._transact([self._update(erasure, update, "#status = :erasing", values)], ["erasure"])

    def close_user(self, erasure: Erasure, now: datetime) -> bool:
        """See `Erasures`; one UpdateItem."""
        condition = "#status = :erasing AND listed = :yes AND open_sessions = :none"
        values = {
            ":erased": text(ErasureStatus.ERASED),
            ":now": moment(now),
            ":yes": flag(True),  # noqa: FBT003 - it is the value
            ":none": number(0),
        }
        update = "SET #status = :erased, finished_at = :now REMOVE user_id, due_at, due_shard"
        try:
            self._transact([self._update(erasure, update, condition, values)], ["erasure"])
        except GuardFailedError:
            return False
        return True

    def due_users(self, now: datetime, limit: int) -> Sequence[tuple[str, str]]:
        """See `Erasures`; one Query."""
        with mapped_errors("list due erasures"):
            answer = self._client.query(
                TableName=self._table,
                IndexName="due",
                KeyConditionExpression="due_shard = :shard AND due_at <= :now",
                ExpressionAttributeValues={":shard": text(DUE_ERASURES), ":now": moment(now)},
                Limit=limit,
            )
        return [erasure_of(entry["PK"]["S"]) for entry in answer["Items"]]

    def _check(self, session: Session) -> dict[str, Any]:
        guards, names, values = _still_erasing(session)
        return {
            "ConditionCheck": {
                "TableName": self._table,
                "Key": item_key(session.key, META),
                "ConditionExpression": guards,
                "ExpressionAttributeNames": names,
                "ExpressionAttributeValues": values,
            }
        }

    def _count(self, session: Session, counts: dict[str, int]) -> dict[str, Any]:
        added = ", ".join(f"#{name} :{name}" for name in counts)
        return {
            "Update": {
                "TableName": self._table,
                "Key": receipt_key(erasure_partition(session.key.tenant, session.erasure_id or "")),
                "ConditionExpression": "attribute_exists(PK)",
                "UpdateExpression": f"ADD {added}",
                "ExpressionAttributeNames": {f"#{name}": name for name in counts},
                "ExpressionAttributeValues": {
                    f":{name}": number(value) for name, value in counts.items()
                },
            }
        }

    def _update(
        self, erasure: Erasure, update: str, condition: str, values: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self._table,
                "Key": receipt_key(erasure_partition(erasure.tenant, erasure.erasure_id)),
                "ConditionExpression": condition,
                "UpdateExpression": update,
                "ExpressionAttributeNames": {"#status": "status"},
                "ExpressionAttributeValues": {
                    ":erasing": text(ErasureStatus.ERASING),
                    **values,
                },
            }
        }

    def _put(self, item: Item, condition: str) -> dict[str, Any]:
        return {
            "Put": {"TableName": self._table, "Item": item, "ConditionExpression": condition},
        }

    def _pointer(self, partition: str, erasure_id: str) -> dict[str, Any]:
        expires_at = self._clock() + timedelta(seconds=ERASURE_ANSWER_SECONDS)
        item = receipt_key(partition) | {"erasure_id": text(erasure_id), **expiry(expires_at)}
        return {"Put": {"TableName": self._table, "Item": item}}

    def _led_to(self, partition: str) -> str | None:
        item = self._get(partition)
        if item is None or read_moment(item["expires_at"]) <= self._clock():
            return None
        return read_text(item["erasure_id"])

    def _get(self, partition: str) -> dict[str, Any] | None:
        with mapped_errors("read"):
            answer = self._client.get_item(
                TableName=self._table, Key=receipt_key(partition), ConsistentRead=True
            )
        return answer.get("Item")

    def _transact(self, writes: list[Any], parts: Sequence[str]) -> None:
        transact(self._client, writes, parts, self._sleep)


def _still_erasing(session: Session) -> tuple[str, dict[str, str], dict[str, Any]]:
    condition = "#epoch = :epoch AND #status = :erasing AND erasure_id = :erasure"
    values = {
        ":epoch": text(session.epoch),
        ":erasing": text(SessionStatus.ERASING),
        ":erasure": text(session.erasure_id or ""),
    }
    return condition, {"#epoch": "epoch", "#status": "status"}, values
