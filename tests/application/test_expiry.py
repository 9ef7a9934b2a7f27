"""Expiry: working memory goes to the archive and comes back as it was, whoever dies meanwhile."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.archive_service import ArchiveService
from support.interference import Crash, Interference
from support.service import KEY, ScriptedModel, plain_turn
from turnfold.application.answer import IdempotentRequest
from turnfold.application.pins_by_hand import pin_input
from turnfold.application.sessions import SessionInput
from turnfold.domain.errors import StoreUnavailableError
from turnfold.domain.sessions import SessionKey, SessionStatus
from turnfold.domain.settings import merge_settings

if TYPE_CHECKING:
    from turnfold.domain.memory import WorkingMemory
    from turnfold.domain.sessions import Session

DAYS = 7


def watched(**settings: Any) -> tuple[ArchiveService, Interference]:
    interference = Interference()
    return ArchiveService(wrap=interference.wrap, **settings), interference


def filled(service: ArchiveService, turns: int = 9) -> ArchiveService:
    """A session with head, summaries, tail, pins of two kinds, metadata and system messages."""
    metadata = {"plan": "gold"}
    service.sessions.put(
        KEY, SessionInput(system=({"role": "system", "content": "Be kind."},), metadata=metadata)
    )
    service.commit_plain(turns, words=60)
    for text in ("first fact", "second fact", "third fact"):
        request = IdempotentRequest.of("POST pins", text, {"text": text})
        service.pins.add(KEY, pin_input({"text": text}), request)
    pin = service.memory().pins[0]
    service.pins.change(KEY, pin.pin_id, pin_input({"status": "invalidated"}))
    service.drain()
    return service


def rest(service: ArchiveService, days: float = DAYS) -> None:
    """Let time pass, and the sweeper and the archivist do what is due."""
    service.clock.now += timedelta(days=days, seconds=1)
    service.sweep()
    service.drain_archive()


def status(service: ArchiveService) -> SessionStatus:
    return service.raw_store.sessions[KEY].session.status


def content(memory: WorkingMemory) -> tuple[object, ...]:
    """All of a memory that must come back."""
    session = memory.session
    kept = (
        session.next_turn,
        session.judged_through,
        session.manifest,
        session.last_sha256,
        session.revision,
        session.pin_rev,
        session.settings,
    )
    return (kept, memory.profile, memory.turns, memory.summaries, memory.pins)


def test_a_session_that_rests_is_put_away_and_comes_back_as_it_was() -> None:
    service = filled(ArchiveService(model=ScriptedModel()))
    before = content(service.memory())
    rest(service)
    stored = service.raw_store.sessions[KEY]
    assert stored.session.status is SessionStatus.EXPIRED
    assert (stored.turns, stored.summaries, stored.pins) == ({}, {}, {})
    assert stored.session.due_at is None
    assert content(service.context.memory(KEY)) == before
    assert status(service) is SessionStatus.LIVE
    assert service.verify(KEY).ok


def test_turn_numbers_go_on_when_a_commit_brings_it_back() -> None:
    service = filled(ArchiveService())
    rest(service)
    answer = service.commit(plain_turn(10))
    assert answer.body["turn"] == 10
    memory = service.memory()
    assert memory.turns[0].number == 1
    assert len(memory.pins) == 2
    assert service.verify(KEY).ok


def test_a_repeated_request_is_answered_without_bringing_it_back() -> None:
    service = ArchiveService(expire_days=1)
    first = service.commit(plain_turn(1), idempotency_key="k")
    rest(service, 1)
    assert service.commit(plain_turn(1), idempotency_key="k").body == first.body
    assert status(service) is SessionStatus.EXPIRED


def test_former_pins_and_costs_stay_readable() -> None:
    service = filled(ArchiveService(model=ScriptedModel()))
    rest(service)
    from turnfold.domain.pins import PinStatus

    assert len(service.raw_store.list_former_pins(KEY, PinStatus.INVALIDATED, 9, None).items) == 1
    assert list(service.raw_store.read_usage(KEY))


def test_a_list_shows_it_as_expired_and_leaves_it_there() -> None:
    service = filled(ArchiveService())
    rest(service)
    (listed,) = service.sessions.list("tenant", None, 10, None).items
    assert listed.status is SessionStatus.EXPIRED
    assert status(service) is SessionStatus.EXPIRED


def test_a_session_in_use_keeps_head_and_pins_however_old_they_are() -> None:
    service = filled(ArchiveService(expire_days=2))
    for number in range(10, 30):
        service.clock.now += timedelta(days=1.5)
        service.sweep()
        service.drain_archive()
        assert status(service) is SessionStatus.LIVE
        service.commit(plain_turn(number))
        service.drain()
    memory = service.memory()
    assert memory.turns[0].number == 1
    assert len(memory.pins) == 2


def test_it_expires_by_its_last_commit_not_by_its_first() -> None:
    service = ArchiveService(expire_days=2, pin_mode="off")
    service.commit_plain(1)
    rest(service, 1.9)
    service.commit_plain(1, start=2)
    rest(service, 1.9)
    assert status(service) is SessionStatus.LIVE
    rest(service, 0.2)
    assert status(service) is SessionStatus.EXPIRED


def test_one_that_was_only_read_stays_for_as_long_again() -> None:
    service = filled(ArchiveService())
    rest(service)
    service.context.memory(KEY)
    rest(service, DAYS - 1)
    assert status(service) is SessionStatus.LIVE
    rest(service, 1)
    assert status(service) is SessionStatus.EXPIRED


def test_one_that_was_never_used_expires_too() -> None:
    service = ArchiveService()
    service.sessions.put(KEY, SessionInput(metadata={"a": 1}))
    rest(service)
    assert status(service) is SessionStatus.EXPIRED
    assert service.context.memory(KEY).profile.metadata == {"a": 1}


def test_what_was_pending_is_done_after_it_came_back() -> None:
    service = ArchiveService()
    service.commit_plain(9, words=60)
    service.clock.now += timedelta(days=DAYS, seconds=1)
    service.put_away(KEY)
    assert status(service) is SessionStatus.EXPIRED
    service.drain()
    service.commit_plain(1, start=10, words=60)
    service.drain()
    assert service.memory().session.judged_through == 10


def test_settings_changed_before_expiry_count() -> None:
    service = filled(ArchiveService())
    service.sessions.patch(KEY, SessionInput(settings={"expire_days": 30}))
    service.drain()
    rest(service)
    assert status(service) is SessionStatus.LIVE
    rest(service, 23)
    assert status(service) is SessionStatus.EXPIRED


def test_erasing_one_that_is_away_leaves_nothing() -> None:
    service = filled(ArchiveService())
    rest(service)
    service.delete.session(KEY)
    service.drain_archive()
    assert KEY not in service.raw_store.sessions
    assert service.objects_of() == []


def test_only_the_newest_snapshot_is_kept() -> None:
    service = filled(ArchiveService())
    for number in range(10, 14):
        rest(service)
        service.commit(plain_turn(number))
    rest(service)
    (name,) = service.snapshots.names(KEY)
    assert name == service.raw_store.sessions[KEY].session.snapshot


def test_a_lost_snapshot_is_an_error_and_no_empty_memory() -> None:
    service = filled(ArchiveService())
    rest(service)
    service.snapshots.remove(KEY, service.snapshots.names(KEY))
    with pytest.raises(StoreUnavailableError):
        service.context.memory(KEY)


# Crashes and races -------------------------------------------------------------------------------


def calls(act: str) -> int:
    """How many calls of a port one run makes."""
    service, interference = watched()
    filled(service)
    service.clock.now += timedelta(days=DAYS, seconds=1)
    if act == "restore":
        service.put_away(KEY)
    interference.log.clear()
    run(service, act)
    return len(interference.log)


def run(service: ArchiveService, act: str) -> None:
    if act == "restore":
        service.context.memory(KEY)
    else:
        service.tend(KEY)


def every_call(act: str) -> list[tuple[int, bool]]:
    return list(itertools.product(range(1, calls(act) + 1), [False, True]))


@pytest.mark.parametrize(("at", "late"), every_call("put away"))
def test_a_crash_while_putting_away_loses_nothing(at: int, late: bool) -> None:
    service, interference = watched()
    before = content(filled(service).memory())
    service.clock.now += timedelta(days=DAYS, seconds=1)
    interference.crash_at(at, late=late)
    with pytest.raises(Crash):
        service.tend(KEY)
    assert content(service.context.memory(KEY)) == before
    rest(service)
    assert status(service) is SessionStatus.EXPIRED
    stored = service.raw_store.sessions[KEY]
    assert (stored.turns, stored.pins, stored.session.due_at) == ({}, {}, None)
    assert len(service.snapshots.names(KEY)) == 1
    assert content(service.context.memory(KEY)) == before


@pytest.mark.parametrize(("at", "late"), every_call("put away"))
def test_a_crash_while_putting_away_is_made_good_by_the_sweeper(at: int, late: bool) -> None:
    service, interference = watched()
    before = content(filled(service).memory())
    service.clock.now += timedelta(days=DAYS, seconds=1)
    interference.crash_at(at, late=late)
    with pytest.raises(Crash):
        service.tend(KEY)
    service.clock.now += timedelta(hours=1)
    service.sweep()
    service.drain_archive()
    stored = service.raw_store.sessions[KEY]
    assert stored.session.status is SessionStatus.EXPIRED
    assert (stored.turns, stored.pins, stored.session.due_at) == ({}, {}, None)
    assert len(service.snapshots.names(KEY)) == 1
    assert content(service.context.memory(KEY)) == before


@pytest.mark.parametrize(("at", "late"), every_call("restore"))
def test_a_crash_while_bringing_back_loses_nothing(at: int, late: bool) -> None:
    service, interference = watched()
    before = content(filled(service).memory())
    rest(service)
    interference.crash_at(at, late=late)
    with pytest.raises(Crash):
        service.context.memory(KEY)
    assert content(service.context.memory(KEY)) == before


@pytest.mark.parametrize("at", range(1, calls("put away") + 1))
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("used_by", ["read", "commit", "pin"])
def test_whoever_uses_it_while_it_is_put_away_wins(at: int, late: bool, used_by: str) -> None:
    service, interference = watched()
    filled(service)
    service.clock.now += timedelta(days=DAYS, seconds=1)
    seen: list[Session] = []

    def use() -> None:
        interference.disarm()
        if used_by == "commit":
            service.commit(plain_turn(10))
        elif used_by == "pin":
            request = IdempotentRequest.of("POST pins", "new", {})
            service.pins.add(KEY, pin_input({"text": "fourth fact"}), request)
        seen.append(service.context.memory(KEY).session)

    interference.arm(at, use, late=late)
    service.tend(KEY)
    assert seen
    after = service.context.memory(KEY)
    assert after.session.next_turn == seen[0].next_turn
    assert len(after.pins) == 2 + (used_by == "pin")
    assert after.turns[-1].number == after.session.committed_through
    service.commit(plain_turn(after.session.next_turn))
    assert service.verify(KEY).ok


@pytest.mark.parametrize("at", range(1, calls("restore") + 1))
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("meanwhile", ["read", "commit", "archivist", "fold"])
def test_two_that_bring_it_back_at_once_agree(at: int, late: bool, meanwhile: str) -> None:
    service, interference = watched()
    filled(service)
    rest(service)

    def other() -> None:
        interference.disarm()
        if meanwhile == "archivist":
            service.tend(KEY)
            return
        if meanwhile == "read":
            service.context.memory(KEY)
            return
        for number in range(10, 16):
            service.commit(plain_turn(number, words=60))
        if meanwhile == "fold":
            service.drain()

    interference.arm(at, other, late=late)
    memory = service.context.memory(KEY)
    if meanwhile in ("commit", "fold") and memory.session.next_turn == 10:
        memory = service.context.memory(KEY)
    assert memory.session.next_turn == (16 if meanwhile in ("commit", "fold") else 10)
    assert len(memory.pins) == 2
    service.drain()
    assert service.memory().session.status is SessionStatus.LIVE
    assert service.verify(KEY).ok


def test_an_archivist_that_wakes_up_after_all_removes_nothing() -> None:
    """It has said that the session is away, and sleeps until it was used and put away anew."""
    service, interference = watched()
    filled(service)
    service.clock.now += timedelta(days=DAYS, seconds=1)

    def long_after(name: str, method: str, _given: object, _result: object) -> None:
        if (name, method) == ("shelf", "put_away"):
            interference.after.clear()
            service.commit(plain_turn(10))

    interference.after.append(long_after)
    service.tend(KEY)
    memory = service.memory()
    assert memory.session.committed_through == 10
    assert len(memory.pins) == 2


def test_a_search_over_a_tenant_looks_without_bringing_back() -> None:
    from turnfold.application.restore import PeekingStore

    service = filled(ArchiveService())
    before = content(service.memory())
    rest(service)
    peeked = PeekingStore(service.store, service.restore).load(KEY)
    assert peeked is not None
    assert content(peeked) == before
    assert status(service) is SessionStatus.EXPIRED


def test_settings_of_every_kind_come_back() -> None:
    service = ArchiveService()
    key = SessionKey("tenant", "other")
    policy = {"name": "composite", "policies": [{"name": "token_limit", "token_ratio": 0.5}]}
    service.sessions.put(key, SessionInput(settings={"policy": policy, "model": "gpt-4"}))
    service.clock.now += timedelta(days=DAYS, seconds=1)
    service.put_away(key)
    expected = merge_settings(service.defaults, {"policy": policy, "model": "gpt-4"})
    assert service.context.memory(key).session.settings == expected
