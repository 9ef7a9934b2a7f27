"""Draining batches of doorbell messages: grouped by session, failing session by session."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from support.invariants import check_i5_bounded
from support.service import ScriptedModel, Service, plain_turn
from turnfold.application.compact_session import Outcome, Ring
from turnfold.application.drain_batch import DrainBatch, FailedKnock, Knock, back_off
from turnfold.domain.errors import ThrottledError
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnfold.application.compact_session import CompactSession

A, B, C = (SessionKey("t", name) for name in "abc")


class Compactor:
    """Notes what it is asked for and fails for some sessions."""

    def __init__(self, failing: dict[SessionKey, Exception] | None = None) -> None:
        self.asked: list[tuple[SessionKey, Ring]] = []
        self.failing = failing or {}

    def __call__(
        self, key: SessionKey, ring: Ring, seconds_left: Callable[[], float] = lambda: 1e9
    ) -> Outcome:
        self.asked.append((key, ring))
        if key in self.failing:
            raise self.failing[key]
        return Outcome.DONE


def drain(compactor: Compactor, *knocks: Knock) -> tuple[FailedKnock, ...]:
    return DrainBatch(cast("CompactSession", compactor))(knocks)


def test_a_session_is_looked_at_once_for_all_its_messages() -> None:
    compactor = Compactor()
    knocks = [
        Knock("1", A, Ring(1)),
        Knock("2", B, Ring(4)),
        Knock("3", A, Ring(3)),
        Knock("4", A, Ring(2, forced=True)),
    ]
    assert drain(compactor, *knocks) == ()
    assert compactor.asked == [(A, Ring(3, forced=True)), (B, Ring(4))]


@pytest.mark.parametrize("error", [ThrottledError("slow down"), ValueError("a fault of ours")])
def test_a_failing_session_gets_its_messages_back_and_no_other_one(error: Exception) -> None:
    compactor = Compactor({B: error})
    knocks = [
        Knock("1", B, Ring(1), 1),
        Knock("2", A, Ring(1)),
        Knock("3", B, Ring(2), 3),
        Knock("4", C, Ring(1)),
    ]
    assert drain(compactor, *knocks) == (FailedKnock("1", 2), FailedKnock("3", 60))
    assert [key for key, _ in compactor.asked] == [B, A, C]


def test_an_unreadable_message_fails_alone() -> None:
    compactor = Compactor()
    knocks = [Knock("1", None, None), Knock("2", A, Ring(1))]
    assert drain(compactor, *knocks) == (FailedKnock("1", 2),)
    assert compactor.asked == [(A, Ring(1))]


def test_a_batch_of_nothing_does_nothing() -> None:
    assert drain(Compactor()) == ()


def test_the_pause_grows_to_a_bound() -> None:
    pauses = [back_off(count) for count in range(8)]
    assert pauses == sorted(pauses)
    assert pauses[0] == pauses[1] == 2
    assert pauses[-1] == pauses[4] == 300


def test_one_batch_serves_several_sessions_and_tenants() -> None:
    service = Service(model=ScriptedModel())
    keys = (A, B, SessionKey("other", "a"))
    for number in range(1, 4):
        for key in keys:
            service.commit(plain_turn(number), key)
    service.clock.advance(1)
    batch = service.queue.receive()
    assert len({message.group for message in batch}) == 3
    assert service.deliver(batch) == []
    for key in keys:
        check_i5_bounded(service, key)


def test_an_unreadable_body_ends_in_the_dead_letters_and_holds_nobody_up() -> None:
    service = Service(model=ScriptedModel())
    service.queue.send("group of nobody", "d1", "{not json")
    for number in range(1, 4):
        service.commit(plain_turn(number), A)
    service.drain()
    assert len(service.dead_letters) == 1
    check_i5_bounded(service, A)
