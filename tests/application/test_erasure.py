"""Erasing: nothing is left, whoever dies or wakes up late, and the id can be used anew."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from support.archive_service import SETTLE_SECONDS, ArchiveService
from support.interference import Crash, Interference
from support.service import KEY, ScriptedModel, plain_turn
from turnfold.application.answer import IdempotentRequest
from turnfold.application.import_content import read_import
from turnfold.application.pins_by_hand import pin_input
from turnfold.application.sessions import SessionInput, session_input
from turnfold.domain.erasures import ErasureStatus
from turnfold.domain.errors import (
    CommitConflictError,
    ErasureNotFoundError,
    LegalHoldError,
    SessionErasingError,
    SessionNotFoundError,
    UserNotFoundError,
)
from turnfold.domain.sessions import SessionKey
from turnfold.domain.transcript import sha256_of

OTHER = SessionKey("tenant", "s2")
FOREIGN = SessionKey("tenant-2", "s1")


def filled(service: ArchiveService, key: SessionKey = KEY, turns: int = 9) -> ArchiveService:
    """A session with turns, summaries, pins of two kinds, answers and idempotency records."""
    service.commit_plain(turns, key, words=60)
    for text in ("first fact", "second fact"):
        request = IdempotentRequest.of("POST pins", text, {"text": text})
        service.pins.add(key, pin_input({"text": text}), request)
    pin = service.memory(key).pins[0]
    service.pins.change(key, pin.pin_id, pin_input({"status": "invalidated"}))
    service.drain()
    return service


def watched(**settings: Any) -> tuple[ArchiveService, Interference]:
    interference = Interference()
    return ArchiveService(wrap=interference.wrap, **settings), interference


def assert_gone(service: ArchiveService, key: SessionKey = KEY) -> None:
    assert key not in service.raw_store.sessions
    assert not service.raw_store.answers.get(key)
    assert service.objects_of(key) == []


def test_a_session_is_erased_with_everything_of_it() -> None:
    service = filled(ArchiveService(model=ScriptedModel()))
    filled(service, OTHER)
    filled(service, FOREIGN)
    started = service.clock.now
    erasure = service.delete.session(KEY)
    assert erasure.status is ErasureStatus.ERASING
    service.drain_archive()
    service.drain()
    assert_gone(service)
    receipt = service.receipt(erasure)
    assert receipt.status is ErasureStatus.ERASED
    assert receipt.finished_at is not None
    assert receipt.finished_at >= started + timedelta(seconds=SETTLE_SECONDS)
    assert receipt.removed.items > 9
    assert receipt.removed.objects == 9 + 1, "the records, and what was said by hand"
    assert receipt.removed.versions >= 9 + 2
    shown = dict(receipt.receipt())
    assert shown.pop("sha256") == sha256_of(shown)
    assert "s1" not in str(shown)
    for key in (OTHER, FOREIGN):
        assert service.memory(key).session.committed_through == 9
        assert service.verify(key).ok


def test_reads_find_nothing_and_writes_wait_as_soon_as_it_is_asked_for() -> None:
    service = filled(ArchiveService())
    service.delete.session(KEY)
    with pytest.raises(SessionNotFoundError):
        service.context.memory(KEY)
    with pytest.raises(SessionNotFoundError):
        service.turns.one(KEY, 1)
    with pytest.raises(SessionNotFoundError):
        service.verify(KEY)
    with pytest.raises(SessionErasingError):
        service.commit(plain_turn(1))
    with pytest.raises(SessionErasingError):
        service.sessions.put(KEY, SessionInput())
    assert [one.key for one in service.sessions.list("tenant", None, 10, None).items] == []


def test_reads_find_nothing_while_items_are_being_removed() -> None:
    service, interference = watched()
    filled(service)
    service.delete.session(KEY)
    seen = []

    def look(name: str, method: str, _given: object, _result: object) -> None:
        if (name, method) == ("erasures", "remove_items"):
            memory = service.raw_store.load(KEY)
            seen.append(memory is None or memory.turns == ())

    interference.after.append(look)
    service.drain_archive()
    assert len(seen) > 3
    assert all(seen)


def test_a_repetition_answers_the_first_erasure_also_when_it_is_done() -> None:
    service = filled(ArchiveService())
    first = service.delete.session(KEY)
    assert service.delete.session(KEY).erasure_id == first.erasure_id
    service.drain_archive()
    again = service.delete.session(KEY)
    assert (again.erasure_id, again.status) == (first.erasure_id, ErasureStatus.ERASED)
    service.commit(plain_turn(1))
    assert service.delete.session(KEY).erasure_id != first.erasure_id
    service.drain_archive()
    service.clock.now += timedelta(days=2, seconds=1)
    with pytest.raises(SessionNotFoundError):
        service.delete.session(KEY)
    assert service.delete.receipt("tenant", first.erasure_id).status is ErasureStatus.ERASED


def test_the_id_starts_afresh_with_old_idempotency_keys() -> None:
    service = ArchiveService()
    service.commit(plain_turn(1), idempotency_key="k")
    epoch = service.memory().session.epoch
    service.delete.session(KEY)
    service.drain_archive()
    answer = service.commit(plain_turn(2), idempotency_key="k")
    assert (answer.body["turn"], answer.replayed) == (1, False)
    assert service.memory().session.epoch != epoch
    assert service.verify(KEY).ok


def test_what_does_not_exist_is_not_found() -> None:
    service = ArchiveService()
    with pytest.raises(SessionNotFoundError):
        service.delete.session(KEY)
    with pytest.raises(UserNotFoundError):
        service.delete.user("tenant", "nobody")
    with pytest.raises(ErasureNotFoundError):
        service.delete.receipt("tenant", "none")


def test_receipts_are_the_business_of_their_tenant() -> None:
    service = filled(ArchiveService())
    erasure = service.delete.session(KEY)
    with pytest.raises(ErasureNotFoundError):
        service.delete.receipt("tenant-2", erasure.erasure_id)


def test_a_legal_hold_refuses_and_stays_until_it_is_ended() -> None:
    service = filled(ArchiveService())
    service.sessions.patch(KEY, session_input(legal_hold=True))
    service.sessions.put(KEY, session_input())
    with pytest.raises(LegalHoldError):
        service.delete.session(KEY)
    service.drain_archive()
    assert service.memory().session.committed_through == 9
    service.sessions.patch(KEY, session_input(legal_hold=False))
    service.delete.session(KEY)
    service.drain_archive()
    assert_gone(service)


def test_a_hold_that_comes_between_look_and_tombstone_holds() -> None:
    service, interference = watched()
    filled(service)

    def hold() -> None:
        service.sessions.patch(KEY, session_input(legal_hold=True))

    interference.arm(2, hold)
    with pytest.raises(LegalHoldError):
        service.delete.session(KEY)


def test_a_user_is_erased_with_all_sessions_there_were() -> None:
    service = ArchiveService()
    keys = [SessionKey("tenant", f"u{number}") for number in range(7)]
    for key in keys:
        service.commit(plain_turn(1), key, user_id="u")
    service.commit(plain_turn(1), OTHER, user_id="other")
    service.commit(plain_turn(1), FOREIGN, user_id="u")
    erasure = service.delete.user("tenant", "u")
    with pytest.raises(SessionNotFoundError):
        service.context.memory(keys[3])
    assert service.delete.user("tenant", "u").erasure_id == erasure.erasure_id
    service.drain_archive()
    for key in keys:
        assert_gone(service, key)
    receipt = service.receipt(erasure)
    assert receipt.status is ErasureStatus.ERASED
    assert receipt.user_id is None
    assert receipt.removed.objects == 7
    assert service.memory(OTHER).session.committed_through == 1
    assert service.memory(FOREIGN).session.committed_through == 1
    again = service.delete.user("tenant", "u")
    assert (again.erasure_id, again.status) == (erasure.erasure_id, ErasureStatus.ERASED)


def test_a_session_that_a_user_begins_after_the_request_stays() -> None:
    service = ArchiveService()
    service.commit(plain_turn(1), KEY, user_id="u")
    erasure = service.delete.user("tenant", "u")
    service.clock.now += timedelta(seconds=1)
    service.commit(plain_turn(1), OTHER, user_id="u")
    service.drain_archive()
    assert_gone(service)
    assert service.memory(OTHER).session.committed_through == 1
    assert service.receipt(erasure).status is ErasureStatus.ERASED
    assert service.delete.user("tenant", "u").erasure_id != erasure.erasure_id


def test_a_user_with_a_session_under_hold_loses_none() -> None:
    service = ArchiveService()
    for key in (KEY, OTHER):
        service.commit(plain_turn(1), key, user_id="u")
    service.sessions.patch(OTHER, session_input(legal_hold=True))
    with pytest.raises(LegalHoldError):
        service.delete.user("tenant", "u")
    assert service.memory(KEY).session.committed_through == 1


def calls_of_an_erasure() -> int:
    """How many calls of a port the erasure of a session makes."""
    service, interference = watched()
    filled(service)
    interference.log.clear()
    service.delete.session(KEY)
    service.drain_archive()
    return len(interference.log)


ANY_CALL = list(itertools.product(range(1, calls_of_an_erasure() + 1), [False, True]))


@pytest.mark.parametrize(("at", "late"), ANY_CALL)
def test_a_crash_anywhere_is_made_good(at: int, late: bool) -> None:
    service, interference = watched()
    filled(service)
    interference.crash_at(at, late=late)
    erasure = None
    for _ in range(3):
        # The client that got no answer asks again; the queue delivers again.
        try:
            erasure = service.delete.session(KEY)
            service.drain_archive()
            break
        except Crash:
            service.clock.now += timedelta(seconds=721)
    assert erasure is not None
    assert_gone(service)
    assert service.receipt(erasure).status is ErasureStatus.ERASED
    assert not interference.disarm()


def user_calls() -> int:
    service, interference = watched()
    for key in (KEY, OTHER):
        service.commit(plain_turn(1), key, user_id="u")
    interference.log.clear()
    service.delete.user("tenant", "u")
    service.drain_archive()
    return len(interference.log)


@pytest.mark.parametrize(
    ("at", "late"), list(itertools.product(range(1, user_calls() + 1), [False, True]))
)
def test_a_crash_anywhere_in_the_erasure_of_a_user_is_made_good(at: int, late: bool) -> None:
    service, interference = watched()
    for key in (KEY, OTHER):
        service.commit(plain_turn(1), key, user_id="u")
    interference.crash_at(at, late=late)
    erasure = None
    for _ in range(3):
        try:
            erasure = service.delete.user("tenant", "u")
            service.sweep()
            service.drain_archive()
            break
        except Crash:
            service.clock.now += timedelta(seconds=721)
    assert erasure is not None
    for key in (KEY, OTHER):
        assert_gone(service, key)
    assert service.receipt(erasure).status is ErasureStatus.ERASED


@pytest.mark.parametrize("at", range(1, 5))
@pytest.mark.parametrize("late", [False, True])
def test_a_commit_that_is_overtaken_by_the_tombstone_leaves_nothing(at: int, late: bool) -> None:
    """Its record may be put after the first pass; the last pass finds it."""
    service, interference = watched()
    service.commit(plain_turn(1))

    def overtake() -> None:
        service.delete.session(KEY)
        batch = service.archive_queue.receive()
        service.deliver_archive(batch)

    interference.arm(at, overtake, late=late)
    with suppress(SessionErasingError):
        service.commit(plain_turn(2))
    interference.disarm()
    if KEY in service.raw_store.sessions and not service.raw_store.sessions[KEY].session.erasure_id:
        service.delete.session(KEY)
    service.drain_archive()
    assert_gone(service)


def calls_of_a_compaction(model: ScriptedModel) -> int:
    service, interference = watched(model=model)
    service.commit_plain(9, words=60)
    interference.log.clear()
    service.ring()
    return len(interference.log)


@pytest.mark.parametrize("at", range(1, calls_of_a_compaction(ScriptedModel()) + 1))
def test_a_compactor_that_goes_on_after_an_erasure_leaves_nothing(at: int) -> None:
    service, interference = watched(model=ScriptedModel())
    service.commit_plain(9, words=60)

    def erase() -> None:
        interference.disarm()
        service.delete.session(KEY)
        service.drain_archive()

    interference.arm(at, erase)
    service.ring()
    assert_gone(service)


@pytest.mark.parametrize("at", range(1, calls_of_a_compaction(ScriptedModel()) + 1))
def test_a_late_compactor_brings_nothing_back(at: int) -> None:
    """The id may be in use again when the compactor of the erased session goes on."""
    service, interference = watched(model=ScriptedModel())
    service.commit_plain(9, words=60)

    def erase() -> None:
        interference.disarm()
        service.delete.session(KEY)
        service.drain_archive()
        service.commit(
            [
                {"role": "user", "content": "entirely new"},
                {"role": "assistant", "content": "indeed"},
            ]
        )

    interference.arm(at, erase)
    service.ring()
    stored = service.raw_store.sessions[KEY]
    assert stored.session.committed_through == 1
    assert "word" not in str((stored, service.raw_store.answers.get(KEY)))
    assert service.verify(KEY).ok


IMPORTED_TURNS = 90
"""More than go into one write, so that a session can vanish between two of an import."""


def import_some(service: ArchiveService) -> None:
    messages = [one for number in range(IMPORTED_TURNS) for one in plain_turn(number)]
    content = read_import(json.dumps({"messages": messages}))
    service.import_session(KEY, content, IdempotentRequest.of("POST import", "i", {}))


def calls_of_an_import() -> int:
    service, interference = watched()
    service.commit_plain(1)
    interference.log.clear()
    import_some(service)
    return sum(not one.startswith("archive.put_record") for one in interference.log)


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("at", range(1, calls_of_an_import() + 1))
def test_an_import_that_is_overtaken_by_an_erasure_begins_no_session(at: int, anew: bool) -> None:
    service, interference = watched()
    service.commit_plain(1)
    numbers = itertools.count(1)

    def overtake(port: str, method: str, _given: object) -> None:
        if (port, method) != ("archive", "put_record") and next(numbers) == at:
            service.delete.session(KEY)
            service.drain_archive()
            if anew:
                service.commit_plain(1)

    interference.before.append(overtake)
    with suppress(SessionErasingError, CommitConflictError):
        import_some(service)
    stored = service.raw_store.sessions.get(KEY)
    # What is looked at first may already be the later session, and all of the import goes there.
    through = stored.session.committed_through if stored else 0
    assert through in ({IMPORTED_TURNS + anew} if at == 1 else {int(anew)})


def calls_of_one_tending() -> int:
    service, interference = watched()
    filled(service, turns=3)
    service.delete.session(KEY)
    service.clock.now += timedelta(seconds=SETTLE_SECONDS)
    interference.log.clear()
    service.tend(KEY)
    return len(interference.log)


@pytest.mark.parametrize("at", range(1, calls_of_one_tending() + 1))
def test_an_eraser_that_wakes_up_late_leaves_the_new_session_alone(at: int) -> None:
    service, interference = watched()
    filled(service, turns=3)
    service.delete.session(KEY)
    service.clock.now += timedelta(seconds=SETTLE_SECONDS)

    def overtake() -> None:
        interference.disarm()
        service.tend(KEY)
        service.commit(plain_turn(1))

    interference.arm(at, overtake)
    service.tend(KEY)
    assert service.memory().session.committed_through == 1
    assert service.verify(KEY).ok


def test_two_erasers_at_once_count_once_and_finish_once() -> None:
    service, interference = watched()
    filled(service)
    erasure = service.delete.session(KEY)
    service.clock.now += timedelta(seconds=SETTLE_SECONDS)
    interference.arm(4, lambda: (interference.disarm(), service.tend(KEY)))
    service.tend(KEY)
    assert_gone(service)
    assert service.receipt(erasure).removed.objects == 9 + 1


def test_the_sweeper_finds_an_erasure_whose_bell_was_lost() -> None:
    service = filled(ArchiveService())
    erasure = service.delete.session(KEY)
    service.archive_queue.receive()  # taken by a process that dies, until its retention is over
    service.clock.now += timedelta(days=5)
    for message in service.archive_queue.receive():
        service.archive_queue.delete(message.receipt)
    service.sweep()
    service.drain_archive()
    assert_gone(service)
    assert service.receipt(erasure).status is ErasureStatus.ERASED
