"""Committing a turn: numbering, system messages, idempotency, races, and what a crash leaves."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from support.interference import Crash, Interference
from support.service import KEY, Service, plain_turn
from turnfold.application import commit_turn
from turnfold.application.answer import IdempotentRequest
from turnfold.application.commit_turn import (
    ATTEMPTS,
    LONGEST_PAUSE_SECONDS,
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    TurnToCommit,
)
from turnfold.application.read_context import ContextRequest
from turnfold.application.sessions import SessionInput
from turnfold.domain.errors import (
    CommitConflictError,
    IdempotencyMismatchError,
    InvalidMessagesError,
    SessionErasingError,
    StoreUnavailableError,
    TurnTooLargeError,
    UserMismatchError,
)
from turnfold.domain.sessions import SessionKey, SessionStatus

ANY_CALL = list(itertools.product(range(1, 5), [False, True]))
READ_WRITE_RING = ["store.read_session", "archive.put_record", "store.write", "doorbell.ring"]


def watched(**settings: Any) -> tuple[Service, Interference]:
    interference = Interference()
    return Service(wrap=interference.wrap, **settings), interference


def erasing(service: Service, key: SessionKey = KEY) -> None:
    items = service.raw_store._sessions[key]
    items.session = replace(items.session, status=SessionStatus.ERASING)


def numbers_and_markers(service: Service, key: SessionKey = KEY) -> list[tuple[int, str]]:
    session = service.memory(key).session
    turns = service.transcript.turns(session, 1, session.committed_through)
    return [(turn.number, turn.messages[0]["content"]) for turn in turns]


def test_the_first_commit_creates_the_session_with_the_defaults() -> None:
    service = Service(head_size=3)
    answer = service.commit(plain_turn(1), user_id="u1")
    assert answer.status == 201
    assert answer.body["turn"] == 1
    session = service.memory().session
    assert session.settings.head_size == 3
    assert session.user_id == "u1"
    assert session.committed_through == 1


def test_turns_are_numbered_without_gaps_and_chained() -> None:
    service = Service()
    service.commit_plain(5)
    session = service.memory().session
    turns = service.transcript.turns(session, 1, 5)
    assert [turn.number for turn in turns] == [1, 2, 3, 4, 5]
    assert [turn.prev_sha256 for turn in turns[1:]] == [turn.sha256 for turn in turns[:-1]]
    assert turns[0].prev_sha256 == "0" * 64
    assert session.last_sha256 == turns[-1].sha256


@pytest.mark.parametrize("after", [0, 9, 200])
def test_a_commit_makes_four_calls_at_any_length(after: int) -> None:
    service, interference = watched()
    service.commit_plain(after)
    interference.log.clear()
    service.commit(plain_turn(after + 1))
    assert interference.log == READ_WRITE_RING


def test_a_refused_turn_leaves_nothing() -> None:
    service, interference = watched()
    with pytest.raises(InvalidMessagesError):
        service.commit([{"role": "user", "content": "unanswered"}])
    assert interference.log == []


def test_a_turn_of_a_mebibyte_is_taken_and_a_larger_one_is_not() -> None:
    service = Service()
    frame = len('[{"content":"","role":"user"},{"content":"a","role":"assistant"}]null')
    for spare, taken in ((0, True), (1, False)):
        text = "x" * (1024 * 1024 - frame + spare)
        turn = [{"role": "user", "content": text}, {"role": "assistant", "content": "a"}]
        if taken:
            assert service.commit(turn).body["turn"] == 1
        else:
            with pytest.raises(TurnTooLargeError):
                service.commit(turn)


# System messages and user id ---------------------------------------------------------------------


def with_system(number: int, *texts: str) -> list[dict[str, Any]]:
    return [*({"role": "system", "content": one} for one in texts), *plain_turn(number)]


def system_texts(service: Service) -> list[Any]:
    return [one["content"] for one in service.memory().profile.system]


def test_the_same_system_message_changes_nothing() -> None:
    service, interference = watched()
    service.commit(with_system(1, "Be kind."))
    rev = service.memory().session.profile_rev
    interference.log.clear()
    service.commit(with_system(2, "Be kind."))
    assert system_texts(service) == ["Be kind."]
    assert service.memory().session.profile_rev == rev
    assert interference.log == READ_WRITE_RING


def test_other_system_messages_replace_and_none_leave_them() -> None:
    service = Service()
    service.commit(with_system(1, "Be kind."))
    service.commit(with_system(2, "Be short.", "Be clear."))
    assert system_texts(service) == ["Be short.", "Be clear."]
    service.commit(plain_turn(3))
    assert system_texts(service) == ["Be short.", "Be clear."]


def test_system_messages_of_a_turn_stay_in_its_record_but_not_in_a_context() -> None:
    service = Service()
    service.commit(with_system(1, "Be kind."))
    service.commit(with_system(2, "Be short."))
    session = service.memory().session
    record = service.transcript.turns(session, 1, 1)[0]
    assert record.messages[0] == {"role": "system", "content": "Be kind."}
    messages = service.context.assemble(service.memory(), ContextRequest()).messages
    assert [one["content"] for one in messages if one["role"] == "system"] == ["Be short."]


def test_metadata_of_the_session_survives_new_system_messages() -> None:
    service = Service()
    service.sessions.put(KEY, SessionInput(metadata={"a": 1}))
    service.commit(with_system(1, "Be kind."))
    assert service.memory().profile.metadata == {"a": 1}


def test_a_user_id_is_set_once() -> None:
    service = Service()
    service.commit(plain_turn(1))
    service.commit(plain_turn(2), user_id="u1")
    service.commit(plain_turn(3), user_id="u1")
    service.commit(plain_turn(4))
    with pytest.raises(UserMismatchError):
        service.commit(plain_turn(5), user_id="u2")
    assert service.memory().session.user_id == "u1"
    assert service.memory().session.committed_through == 4


@pytest.mark.parametrize("at", range(1, 5))
@pytest.mark.parametrize("late", [False, True])
def test_a_user_id_given_meanwhile_is_not_overwritten(at: int, late: bool) -> None:
    service, interference = watched()
    service.commit(plain_turn(1))
    accepted = []

    def patch() -> None:
        with suppress(UserMismatchError):
            service.sessions.patch(KEY, SessionInput(user_id="patched"))
            accepted.append("patched")

    interference.arm(at, patch, late=late)
    with suppress(UserMismatchError):
        service.commit(plain_turn(2), user_id="committed")
        accepted.append("committed")
    assert accepted == [service.memory().session.user_id]


@pytest.mark.parametrize("late", [False, True])
def test_a_change_of_settings_does_not_lose_a_user_id_given_meanwhile(late: bool) -> None:
    service, interference = watched()
    service.commit(plain_turn(1))
    interference.arm(1, lambda: service.commit(plain_turn(2), user_id="u1"), late=late)
    service.sessions.patch(KEY, SessionInput(metadata={"a": 1}))
    assert service.memory().session.user_id == "u1"


# Idempotency -------------------------------------------------------------------------------------


def test_the_same_key_commits_once_and_answers_the_same() -> None:
    service = Service()
    first = service.commit(plain_turn(1), idempotency_key="k")
    service.commit(plain_turn(2))
    again = service.commit(plain_turn(1), idempotency_key="k")
    assert again.replayed
    assert (again.status, again.body) == (first.status, first.body)
    assert service.memory().session.committed_through == 2


def test_the_order_of_members_makes_no_other_body() -> None:
    service = Service()
    turn = plain_turn(1)
    service.commit(turn, idempotency_key="k")
    turned = [dict(reversed(one.items())) for one in turn]
    assert service.commit(turned, idempotency_key="k").replayed


def test_another_body_under_the_same_key_is_refused() -> None:
    service = Service()
    service.commit(plain_turn(1), idempotency_key="k")
    with pytest.raises(IdempotencyMismatchError):
        service.commit(plain_turn(2), idempotency_key="k")
    assert service.memory().session.committed_through == 1


def test_a_key_counts_in_its_own_session_and_tenant_only() -> None:
    service = Service()
    for key in (KEY, SessionKey("tenant", "s2"), SessionKey("other", "s1")):
        answer = service.commit(plain_turn(1), key, idempotency_key="k")
        assert not answer.replayed
        assert service.memory(key).session.committed_through == 1


def test_a_key_is_forgotten_after_two_days() -> None:
    service = Service()
    service.commit(plain_turn(1), idempotency_key="k")
    service.clock.now += timedelta(hours=48)
    assert not service.commit(plain_turn(1), idempotency_key="k").replayed


# Races -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("existing", [0, 1])
@pytest.mark.parametrize(("at", "late"), ANY_CALL)
def test_two_commits_interleaved_at_any_call_both_count(existing: int, at: int, late: bool) -> None:
    service, interference = watched()
    service.commit_plain(existing)
    interference.arm(at, lambda: service.commit(plain_turn(8)), late=late)
    answer = service.commit(plain_turn(9))
    interference.disarm()
    found = numbers_and_markers(service)
    assert [number for number, _ in found] == list(range(1, existing + 3))
    texts = [text.split(":")[0] for _, text in found[existing:]]
    assert sorted(texts) == ["Question 8", "Question 9"]
    assert texts[answer.body["turn"] - existing - 1] == "Question 9"


@pytest.mark.parametrize(("at", "late"), ANY_CALL)
def test_one_request_sent_twice_at_once_commits_once(at: int, late: bool) -> None:
    service, interference = watched()
    inner: list[Any] = []
    interference.arm(
        at, lambda: inner.append(service.commit(plain_turn(1), idempotency_key="k")), late=late
    )
    outer = service.commit(plain_turn(1), idempotency_key="k")
    interference.disarm()
    assert service.memory().session.committed_through == 1
    assert inner[0].body == outer.body
    assert inner[0].replayed != outer.replayed


@pytest.mark.parametrize(("at", "late"), ANY_CALL)
def test_a_crash_anywhere_loses_nothing_acknowledged_and_a_retry_commits_once(
    at: int, late: bool
) -> None:
    service, interference = watched()
    service.commit_plain(2)
    interference.crash_at(at, late=late)
    with pytest.raises(Crash):
        service.commit(plain_turn(3), idempotency_key="k")
    answer = service.commit(plain_turn(3), idempotency_key="k")
    assert answer.body["turn"] == 3
    service.commit(plain_turn(4))
    texts = [text.split(":")[0] for _, text in numbers_and_markers(service)]
    assert texts == [f"Question {number}" for number in (1, 2, 3, 4)]


# Erasing -----------------------------------------------------------------------------------------


def test_a_session_that_is_being_erased_takes_no_turns() -> None:
    service = Service()
    service.commit(plain_turn(1))
    erasing(service)
    with pytest.raises(SessionErasingError):
        service.commit(plain_turn(2))


@pytest.mark.parametrize(("at", "late"), [(1, True), (2, False), (2, True), (3, False)])
def test_a_commit_does_not_slip_into_an_erasure(at: int, late: bool) -> None:
    service, interference = watched()
    service.commit(plain_turn(1))
    interference.arm(at, lambda: erasing(service), late=late)
    with pytest.raises(SessionErasingError):
        service.commit(plain_turn(2))
    assert service.raw_store._sessions[KEY].session.committed_through == 1


# The doorbell ------------------------------------------------------------------------------------


def test_a_silent_doorbell_does_not_fail_a_commit_and_leaves_it_due() -> None:
    service, interference = watched()

    def broken() -> None:
        raise StoreUnavailableError("no queue")

    interference.arm(4, broken)
    assert service.commit(plain_turn(1)).body["turn"] == 1
    assert len(service.queue) == 0
    assert service.memory().session.due_at is not None


def test_a_commit_that_leaves_no_work_rings_for_nothing() -> None:
    service = Service(pin_mode="off", tail_size=2, head_size=1)
    service.commit_plain(3)
    assert len(service.queue) == 0
    assert service.memory().session.due_at == service.memory().session.expires_at
    service.commit(plain_turn(4))
    assert len(service.queue) == 1


def test_a_commit_that_overlaps_the_end_of_a_compaction_stays_due() -> None:
    """The compactor says that nothing is due while a commit goes on that saw it due."""
    service, interference = watched()
    service.commit_plain(1)

    def compacted_then_deaf() -> None:
        service.drain()
        assert service.memory().session.due_at == service.memory().session.expires_at

    interference.arm(2, compacted_then_deaf)
    service.commit(plain_turn(2))
    service.queue._messages.clear()
    assert service.memory().session.due_at is not None


@pytest.mark.parametrize(("at", "late"), ANY_CALL)
def test_a_commit_that_overlaps_a_change_of_settings_stays_due(at: int, late: bool) -> None:
    """Judgement is switched on, and all there is was judged, while a commit goes on without it."""
    service, interference = watched(pin_mode="off")
    service.commit_plain(1)

    def switched_on_then_deaf() -> None:
        service.sessions.patch(KEY, SessionInput(settings={"pin_mode": "async"}))
        service.drain()

    interference.arm(at, switched_on_then_deaf, late=late)
    service.commit(plain_turn(2))
    if interference.disarm():
        return
    service.queue._messages.clear()
    for _ in range(3):
        service.clock.advance(300)
        service.sweep()
        service.drain()
    assert service.memory().session.judged_through == 2


def test_the_answer_is_that_of_a_plain_request() -> None:
    service = Service()
    request = IdempotentRequest.of("POST turns", "k", {})
    committed = service.commit_turn(KEY, TurnToCommit(tuple(plain_turn(1))), request)
    assert committed.turn is not None
    assert committed.session == service.memory().session
    assert committed.answer.body["turn_id"] == committed.turn.turn_id
    watermark = committed.answer.body["watermark"]
    assert watermark["committed_through"] == 1
    assert watermark["pending_turns"] == 1


# Lost races --------------------------------------------------------------------------------------


def outrun(times: int) -> tuple[Service, Interference]:
    """A session in which another client's turn comes before each of the first writes."""
    service, interference = watched()
    rival = replace(service.commit_turn, store=service.raw_store, archive=service.raw_archive)
    numbers = iter(range(1, times + 1))

    def overtake(port: str, method: str, _given: tuple[Any, ...]) -> None:
        number = next(numbers, None) if (port, method) == ("store", "write") else None
        if number is not None:
            messages = plain_turn(100 + number)
            rival(KEY, TurnToCommit(messages), IdempotentRequest.of("x", f"{number}", messages))

    interference.before.append(overtake)
    return service, interference


def test_a_commit_that_nobody_disturbs_waits_for_nothing() -> None:
    service, interference = outrun(0)
    service.commit(plain_turn(1))
    assert interference.log == READ_WRITE_RING
    assert service.pauses == []


def test_a_lost_race_is_run_again_after_a_pause_that_may_grow() -> None:
    service, interference = outrun(ATTEMPTS - 1)
    answer = service.commit(plain_turn(1))
    assert answer.body["turn"] == ATTEMPTS
    assert [number for number, _ in numbers_and_markers(service)] == list(range(1, ATTEMPTS + 1))
    longest = [min(LONGEST_PAUSE_SECONDS, PAUSE_SECONDS * 2**at) for at in range(ATTEMPTS - 1)]
    assert len(service.pauses) == len(longest)
    assert all(0 <= one <= most for one, most in zip(service.pauses, longest, strict=True))
    assert len(set(service.pauses)) > 1, "those who lost together would meet again"
    assert interference.log.count("store.write") == ATTEMPTS


def test_who_loses_every_race_is_told_and_leaves_no_turn() -> None:
    service, interference = outrun(ATTEMPTS)
    with pytest.raises(CommitConflictError):
        service.commit(plain_turn(1))
    assert interference.log.count("store.write") == ATTEMPTS
    assert len(service.pauses) == ATTEMPTS - 1
    assert len(numbers_and_markers(service)) == ATTEMPTS


def test_a_request_that_has_no_time_left_runs_no_other_race(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, interference = outrun(ATTEMPTS)
    now = [0.0]
    monkeypatch.setattr(commit_turn, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def pause(_seconds: float) -> None:
        now[0] += PATIENCE_SECONDS / 2

    service.commit_turn = replace(service.commit_turn, pause=pause)
    with pytest.raises(CommitConflictError):
        service.commit(plain_turn(1))
    assert interference.log.count("store.write") == 3
