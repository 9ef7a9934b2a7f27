"""What every store of open turns guarantees."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from contract.conftest import MINISTACK, MOTO
from support.sessions import a_record
from turnfold.adapters.dynamo_open_turns import DynamoOpenTurns
from turnfold.adapters.in_memory_open_turns import InMemoryOpenTurns
from turnfold.adapters.in_memory_store import InMemoryStore
from turnfold.application.ports.memory import Change
from turnfold.domain.errors import GuardFailedError
from turnfold.domain.open_turn import OpenTurnRef

if TYPE_CHECKING:
    from contract.conftest import Stores
    from turnfold.application.ports.open_turns import OpenTurnStore

BACKENDS = ["in-memory", MOTO, MINISTACK]
on_every_backend = pytest.mark.parametrize("backend", BACKENDS)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.fixture
def drafts(stores: Stores) -> OpenTurnStore:
    if isinstance(stores.store, InMemoryStore):
        return InMemoryOpenTurns(stores.store, stores.clock)
    assert stores.services is not None
    return DynamoOpenTurns(stores.services.dynamodb, stores.services.table, stores.clock)


def append(
    drafts: OpenTurnStore, stores: Stores, text: str, before: OpenTurnRef | None, key_hash: str
) -> OpenTurnRef:
    expires_at = stores.clock() + timedelta(hours=48)
    record = replace(a_record(key_hash), expires_at=expires_at)
    drafts.append_open_turn(stores.key(), before, f"d-{key_hash}", [user(text)], record)
    found, _ = drafts.read_open_turn(stores.key())
    assert found is not None
    return found.ref


@on_every_backend
def test_there_is_none_at_first(drafts: OpenTurnStore, stores: Stores) -> None:
    assert drafts.read_open_turn(stores.key(), "k") == (None, None)


@on_every_backend
def test_messages_come_back_in_order_and_word_for_word(
    drafts: OpenTurnStore, stores: Stores
) -> None:
    texts = ["one\u2028two\u0085", "😀 <|endoftext|>", "Cafe\u0301", ""]
    ref = None
    for number, text in enumerate(texts):
        ref = append(drafts, stores, text, ref, f"k{number}")
    found, record = drafts.read_open_turn(stores.key(), "k2")
    assert found is not None
    assert [one["content"] for one in found.messages] == texts
    assert record is not None
    assert record.key_hash == "k2"


@on_every_backend
def test_a_large_append_is_kept_whole(drafts: OpenTurnStore, stores: Stores) -> None:
    noise = "".join(chr(33 + (at * 7919) % 90) for at in range(900_000))
    first = append(drafts, stores, noise, None, "k1")
    append(drafts, stores, "after", first, "k2")
    found, _ = drafts.read_open_turn(stores.key())
    assert found is not None
    assert [one["content"] for one in found.messages] == [noise, "after"]


@on_every_backend
def test_an_append_that_knows_an_older_state_is_refused(
    drafts: OpenTurnStore, stores: Stores
) -> None:
    first = append(drafts, stores, "a", None, "k1")
    append(drafts, stores, "b", first, "k2")
    for before in (None, first, OpenTurnRef("other", 2)):
        with pytest.raises(GuardFailedError) as caught:
            append(drafts, stores, "c", before, "k3")
        assert "open_turn" in caught.value.failed


@on_every_backend
def test_a_used_idempotency_key_appends_nothing(drafts: OpenTurnStore, stores: Stores) -> None:
    first = append(drafts, stores, "a", None, "k1")
    with pytest.raises(GuardFailedError) as caught:
        append(drafts, stores, "a", first, "k1")
    assert "idempotency" in caught.value.failed


@on_every_backend
def test_its_time_is_over_an_hour_after_the_last_append(
    drafts: OpenTurnStore, stores: Stores
) -> None:
    first = append(drafts, stores, "a", None, "k1")
    stores.clock.advance(59 * 60)
    append(drafts, stores, "b", first, "k2")
    stores.clock.advance(59 * 60)
    found, _ = drafts.read_open_turn(stores.key())
    assert found is not None
    stores.clock.advance(60)
    assert drafts.read_open_turn(stores.key())[0] is None
    append(drafts, stores, "new", None, "k3")
    found, _ = drafts.read_open_turn(stores.key())
    assert found is not None
    assert [one["content"] for one in found.messages] == ["new"]


@on_every_backend
def test_a_dropped_one_is_gone_and_another_begins_empty(
    drafts: OpenTurnStore, stores: Stores
) -> None:
    ref = append(drafts, stores, "a", append(drafts, stores, "b", None, "k1"), "k2")
    with pytest.raises(GuardFailedError):
        drafts.drop_open_turn(stores.key(), replace(ref, pieces=1))
    drafts.drop_open_turn(stores.key(), ref)
    assert drafts.read_open_turn(stores.key())[0] is None
    append(drafts, stores, "new", None, "k3")
    found, _ = drafts.read_open_turn(stores.key())
    assert found is not None
    assert [one["content"] for one in found.messages] == ["new"]


@on_every_backend
def test_a_commit_closes_exactly_the_state_that_it_read(
    drafts: OpenTurnStore, stores: Stores
) -> None:
    session = stores.writer().create()
    first = append(drafts, stores, "a", None, "k1")
    second = append(drafts, stores, "b", first, "k2")
    change = Change(key=stores.key(), epoch=session.epoch, sets={"sweeps": 1})
    with pytest.raises(GuardFailedError) as caught:
        stores.store.write(replace(change, closes=first))
    assert caught.value.failed == {"open_turn"}
    stores.store.write(replace(change, closes=second))
    assert drafts.read_open_turn(stores.key())[0] is None


@on_every_backend
def test_working_memory_does_not_show_it(drafts: OpenTurnStore, stores: Stores) -> None:
    stores.writer().create()
    before = stores.store.load(stores.key())
    append(drafts, stores, "a", None, "k1")
    assert stores.store.load(stores.key()) == before


@pytest.mark.parametrize("backend", ["in-memory", MINISTACK])
def test_of_many_writers_one_wins_each_time(drafts: OpenTurnStore, stores: Stores) -> None:
    def attempt(number: int) -> bool:
        record = replace(a_record(f"k{number}"), expires_at=stores.clock() + timedelta(hours=1))
        try:
            drafts.append_open_turn(stores.key(), None, f"d{number}", [user("x")], record)
        except GuardFailedError:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(attempt, range(10))) == 1
