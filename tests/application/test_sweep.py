"""The sweep: bells that were lost are rung again, with a growing pause."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from support.interference import Crash, Interference
from support.service import KEY, ScriptedModel, Service, plain_turn
from turnfold.application.sweep import MAX_PAUSE_SECONDS, PAGE, SweepReport
from turnfold.domain.errors import StoreUnavailableError
from turnfold.domain.limits import DUE_SHARDS, SWEEP_GRACE_SECONDS
from turnfold.domain.sessions import SessionKey, SessionStatus


def deaf(service: Service) -> None:
    """Lose every message of the queue."""
    service.queue._messages.clear()


def test_nothing_due_rings_for_nothing() -> None:
    service = Service()
    assert service.sweep() == SweepReport(0, 0)
    service.commit_plain(3)
    deaf(service)
    service.clock.advance(SWEEP_GRACE_SECONDS - 1)
    assert service.sweep() == SweepReport(0, 0)
    assert len(service.queue) == 0


def test_a_lost_doorbell_is_rung_again_and_all_is_done() -> None:
    service = Service(model=ScriptedModel())
    service.commit_plain(5)
    deaf(service)
    service.clock.advance(SWEEP_GRACE_SECONDS)
    assert service.sweep() == SweepReport(1, 0)
    service.drain()
    session = service.memory().session
    assert session.judged_through == 5
    assert session.due_at == session.expires_at
    assert session.sweeps == 0
    service.clock.advance(6 * 86_400)
    assert service.sweep() == SweepReport(0, 0)


def test_the_pause_grows_while_nobody_hears() -> None:
    service = Service()
    service.commit_plain(5)
    pauses = []
    for _ in range(12):
        due_at = service.memory().session.due_at
        assert due_at is not None
        service.clock.now = due_at
        assert service.sweep().rung == 1
        deaf(service)
        again = service.memory().session.due_at
        assert again is not None
        pauses.append((again - service.clock.now).total_seconds())
    assert pauses[:3] == [120, 240, 480]
    assert pauses == sorted(pauses)
    assert pauses[-1] == MAX_PAUSE_SECONDS


def test_a_sweep_is_no_change_that_a_reader_sees() -> None:
    service = Service()
    service.commit_plain(3)
    before = service.memory().session.revision
    service.clock.advance(SWEEP_GRACE_SECONDS)
    service.sweep()
    assert service.memory().session.revision == before


def test_more_due_sessions_than_a_page_are_all_rung() -> None:
    service = Service()
    count = 2 * PAGE * DUE_SHARDS
    for number in range(count):
        service.commit(plain_turn(1), SessionKey("t", f"s{number}"))
    deaf(service)
    service.clock.advance(SWEEP_GRACE_SECONDS)
    assert service.sweep() == SweepReport(count, 0)
    assert len(service.queue) == count


def test_a_full_page_of_sessions_that_are_being_erased_does_not_turn_for_ever() -> None:
    service = Service()
    for number in range(2 * PAGE * DUE_SHARDS):
        key = SessionKey("t", f"s{number}")
        service.commit(plain_turn(1), key)
        items = service.raw_store._sessions[key]
        items.session = replace(items.session, status=SessionStatus.ERASING)
    deaf(service)
    service.clock.advance(SWEEP_GRACE_SECONDS)
    assert service.sweep().failed == 0
    assert len(service.queue) == 0, "only the archivist is rung for"
    assert service.sweep().rung == 0


def test_a_sweep_ends_when_time_is_up() -> None:
    service = Service()
    service.commit_plain(1)
    service.clock.advance(SWEEP_GRACE_SECONDS)
    assert service.sweep(lambda: 0.0) == SweepReport(0, 0)


def test_what_fails_is_counted_and_comes_again() -> None:
    interference = Interference()
    service = Service(wrap=interference.wrap)
    service.commit_plain(1)
    deaf(service)

    def silent(port: str, method: str, given: object) -> None:
        if port == "doorbell":
            raise StoreUnavailableError("silent")

    interference.before.append(silent)
    service.clock.advance(SWEEP_GRACE_SECONDS)
    assert service.sweep() == SweepReport(0, 1)
    interference.before.clear()
    service.clock.advance(SWEEP_GRACE_SECONDS)
    assert service.sweep() == SweepReport(1, 0)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("at", range(1, 13))
def test_a_crash_of_the_sweeper_delays_but_loses_nothing(at: int, late: bool) -> None:
    interference = Interference()
    service = Service(model=ScriptedModel(), wrap=interference.wrap)
    service.commit_plain(5)
    deaf(service)
    service.clock.advance(SWEEP_GRACE_SECONDS)
    interference.crash_at(at, late=late)
    try:
        service.sweep()
    except Crash:
        deaf(service)
    interference.disarm()
    for _ in range(3):
        service.clock.now += timedelta(seconds=SWEEP_GRACE_SECONDS * 2)
        service.sweep()
        service.drain()
    assert service.memory(KEY).session.judged_through == 5
    assert service.memory(KEY).session.due_at == service.memory(KEY).session.expires_at
