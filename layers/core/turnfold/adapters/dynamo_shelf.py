"""Putting working memory out of the table and back, as guarded transactions."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from turnfold.adapters.aws_errors import Sleep, guarded_write, mapped_errors
from turnfold.adapters.dynamo_attributes import Item, item_key, number, text
from turnfold.adapters.dynamo_items import pin_item, summary_item, turn_item
from turnfold.adapters.dynamo_keys import (
    META,
    PROFILE,
    WORKING_MEMORY,
    partition_key,
    pin_sort_key,
    summary_sort_key,
    turn_sort_key,
)
from turnfold.adapters.dynamo_sessions import profile_item, session_attributes
from turnfold.adapters.dynamo_transactions import transact
from turnfold.domain.sessions import Session, SessionStatus
from turnfold.domain.snapshots import Snapshot

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

BATCH_ITEMS = 95
"""Items removed by one transaction, beside the check of the session."""


class DynamoShelf:
    """`Shelf` over the table of `DynamoMemoryStore`."""

    def __init__(self, client: "DynamoDBClient", table: str, sleep: Sleep = time.sleep) -> None:
        """Use that table; `sleep` waits between attempts."""
        self._client = client
        self._table = table
        self._sleep = sleep

    def put_away(
        self,
        session: Session,
        snapshot: str,
        due_at: datetime,
        sets: Mapping[str, Any] | None = None,
    ) -> None:
        """See `Shelf`; one UpdateItem."""
        condition = "#status = :was AND #epoch = :epoch AND #revision = :revision"
        values = {
            ":was": text(SessionStatus.LIVE),
            ":epoch": text(session.epoch),
            ":revision": number(session.revision),
        }
        changes = {
            "status": SessionStatus.EXPIRED,
            "snapshot": snapshot,
            "due_at": due_at,
            **(sets or {}),
        }
        self._update(session, condition, values, changes)

    def open(
        self, session: Session, snapshot: str, due_at: datetime, sets: Mapping[str, Any]
    ) -> None:
        """See `Shelf`; one UpdateItem."""
        condition = "#status = :was AND #epoch = :epoch"
        values = {":was": text(session.status), ":epoch": text(session.epoch)}
        changes = {
            **sets,
            "status": SessionStatus.EXPIRED,
            "snapshot": snapshot,
            "due_at": due_at,
        }
        self._update(session, condition, values, changes)

    def give_up(self, session: Session, due_at: datetime) -> None:
        """See `Shelf`; one UpdateItem."""
        condition, values = _guard(session, session.status)
        changes = {"status": SessionStatus.REBUILDING, "rebuild": True, "due_at": due_at}
        self._update(session, condition, values, changes)

    def clear(self, session: Session, keep: Snapshot | None = None) -> int:
        """See `Shelf`; a Query, and a TransactWriteItems if there is something to remove."""
        kept = {META} if keep is None else {META, PROFILE, *_sort_keys(keep)}
        wanted = [one for one in self._sort_keys(session) if one not in kept][:BATCH_ITEMS]
        if not wanted:
            return 0
        status = SessionStatus.EXPIRED if keep is None else SessionStatus.RESTORING
        deletes = [
            {"Delete": {"TableName": self._table, "Key": item_key(session.key, sort_key)}}
            for sort_key in wanted
        ]
        self._transact(session, status, deletes)
        return len(wanted)

    def rest(self, session: Session) -> None:
        """See `Shelf`; one UpdateItem."""
        condition, values = _guard(session, SessionStatus.EXPIRED)
        self._update(session, condition, values, {"due_at": None})

    def begin_restore(self, session: Session) -> None:
        """See `Shelf`; one UpdateItem."""
        condition, values = _guard(session, SessionStatus.EXPIRED)
        self._update(session, condition, values, {"status": SessionStatus.RESTORING})

    def fill(self, session: Session, part: Snapshot) -> None:
        """See `Shelf`; one TransactWriteItems."""
        items = [
            profile_item(session.key, part.profile, part.profile_rev),
            *(turn_item(session.key, turn) for turn in part.turns),
            *(summary_item(session.key, summary) for summary in part.summaries),
            *(pin_item(session.key, pin) for pin in part.pins),
        ]
        puts = [{"Put": {"TableName": self._table, "Item": item}} for item in items]
        self._transact(session, SessionStatus.RESTORING, puts)

    def finish_restore(self, session: Session, now: datetime, due_at: datetime) -> None:
        """See `Shelf`; one UpdateItem."""
        condition, values = _guard(session, SessionStatus.RESTORING)
        changes = {
            "status": SessionStatus.LIVE,
            "snapshot": None,
            "restored_at": now,
            "due_at": due_at,
            "sweeps": 0,
        }
        self._update(session, condition, values, changes)

    def _sort_keys(self, session: Session) -> list[str]:
        first, last = WORKING_MEMORY
        request: Any = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "PK = :pk AND SK BETWEEN :first AND :last",
            "ExpressionAttributeValues": {
                ":pk": text(partition_key(session.key)),
                ":first": text(first),
                ":last": text(last),
            },
            "ProjectionExpression": "SK",
        }
        found: list[str] = []
        with mapped_errors("list items"):
            while True:
                answer = self._client.query(**request)
                found += [item["SK"]["S"] for item in answer["Items"]]
                if "LastEvaluatedKey" not in answer:
                    return found
                request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _update(
        self,
        session: Session,
        condition: str,
        values: Mapping[str, Any],
        changes: Mapping[str, Any],
    ) -> None:
        attributes = session_attributes(session.key, changes)
        names = {"#status": "status", "#epoch": "epoch"} | {f"#{name}": name for name in attributes}
        if "#revision" in condition:
            names["#revision"] = "revision"
        if "#snapshot" in condition:
            names["#snapshot"] = "snapshot"
        sets = [f"#{name} = :to_{name}" for name, value in attributes.items() if value is not None]
        removes = [f"#{name}" for name, value in attributes.items() if value is None]
        clauses = [f"SET {', '.join(sets)}"] if sets else []
        clauses += [f"REMOVE {', '.join(removes)}"] if removes else []
        request: Any = {
            "TableName": self._table,
            "Key": item_key(session.key, META),
            "ConditionExpression": condition,
            "UpdateExpression": " ".join(clauses),
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {
                **values,
                **{f":to_{name}": one for name, one in attributes.items() if one is not None},
            },
        }
        guarded_write(lambda _token: self._client.update_item(**request), ["session"], self._sleep)

    def _transact(
        self, session: Session, status: SessionStatus, writes: Sequence[Mapping[str, Any]]
    ) -> None:
        condition, values = _guard(session, status)
        check = {
            "ConditionCheck": {
                "TableName": self._table,
                "Key": item_key(session.key, META),
                "ConditionExpression": condition,
                "ExpressionAttributeNames": {
                    "#status": "status",
                    "#epoch": "epoch",
                    "#snapshot": "snapshot",
                },
                "ExpressionAttributeValues": values,
            }
        }
        items: Any = [check, *writes]
        transact(self._client, items, ["session", *(["items"] * len(writes))], self._sleep)


def _guard(session: Session, status: SessionStatus) -> tuple[str, Item]:
    condition = "#status = :was AND #epoch = :epoch AND #snapshot = :snapshot"
    values = {
        ":was": text(status),
        ":epoch": text(session.epoch),
        ":snapshot": text(session.snapshot or ""),
    }
    return condition, values


def _sort_keys(snapshot: Snapshot) -> set[str]:
    return {
        *(turn_sort_key(turn.number) for turn in snapshot.turns),
        *(summary_sort_key(summary.ref) for summary in snapshot.summaries),
        *(pin_sort_key(pin.pin_id) for pin in snapshot.pins),
    }
