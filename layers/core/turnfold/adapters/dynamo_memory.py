"""Working memory in one DynamoDB table (design, section 5).

Calls and their cost do not depend on a session's length: a session is read by one BatchGetItem,
working memory by one Query, and a change is one TransactWriteItems (one UpdateItem, at half the
price, if it changes nothing but the session itself).
"""

import random
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from turnfold.adapters.aws_errors import Sleep, guarded_write, mapped_errors
from turnfold.adapters.change_rules import check_change
from turnfold.adapters.dynamo_attributes import Item, item_key, moment, text
from turnfold.adapters.dynamo_changes import live_check, operations_of
from turnfold.adapters.dynamo_items import (
    ArchivedTurn,
    answer_item,
    read_answer,
    read_idempotency,
    read_memory,
    read_pin,
    read_turn,
    read_usage,
    usage_update,
)
from turnfold.adapters.dynamo_keys import (
    FORMER_PIN,
    META,
    USAGE,
    WITHOUT_TURNS,
    WORKING_MEMORY,
    answer_sort_key,
    due_shard,
    former_pin_sort_key,
    idempotency_sort_key,
    partition_key,
    pin_sort_key,
    position_of,
    read_position,
    session_of,
    shard_of,
    tenant_key,
    turn_sort_key,
    user_key,
)
from turnfold.adapters.dynamo_sessions import read_session
from turnfold.adapters.dynamo_transactions import transact
from turnfold.adapters.large_turns import LargeTurns
from turnfold.application.ports.archive import Archive
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.memory import Change, IdempotencyRecord, Page
from turnfold.application.ports.models import ModelAnswer
from turnfold.domain.errors import GuardFailedError, StoreUnavailableError, ThrottledError
from turnfold.domain.memory import WorkingMemory, assemble_memory, raw_numbers
from turnfold.domain.pins import Pin, PinStatus
from turnfold.domain.sessions import Profile, Session, SessionKey, SessionStatus
from turnfold.domain.turns import Turn
from turnfold.domain.usage import Usage

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LOAD_ATTEMPTS = 8
"""A transaction shows all its items within milliseconds: two mixtures in a row are rare already."""

LOAD_PAUSE_SECONDS = 0.01
"""Longest first pause between attempts to load; it doubles with each."""

BATCH_ATTEMPTS = 6
BATCH_PAUSE_SECONDS = 0.05
"""DynamoDB returns what it could not read now as unprocessed, and asks to wait ever longer."""


class DynamoMemoryStore:
    """A `MemoryStore` over DynamoDB; turns too large for an item are read from the archive.

    Beside what each method names, all raise `ThrottledError`, `StoreUnavailableError` and, where
    the table refuses for good, `StoreError`.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        archive: Archive,
        clock: Clock,
        sleep: Sleep = time.sleep,
    ) -> None:
        """Use that table. The clock tells when records expire; `sleep` waits between attempts."""
        self._client = client
        self._table = table
        self._large_turns = LargeTurns(archive)
        self._clock = clock
        self._sleep = sleep

    def read_session(
        self, key: SessionKey, key_hash: str | None
    ) -> tuple[Session | None, IdempotencyRecord | None]:
        """See `MemoryStore`; one BatchGetItem."""
        sort_keys = [META] if key_hash is None else [META, idempotency_sort_key(key_hash)]
        items = self._batch_get([item_key(key, sort_key) for sort_key in sort_keys])
        session, record = None, None
        for item in items:
            if item["SK"]["S"] == META:
                session = read_session(item)
            else:
                record = read_idempotency(item)
        if record is not None and record.expires_at <= self._clock():
            record = None
        return session, record

    def load(self, key: SessionKey, *, with_turns: bool = True) -> WorkingMemory | None:
        """See `MemoryStore`; one Query, and one GetObject for each turn over 64 KB.

        Raises `StoreUnavailableError` if no attempt showed a complete memory.
        """
        for attempt in range(LOAD_ATTEMPTS):
            self._pause(LOAD_PAUSE_SECONDS, attempt)
            found = read_memory(
                self._query_memory(key, WORKING_MEMORY if with_turns else WITHOUT_TURNS)
            )
            session = found.session
            if session is None:
                return None
            if session.status is not SessionStatus.LIVE:
                return WorkingMemory(session, Profile(), (), (), ())
            # A profile of another revision belongs to another moment.
            if found.profile_rev == session.profile_rev:
                raw = set(raw_numbers(session))
                large = [turn for turn in found.archived if turn.number in raw]
                turns = [*found.turns, *self._large_turns.read_all(key, large)]
                memory = assemble_memory(
                    session,
                    found.profile,
                    turns,
                    found.summaries,
                    found.pins,
                    with_turns=with_turns,
                )
                if memory is not None:
                    return memory
        raise StoreUnavailableError("load: working memory is incomplete")

    def write(self, change: Change) -> None:
        """See `MemoryStore`; one TransactWriteItems, or one UpdateItem if only META changes.

        An update whose answer got lost is sent again by the client and then fails by its own
        guards, so after `GuardFailedError` a caller has to read what holds now. A transaction is
        recognised by its token.

        Raises `ValueError` for a change of over 100 items (`change_rules`).
        """
        check_change(change)
        operations = operations_of(change, self._table, self._clock())
        parts = [operation.part for operation in operations]
        if len(operations) == 1 and operations[0].kind == "Update":
            request = operations[0].request
            guarded_write(lambda _token: self._client.update_item(**request), parts, self._sleep)
            return
        writes: Any = [{operation.kind: operation.request} for operation in operations]
        self._transact(writes, parts)

    def get_turn(self, key: SessionKey, number: int) -> Turn | None:
        """See `MemoryStore`; one GetItem, and one GetObject for a turn over 64 KB."""
        item = self._get(key, turn_sort_key(number))
        if item is None:
            return None
        turn = read_turn(item)
        return self._large_turns.read(key, turn) if isinstance(turn, ArchivedTurn) else turn

    def get_pin(self, key: SessionKey, pin_id: str) -> Pin | None:
        """See `MemoryStore`; one BatchGetItem."""
        sort_keys = (pin_sort_key(pin_id), former_pin_sort_key(pin_id))
        pins = [
            read_pin(item)
            for item in self._batch_get([item_key(key, sort_key) for sort_key in sort_keys])
        ]
        # Two reads are not one moment: between them a pin may change its place.
        return max(pins, key=lambda pin: pin.rev, default=None)

    def list_former_pins(
        self, key: SessionKey, status: PinStatus, limit: int, position: str | None
    ) -> Page[Pin]:
        """See `MemoryStore`; one Query, which reads `limit` pins of any status."""
        start: Any = {}
        if position is not None:
            start["ExclusiveStartKey"] = item_key(key, former_pin_sort_key(position))
        with mapped_errors("list pins"):
            answer = self._client.query(
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="PK = :pk AND begins_with(SK, :former)",
                FilterExpression="#status = :status",
                ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues={
                    ":pk": text(partition_key(key)),
                    ":former": text(FORMER_PIN),
                    ":status": text(status),
                },
                Limit=limit,
                **start,
            )
        pins = tuple(read_pin(item) for item in answer["Items"])
        if "LastEvaluatedKey" not in answer:
            return Page(pins)
        return Page(pins, answer["LastEvaluatedKey"]["SK"]["S"].removeprefix(FORMER_PIN))

    def list_sessions(
        self, tenant: str, user_id: str | None, limit: int, position: str | None
    ) -> Page[Session]:
        """See `MemoryStore`; a session shows up within moments of its creation, not at once.

        One Query and one BatchGetItem, repeated where sessions that are being erased left gaps.
        Raises `InvalidCursorError`.
        """
        index, attribute, value = (
            ("by_tenant", "tenant_key", tenant_key(tenant))
            if user_id is None
            else ("by_user", "user_key", user_key(tenant, user_id))
        )
        start: Any = {}
        if position is not None:
            key, created = read_position(tenant, position)
            last = item_key(key, META) | {attribute: text(value), "created_key": text(created)}
            start = {"ExclusiveStartKey": last}
        found: list[Session] = []
        while True:
            with mapped_errors("list sessions"):
                answer = self._client.query(
                    TableName=self._table,
                    IndexName=index,
                    KeyConditionExpression=f"{attribute} = :value",
                    ExpressionAttributeValues={":value": text(value)},
                    ScanIndexForward=False,
                    Limit=limit - len(found),
                    **start,
                )
            keys = [session_of(entry["PK"]["S"]) for entry in answer["Items"]]
            sessions = self._sessions(keys)
            found += [one for one in sessions if one.is_listed]
            if "LastEvaluatedKey" not in answer:
                return Page(tuple(found))
            if len(found) >= limit:
                return Page(tuple(found), position_of(found[-1]))
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def postpone(self, session: Session, due_at: datetime) -> None:
        """See `MemoryStore`; one UpdateItem."""
        values = {":epoch": text(session.epoch), ":due": moment(due_at)}
        condition = "epoch = :epoch AND "
        if session.due_at is None:
            condition += "attribute_not_exists(due_at)"
        else:
            condition += "due_at = :was"
            values[":was"] = moment(session.due_at)
        request: Any = {
            "TableName": self._table,
            "Key": item_key(session.key, META),
            "ConditionExpression": condition,
            "UpdateExpression": "SET due_at = :due, due_shard = :shard",
            "ExpressionAttributeValues": values
            | {":shard": text(due_shard(shard_of(session.key)))},
        }
        guarded_write(lambda _token: self._client.update_item(**request), ["session"], self._sleep)

    def due_sessions(self, shard: int, now: datetime, limit: int) -> tuple[SessionKey, ...]:
        """See `MemoryStore`; one Query. The index is moments behind: look before acting."""
        with mapped_errors("list due sessions"):
            answer = self._client.query(
                TableName=self._table,
                IndexName="due",
                KeyConditionExpression="due_shard = :shard AND due_at <= :now",
                ExpressionAttributeValues={":shard": text(due_shard(shard)), ":now": moment(now)},
                Limit=limit,
            )
        return tuple(session_of(entry["PK"]["S"]) for entry in answer["Items"])

    def get_model_answer(self, key: SessionKey, step_id: str) -> ModelAnswer | None:
        """See `MemoryStore`; one GetItem."""
        item = self._get(key, answer_sort_key(step_id))
        if item is None:
            return None
        answer, expires_at = read_answer(item)
        return answer if expires_at > self._clock() else None

    def put_model_answer(
        self,
        key: SessionKey,
        step_id: str,
        answer: ModelAnswer,
        expires_at: datetime,
        epoch: str,
        usage: Usage,
    ) -> None:
        """See `MemoryStore`; one TransactWriteItems, since it depends on the session."""
        item = answer_item(key, step_id, answer, expires_at)
        put = {"Put": {"TableName": self._table, "Item": item}}
        self._add_if_live(key, epoch, [put, self._cost(key, usage)])

    def add_usage(self, key: SessionKey, epoch: str, usage: Usage) -> None:
        """See `MemoryStore`; one TransactWriteItems."""
        self._add_if_live(key, epoch, [self._cost(key, usage)])

    def read_usage(self, key: SessionKey) -> Sequence[Usage]:
        """See `MemoryStore`; one Query."""
        with mapped_errors("read usage"):
            answer = self._client.query(
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="PK = :pk AND begins_with(SK, :usage)",
                ExpressionAttributeValues={
                    ":pk": text(partition_key(key)),
                    ":usage": text(USAGE),
                },
            )
        return [read_usage(item) for item in answer["Items"]]

    def _cost(self, key: SessionKey, usage: Usage) -> dict[str, Any]:
        return {"Update": usage_update(key, usage, self._table)}

    def _add_if_live(self, key: SessionKey, epoch: str, writes: Sequence[dict[str, Any]]) -> None:
        check = {"ConditionCheck": live_check(key, epoch, self._table)}
        try:
            self._transact([check, *writes], ["session", *(["items"] * len(writes))])
        except GuardFailedError:
            return

    def _transact(self, writes: Any, parts: Sequence[str]) -> None:  # noqa: ANN401 - boto3's union
        transact(self._client, writes, parts, self._sleep)

    def _get(self, key: SessionKey, sort_key: str) -> Mapping[str, Any] | None:
        with mapped_errors("read"):
            answer = self._client.get_item(
                TableName=self._table, Key=item_key(key, sort_key), ConsistentRead=True
            )
        return answer.get("Item")

    def _batch_get(self, keys: Sequence[Item]) -> list[Mapping[str, Any]]:
        """Items by their keys (at most 100), in no order; absent ones are left out."""
        items: list[Mapping[str, Any]] = []
        request: Any = {self._table: {"Keys": keys, "ConsistentRead": True}}
        for attempt in range(BATCH_ATTEMPTS):
            self._pause(BATCH_PAUSE_SECONDS, attempt)
            with mapped_errors("read"):
                answer = self._client.batch_get_item(RequestItems=request)
            items += answer["Responses"].get(self._table, [])
            request = answer.get("UnprocessedKeys")
            if not request:
                return items
        raise ThrottledError("read: items stayed unprocessed")

    def _sessions(self, keys: Sequence[SessionKey]) -> list[Session]:
        """The sessions of the keys that there still are, in the order of the keys."""
        if not keys:
            return []
        items = self._batch_get([item_key(key, META) for key in keys])
        by_key = {session.key: session for session in map(read_session, items)}
        return [by_key[key] for key in keys if key in by_key]

    def _query_memory(self, key: SessionKey, keys: tuple[str, str]) -> list[dict[str, Any]]:
        first, last = keys
        request: Any = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "PK = :pk AND SK BETWEEN :first AND :last",
            "ExpressionAttributeValues": {
                ":pk": text(partition_key(key)),
                ":first": text(first),
                ":last": text(last),
            },
        }
        items: list[dict[str, Any]] = []
        with mapped_errors("load"):
            while True:
                answer = self._client.query(**request)
                items += answer["Items"]
                if "LastEvaluatedKey" not in answer:
                    return items
                request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _pause(self, longest: float, attempt: int) -> None:
        """Wait before an attempt that is not the first."""
        if attempt:
            self._sleep(random.uniform(0, longest * 2 ** (attempt - 1)))  # noqa: S311 - jitter
