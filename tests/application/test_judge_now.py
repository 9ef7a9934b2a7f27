"""Judging in the request that committed the turn (`pin_mode` "sync")."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from support.interference import Crash, Interference
from support.service import KEY, ScriptedModel, Service, down, plain_turn
from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.commit_turn import TurnToCommit

if TYPE_CHECKING:
    from turnfold.application.ports.models import ModelRequest


def facts(*texts: str, turn: int) -> str:
    found = [
        {
            "turn": turn,
            "text": text,
            "confidence": 0.9,
            "said_by": "user",
            "replaces_pin_id": None,
        }
        for text in texts
    ]
    return json.dumps({"facts": found, "retracted_pin_ids": []})


def many_facts(request: ModelRequest) -> str:
    """Five facts of each turn that is asked about."""
    rows = [json.loads(row) for row in request.data.splitlines() if row.startswith("{")]
    turns = sorted({row["turn"] for row in rows if "turn" in row})
    answers = [
        json.loads(facts(*(f"fact {n}-{turn}" for n in range(5)), turn=turn)) for turn in turns
    ]
    found = [fact for answer in answers for fact in answer["facts"]]
    return json.dumps({"facts": found, "retracted_pin_ids": []})


def post(service: Service, number: int, key: str) -> Answer:
    """A commit as the API does it."""
    messages = plain_turn(number)
    request = IdempotentRequest.of("POST turns", key, {"messages": messages})
    committed = service.commit_turn(KEY, TurnToCommit(tuple(messages)), request)
    if committed.session is None or committed.session.settings.pin_mode != "sync":
        return committed.answer
    return service.judge_now(KEY, committed.answer, request)


def test_the_answer_lists_what_was_pinned() -> None:
    service = Service(model=ScriptedModel(replies=[facts("Likes tea.", turn=1)]), pin_mode="sync")
    answer = post(service, 1, "k")
    assert [pin["text"] for pin in answer.body["pins"]] == ["Likes tea."]
    assert not answer.body.get("pins_pending")
    assert answer.body["watermark"]["judged_through"] == 1
    assert answer.body["watermark"]["pending_turns"] == 0
    assert [pin.text for pin in service.memory().pins] == ["Likes tea."]


def test_a_repetition_is_answered_the_same() -> None:
    service = Service(model=ScriptedModel(replies=[facts("Likes tea.", turn=1)]), pin_mode="sync")
    first = post(service, 1, "k")
    again = post(service, 1, "k")
    assert again.replayed
    assert (again.status, again.body) == (first.status, first.body)
    assert len(service.model.requests if service.model else ()) == 1


@pytest.mark.parametrize("answer", ["down", "not JSON"])
def test_when_the_model_fails_the_turn_is_pending_and_a_repetition_says_so(answer: str) -> None:
    model = ScriptedModel(always=down if answer == "down" else lambda _request: answer)
    service = Service(model=model, pin_mode="sync")
    first = post(service, 1, "k")
    assert first.status == 201
    assert first.body["pins"] == []
    assert first.body["pins_pending"] is True
    assert post(service, 1, "k").body == first.body
    model.always = None
    model.replies = [facts("Likes tea.", turn=1)]
    service.drain()
    assert [pin.text for pin in service.memory().pins] == ["Likes tea."]
    assert post(service, 1, "k").body == first.body


def test_when_the_compactor_was_faster_a_repetition_is_answered_the_same() -> None:
    interference = Interference()
    model = ScriptedModel()
    service = Service(model=model, wrap=interference.wrap, pin_mode="sync")
    service.commit(plain_turn(1))
    for at in range(5, 12):
        interference.arm(at, lambda: service.ring(KEY), late=False)
        first = post(service, at, f"k{at}")
        interference.disarm()
        assert post(service, at, f"k{at}").body == first.body


@pytest.mark.parametrize(("at", "late"), list(itertools.product(range(1, 10), [False, True])))
def test_after_a_crash_the_turn_is_there_once_and_gets_judged(at: int, late: bool) -> None:
    interference = Interference()
    model = ScriptedModel(always=many_facts)
    service = Service(model=model, wrap=interference.wrap, pin_mode="sync")
    interference.crash_at(at, late=late)
    with suppress(Crash):
        post(service, 1, "k")
    interference.disarm()
    again = post(service, 1, "k")
    assert again.body["turn"] == 1
    assert again == post(service, 1, "k") or not again.replayed
    service.clock.advance(200)
    service.sweep()
    service.drain()
    assert service.memory().session.judged_through == 1
    assert len(service.memory().pins) == 5


def test_a_backlog_full_of_facts_fits_the_transaction() -> None:
    """Sixteen turns of five facts are 80 pins; one write takes fewer than 50."""
    model = ScriptedModel(always=down)
    service = Service(model=model, pin_mode="sync", max_pin_count=100, max_pin_tokens=10_000)
    for number in range(1, 16):
        post(service, number, f"k{number}")
    model.always = many_facts
    answer = post(service, 16, "k")
    assert answer.status == 201
    assert answer.body["turn"] == 16
    service.drain()
    assert len(service.memory().pins) == 80


def test_a_backlog_larger_than_a_batch_leaves_the_turn_pending() -> None:
    model = ScriptedModel(always=down)
    service = Service(model=model, pin_mode="sync")
    for number in range(1, 20):
        post(service, number, f"k{number}")
    model.always = None
    answer = post(service, 20, "k")
    assert answer.body["watermark"]["judged_through"] < 20
    assert answer.body["pins_pending"] is True


def test_the_status_of_the_commit_is_kept() -> None:
    service = Service(model=ScriptedModel(), pin_mode="sync")
    messages = plain_turn(1)
    request = IdempotentRequest.of("POST chat", "k", {})
    turn = TurnToCommit(tuple(messages))
    committed = service.commit_turn(KEY, turn, request, extra={"usage": {}})
    answer = service.judge_now(KEY, committed.answer, request)
    again: Any = service.commit_turn(KEY, turn, request).answer
    assert (again.status, again.body) == (answer.status, answer.body)
    assert answer.status == 200
