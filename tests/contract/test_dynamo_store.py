"""What only the table can get wrong: calls, mixtures of moments, items left unread."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from contract.conftest import MINISTACK, MOTO, Stores
from support.sessions import A_USAGE, START, a_pin, a_record, a_turn, big_text
from turnfold.adapters.dynamo_memory import BATCH_ATTEMPTS, LOAD_ATTEMPTS, DynamoMemoryStore
from turnfold.adapters.sqs_doorbell import SqsDoorbell
from turnfold.application.ports.memory import Change
from turnfold.application.ports.models import ModelAnswer
from turnfold.domain.errors import StoreUnavailableError, ThrottledError
from turnfold.domain.limits import MAX_INLINE_TURN_BYTES
from turnfold.domain.pins import PinStatus
from turnfold.domain.sessions import Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.aws import Services

pytestmark = pytest.mark.parametrize("backend", [MOTO, MINISTACK])


@contextlib.contextmanager
def changed_answers(
    services: Services, operation: str, change: Callable[[dict[str, Any]], None]
) -> Iterator[None]:
    """Let `change` alter each answer to an operation."""
    events = services.dynamodb.meta.events

    def alter(parsed: dict[str, Any], **_: object) -> None:
        change(parsed)

    events.register(f"after-call.dynamodb.{operation}", alter)
    try:
        yield
    finally:
        events.unregister(f"after-call.dynamodb.{operation}", alter)


def impatient(stores: Stores, services: Services) -> tuple[DynamoMemoryStore, list[float]]:
    """A store that notes its pauses in place of making them."""
    pauses: list[float] = []
    store = DynamoMemoryStore(
        services.dynamodb, services.table, stores.archive, stores.clock, pauses.append
    )
    return store, pauses


# ------------------------------------------------------------------------------------------ calls


def test_a_commit_makes_four_calls(stores: Stores, services: Services) -> None:
    writer = stores.writer()
    for _ in range(3):
        writer.commit()
    doorbell = SqsDoorbell(services.sqs, services.queue_url)
    with services.counted_calls() as calls:
        session, record = stores.store.read_session(writer.key, "k1")
        assert session is not None
        assert record is None
        turn, raw = a_turn(4, prev=session.last_sha256)
        stores.archive.put_record(writer.key, 4, turn.turn_id, raw)
        stores.store.write(
            Change(
                key=writer.key,
                epoch=session.epoch,
                guards={"next_turn": 4},
                sets={"next_turn": 5, "last_sha256": turn.sha256},
                turn=turn,
                idempotency=a_record(),
            )
        )
        doorbell.ring(writer.key, turn.turn_id, 4)
    assert calls == {"BatchGetItem": 1, "PutObject": 1, "TransactWriteItems": 1, "SendMessage": 1}


def test_a_load_is_one_query(stores: Stores, services: Services) -> None:
    writer = stores.writer()
    for _ in range(6):
        writer.commit()
    writer.fold(2)
    with services.counted_calls() as calls:
        stores.store.load(writer.key)
    assert calls == {"Query": 1}


def test_a_load_reads_each_large_turn_once(stores: Stores, services: Services) -> None:
    writer = stores.writer()
    for _ in range(3):
        writer.commit(big_text(MAX_INLINE_TURN_BYTES))
    with services.counted_calls() as calls:
        stores.store.load(writer.key)
    assert calls == {"Query": 1, "GetObject": 3}


def test_a_folded_large_turn_is_not_read(stores: Stores, services: Services) -> None:
    """Neither when the query shows it beside a session that has folded it already."""
    writer = stores.writer()
    for _ in range(3):
        writer.commit(big_text(MAX_INLINE_TURN_BYTES))
    key = {"PK": {"S": f"T#{stores.tenant}#S#s1"}, "SK": {"S": "TURN#000000000002"}}
    item = services.dynamodb.get_item(TableName=services.table, Key=key)["Item"]
    writer.fold(2)
    services.dynamodb.put_item(TableName=services.table, Item=item)
    with services.counted_calls() as calls:
        memory = stores.store.load(writer.key)
    assert memory is not None
    assert [turn.number for turn in memory.turns] == [1, 3]
    assert calls["GetObject"] == 2


def test_a_change_of_the_session_alone_is_an_update(stores: Stores, services: Services) -> None:
    writer = stores.writer()
    writer.create()
    with services.counted_calls() as calls:
        stores.store.write(Change(key=writer.key, epoch="e1", sets={"due_at": START}))
    assert calls == {"UpdateItem": 1}


def test_other_reads_are_one_call(stores: Stores, services: Services) -> None:
    writer = stores.writer()
    writer.commit()
    with services.counted_calls() as calls:
        stores.store.get_turn(writer.key, 1)
        stores.store.get_pin(writer.key, "p1")
        stores.store.list_former_pins(writer.key, PinStatus.FOLDED, 10, None)
        stores.store.list_sessions(stores.tenant, None, 10, None)
        stores.store.due_sessions(0, START, 10)
        stores.store.get_model_answer(writer.key, "step")
        answer = ModelAnswer("t", "stop", "m")
        stores.store.put_model_answer(
            writer.key, "step", answer, START + timedelta(days=1), "e1", A_USAGE
        )
    assert calls == {
        "GetItem": 2,
        "BatchGetItem": 2,
        "Query": 3,
        "TransactWriteItems": 1,
    }


def test_every_read_of_the_table_sees_the_newest_state(stores: Stores, services: Services) -> None:
    """Emulators always show it; the table only to those who ask. Indexes are never asked for it."""
    writer = stores.writer()
    writer.commit()
    asked: list[tuple[str, bool]] = []

    def note(params: dict[str, Any], model: Any, **_: object) -> None:
        if "IndexName" in params:
            return
        tables = params.get("RequestItems", {services.table: params})
        asked.append((model.name, tables[services.table].get("ConsistentRead") is True))

    events = services.dynamodb.meta.events
    for operation in ("Query", "GetItem", "BatchGetItem"):
        events.register(f"provide-client-params.dynamodb.{operation}", note)
    stores.store.read_session(writer.key, "k1")
    stores.store.load(writer.key)
    stores.store.get_turn(writer.key, 1)
    stores.store.get_pin(writer.key, "p1")
    stores.store.list_former_pins(writer.key, PinStatus.FOLDED, 10, None)
    stores.store.list_sessions(stores.tenant, None, 10, None)
    stores.store.get_model_answer(writer.key, "step")
    for operation in ("Query", "GetItem", "BatchGetItem"):
        events.unregister(f"provide-client-params.dynamodb.{operation}", note)
    assert [name for name, _ in asked] == [
        "BatchGetItem",
        "Query",
        "GetItem",
        "BatchGetItem",
        "Query",
        "BatchGetItem",
        "GetItem",
    ]
    assert all(consistent for _, consistent in asked)


def test_working_memory_is_all_that_a_load_reads(stores: Stores, services: Services) -> None:
    writer = stores.writer()
    writer.commit()
    former = tuple(a_pin(f"p{n}", PinStatus.FOLDED) for n in range(5))
    change = Change(key=writer.key, epoch="e1", pins=former, idempotency=a_record())
    stores.store.write(change)
    answer = ModelAnswer("t", "stop", "m")
    stores.store.put_model_answer(
        writer.key, "step", answer, START + timedelta(days=1), "e1", A_USAGE
    )
    scanned: Counter[str] = Counter()

    def note(parsed: dict[str, Any]) -> None:
        scanned["items"] += parsed["ScannedCount"]

    with changed_answers(services, "Query", note):
        stores.store.load(writer.key)
    assert scanned["items"] == 3  # META, PROFILE, TURN


# ----------------------------------------------------------------------------- mixtures of moments


def drop_once(sort_key: str) -> Callable[[dict[str, Any]], None]:
    """Hide an item from the first answer, as a query does that ran into a transaction."""
    left = [1]

    def change(parsed: dict[str, Any]) -> None:
        if left[0]:
            left[0] -= 1
            parsed["Items"] = [i for i in parsed["Items"] if i["SK"]["S"] != sort_key]

    return change


@pytest.mark.parametrize(
    "sort_key", ["TURN#000000000001", "SUM#000000000002-000000000002#1", "PROFILE"]
)
def test_a_mixture_is_read_again(stores: Stores, services: Services, sort_key: str) -> None:
    writer = stores.writer()
    for _ in range(3):
        writer.commit()
    writer.fold(2)
    whole = stores.store.load(writer.key)
    with changed_answers(services, "Query", drop_once(sort_key)), services.counted_calls() as calls:
        assert stores.store.load(writer.key) == whole
    assert calls == {"Query": 2}


def test_a_profile_of_another_moment_is_read_again(stores: Stores, services: Services) -> None:
    writer = stores.writer()
    writer.create()
    old = stores.store.load(writer.key)
    assert old is not None
    new = Profile(metadata={"a": 1})
    stores.store.write(Change(key=writer.key, epoch="e1", sets={"profile_rev": 2}, profile=new))
    left = [1]

    def age(parsed: dict[str, Any]) -> None:
        if left[0]:
            left[0] -= 1
            for item in parsed["Items"]:
                if item["SK"]["S"] == "PROFILE":
                    item["rev"] = {"N": "1"}
                    item["metadata"] = {"S": "{}"}

    with changed_answers(services, "Query", age):
        memory = stores.store.load(writer.key)
    assert memory is not None
    assert memory.profile == new


def test_a_memory_that_stays_incomplete_is_unavailable(stores: Stores, services: Services) -> None:
    writer = stores.writer()
    writer.commit()
    stores.store.write(Change(key=writer.key, epoch="e1", removes_turns=(1,)))
    store, pauses = impatient(stores, services)
    with services.counted_calls() as calls, pytest.raises(StoreUnavailableError):
        store.load(writer.key)
    assert calls == {"Query": LOAD_ATTEMPTS}
    assert len(pauses) == LOAD_ATTEMPTS - 1
    assert sum(pauses) < 2


def test_a_large_turn_without_its_record_is_unavailable(stores: Stores, services: Services) -> None:
    writer = stores.writer()
    writer.try_commit(big_text(MAX_INLINE_TURN_BYTES), record=False)
    with pytest.raises(StoreUnavailableError, match="turn 1"):
        stores.store.load(writer.key)


def test_a_large_turn_with_another_record_is_unavailable(
    stores: Stores, services: Services
) -> None:
    writer = stores.writer()
    _, raw = a_turn(1, "another text")
    stores.archive.put_record(writer.key, 1, "turn-1", raw)
    writer.try_commit(big_text(MAX_INLINE_TURN_BYTES))
    with pytest.raises(StoreUnavailableError, match="turn 1"):
        stores.store.get_turn(writer.key, 1)


# --------------------------------------------------------------------------------- unprocessed keys


def leave_unread(parsed: dict[str, Any], table: str) -> None:
    """Turn the last item of a batch into an unprocessed key."""
    item = parsed["Responses"][table].pop()
    key = {"PK": item["PK"], "SK": item["SK"]}
    parsed["UnprocessedKeys"] = {table: {"Keys": [key], "ConsistentRead": True}}


def test_unprocessed_keys_are_asked_for_again(stores: Stores, services: Services) -> None:
    writer = stores.writer()
    session = writer.create()
    stores.store.write(Change(key=writer.key, epoch="e1", idempotency=a_record()))
    left = [2]

    def change(parsed: dict[str, Any]) -> None:
        if left[0]:
            left[0] -= 1
            leave_unread(parsed, services.table)

    store, pauses = impatient(stores, services)
    with changed_answers(services, "BatchGetItem", change):
        found, record = store.read_session(writer.key, "k1")
    assert found == replace(session, revision=2)
    assert record == a_record()
    assert len(pauses) == 2


def test_keys_that_stay_unprocessed_are_throttling(stores: Stores, services: Services) -> None:
    writer = stores.writer()
    writer.create()
    store, pauses = impatient(stores, services)

    def change(parsed: dict[str, Any]) -> None:
        leave_unread(parsed, services.table)

    with changed_answers(services, "BatchGetItem", change), pytest.raises(ThrottledError):
        store.read_session(writer.key, None)
    assert len(pauses) == BATCH_ATTEMPTS - 1
