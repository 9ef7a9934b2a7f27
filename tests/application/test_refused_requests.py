"""A model that refuses one request (a content filter, a window) still serves all others."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from support.service import KEY, ScriptedModel, Service, down, plain_turn, usual_reply
from turnfold.application.answer import IdempotentRequest
from turnfold.application.pins_by_hand import PinInput
from turnfold.domain.errors import ModelFailedError

if TYPE_CHECKING:
    from support.service import Reply
    from turnfold.application.ports.models import ModelRequest

REFUSED = "zzz-filtered"


def filtering(request: ModelRequest) -> Reply:
    """Refuses whatever holds the word."""
    if REFUSED in request.data:
        return ModelFailedError("the model refused the request", 400)
    return usual_reply(request)


def commit(service: Service, number: int, *, refused: bool = False) -> None:
    messages = plain_turn(number)
    if refused:
        messages[0]["content"] = f"{REFUSED} {messages[0]['content']}"
    service.commit(messages)


def test_a_refused_judgement_leaves_the_folds_to_the_model() -> None:
    service = Service(model=ScriptedModel(always=filtering), window_max_size=2)
    commit(service, 1, refused=True)
    for number in range(2, 7):
        commit(service, number)
    service.drain()
    memory = service.memory()
    assert memory.session.rejudge
    assert memory.summaries
    assert not any(one.degraded for one in memory.summaries)


def test_what_a_refused_turn_waits_for_holds_up_no_other_redo() -> None:
    model = ScriptedModel(always=filtering)
    service = Service(model=model, window_max_size=2)
    commit(service, 1, refused=True)
    service.drain()
    model.always = down
    for number in range(2, 7):
        commit(service, number)
    service.drain()
    assert service.memory().session.degraded
    model.always = filtering
    service.ring()
    assert service.memory().session.rejudge
    assert not service.memory().session.degraded


def test_a_refused_summary_holds_up_no_other_redo() -> None:
    model = ScriptedModel(always=down)
    service = Service(model=model, window_max_size=4, window_token_threshold=100_000)
    for number in range(1, 30):
        commit(service, number, refused=number == 2)
        service.drain()
    before = service.memory().summaries
    assert len(before) > 1
    assert all(one.degraded for one in before)
    model.always = lambda request: (
        ModelFailedError("the model refused the request", 400)
        if f'"turn": {before[0].from_turn},' in request.data
        or f'"turns": "{before[0].from_turn}-' in request.data
        else usual_reply(request)
    )
    service.ring()
    degraded = [one.degraded for one in service.memory().summaries]
    assert degraded[0]
    assert not any(degraded[1:])


def half(request: ModelRequest) -> Reply:
    """Makes one pin of two."""
    if request.purpose != "pin_aggregation":
        return usual_reply(request)
    ids = re.findall(r'"pin_id": "([^"]+)"', request.data)
    pairs = [ids[at : at + 2] for at in range(0, len(ids), 2)]
    facts = [{"text": f"Of {' '.join(pair)}.", "folds_pin_ids": pair} for pair in pairs]
    return json.dumps({"facts": facts})


def test_pins_are_folded_until_their_limit_though_one_fold_takes_fewer() -> None:
    model = ScriptedModel(always=half)
    service = Service(model=model, max_pin_count=10, max_pin_tokens=100_000)
    commit(service, 1)
    for number in range(100):
        request = IdempotentRequest.of("POST pins", f"pin-{number}", {})
        service.pins.add(KEY, PinInput(text=f"Fact {number}."), request)
    service.ring()
    assert len(service.memory().pins) <= 25
    assert len(model.purposes()) <= 12
