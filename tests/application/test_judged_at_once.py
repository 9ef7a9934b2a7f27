"""The compactor does not judge what the committing request judges at the same moment."""

from __future__ import annotations

import pytest

from support.service import KEY, ScriptedModel, Service, down, plain_turn, usual_reply
from turnfold.application.answer import IdempotentRequest
from turnfold.application.commit_turn import Committed, TurnToCommit


def commit(service: Service, request: IdempotentRequest) -> Committed:
    turn = TurnToCommit(tuple(plain_turn(1)))
    return service.commit_turn(KEY, turn, request, judged_next=True)


def test_the_bell_rings_after_the_judgement() -> None:
    model = ScriptedModel()
    service = Service(model=model, pin_mode="sync")
    request = IdempotentRequest.of("POST turns", "k", {})
    committed = commit(service, request)
    service.drain()
    assert not model.requests
    service.judge_now(KEY, committed.answer, request)
    service.commit_turn.ring(committed)
    service.drain()
    assert model.purposes() == ["pin_judgement"]
    assert service.memory().session.judged_through == 1


def test_a_judgement_that_failed_is_left_to_the_compactor() -> None:
    model = ScriptedModel(always=down)
    service = Service(model=model, pin_mode="sync")
    request = IdempotentRequest.of("POST turns", "k", {})
    committed = commit(service, request)
    service.judge_now(KEY, committed.answer, request)
    model.always = usual_reply
    service.commit_turn.ring(committed)
    service.drain()
    assert service.memory().session.judged_through == 1


def test_the_sweeper_rings_if_the_process_died_before_the_bell() -> None:
    service = Service(model=ScriptedModel(), pin_mode="sync")
    commit(service, IdempotentRequest.of("POST turns", "k", {}))
    due_at = service.memory().session.due_at
    assert due_at
    service.clock.now = due_at
    service.sweep()
    service.drain()
    assert service.memory().session.judged_through == 1


@pytest.mark.parametrize("pin_mode", ["async", "off"])
def test_other_sessions_ring_at_once(pin_mode: str) -> None:
    service = Service(model=ScriptedModel(), pin_mode=pin_mode, tail_size=1, window_max_size=1)
    for number in range(1, 5):
        turn = TurnToCommit(tuple(plain_turn(number)))
        request = IdempotentRequest.of("POST turns", f"k{number}", {})
        service.commit_turn(KEY, turn, request, judged_next=True)
    service.drain()
    assert service.memory().summaries
