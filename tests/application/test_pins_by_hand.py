"""Pins that are made, changed and removed by hand."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from support.interference import Interference
from support.invariants import check_i5_bounded, check_pins_agree
from support.service import KEY, ScriptedModel, Service, plain_turn
from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.pins_by_hand import PinInput, pin_input
from turnfold.domain.errors import (
    IdempotencyMismatchError,
    InvalidPinError,
    PinFoldedError,
    PinNotFoundError,
    SessionNotFoundError,
    StaleEtagError,
)
from turnfold.domain.limits import MAX_PINS
from turnfold.domain.pins import PinStatus
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from turnfold.domain.pins import Pin

_names = itertools.count()


def add(service: Service, text: str, key: SessionKey = KEY, **members: Any) -> Answer:
    request = IdempotentRequest.of("POST pins", f"pin-{next(_names)}", {"text": text})
    return service.pins.add(key, PinInput(text=text, **members), request)


def with_session(**settings: Any) -> Service:
    service = Service(**settings)
    service.commit(plain_turn(1))
    return service


def texts(service: Service, status: PinStatus = PinStatus.ACTIVE) -> list[str]:
    return [pin.text for pin in service.pins.list(KEY, status, 100, None).items]


# Input -------------------------------------------------------------------------------------------


def test_a_pin_of_all_members() -> None:
    given = pin_input(
        {
            "text": "  Likes tea. ",
            "confidence": 1,
            "status": "active",
            "sources": [{"turn": 3}],
            "replaces": "p1",
        }
    )
    assert given == PinInput("Likes tea.", PinStatus.ACTIVE, 1.0, (3,), "p1")


@pytest.mark.parametrize(
    "body",
    [
        {"text": ""},
        {"text": " \n"},
        {"text": 5},
        {"text": None},
        {"text": "x" * 2001},
        {"status": "folded"},
        {"status": "quarantined"},
        {"status": ["active"]},
        {"confidence": 1.1},
        {"confidence": -0.1},
        {"confidence": True},
        {"confidence": "1"},
        {"confidence": float("nan")},
        {"sources": "3"},
        {"sources": [3]},
        {"sources": [{"turn": 0}]},
        {"sources": [{"turn": "3"}]},
        {"sources": [{"turn": True}]},
        {"sources": [{"turn": 10**12}]},
        {"sources": [{"turn": 3}] * 101},
        {"replaces": 3},
    ],
)
def test_bad_members_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(InvalidPinError):
        pin_input(body)


def test_confidence_and_sources_can_be_changed() -> None:
    service = with_session()
    pin_id = add(service, "Likes tea.", confidence=0.9).body["pin_id"]
    changed = service.pins.change(KEY, pin_id, PinInput(confidence=0.1, sources=(1,)))
    assert (changed.text, changed.confidence, changed.sources) == ("Likes tea.", 0.1, (1,))
    assert service.pins.get(KEY, pin_id) == changed
    assert service.pins.change(KEY, pin_id, PinInput(text="Tea.")).confidence == 0.1


# Adding ------------------------------------------------------------------------------------------


def test_a_pin_is_added_with_the_operators_trust() -> None:
    service = with_session()
    answer = add(service, "Likes tea.", sources=(1,))
    assert answer.status == 201
    assert answer.body["trust"] == "operator"
    assert answer.body["status"] == "active"
    assert answer.body["confidence"] == 1.0
    assert answer.body["sources"] == [{"turn": 1}]
    assert texts(service) == ["Likes tea."]
    assert service.pins.get(KEY, answer.body["pin_id"]).text == "Likes tea."


def test_the_same_request_pins_once() -> None:
    service = with_session()
    request = IdempotentRequest.of("POST pins", "k", {"text": "a"})
    first = service.pins.add(KEY, PinInput(text="a"), request)
    again = service.pins.add(KEY, PinInput(text="a"), request)
    assert again.replayed
    assert again.body == first.body
    assert texts(service) == ["a"]
    other = IdempotentRequest.of("POST pins", "k", {"text": "b"})
    with pytest.raises(IdempotencyMismatchError):
        service.pins.add(KEY, PinInput(text="b"), other)


def test_a_pin_that_replaces_invalidates_the_named_one() -> None:
    service = with_session()
    old = add(service, "Lives in Rome.").body["pin_id"]
    new = add(service, "Lives in Oslo.", replaces=old)
    assert new.body["replaces"] == old
    assert texts(service) == ["Lives in Oslo."]
    assert texts(service, PinStatus.INVALIDATED) == ["Lives in Rome."]


def test_only_an_active_pin_can_be_replaced() -> None:
    service = with_session()
    old = add(service, "a").body["pin_id"]
    service.pins.change(KEY, old, PinInput(status=PinStatus.INVALIDATED))
    for name in (old, "unknown"):
        with pytest.raises(PinNotFoundError):
            add(service, "b", replaces=name)


def test_there_is_room_for_so_many_and_a_replacement() -> None:
    service = with_session(max_pin_count=100)
    ids = [add(service, f"fact {number}").body["pin_id"] for number in range(MAX_PINS)]
    with pytest.raises(InvalidPinError):
        add(service, "one more")
    add(service, "in its place", replaces=ids[0])
    with pytest.raises(InvalidPinError):
        service.pins.change(KEY, ids[0], PinInput(status=PinStatus.ACTIVE))
    service.pins.remove(KEY, ids[1])
    add(service, "one more")
    check_pins_agree(service, service.memory())


def test_a_pin_needs_a_text_and_a_session() -> None:
    service = with_session()
    with pytest.raises(InvalidPinError):
        service.pins.add(KEY, PinInput(), IdempotentRequest.of("POST pins", "k", {}))
    with pytest.raises(SessionNotFoundError):
        add(service, "a", SessionKey("tenant", "unknown"))
    with pytest.raises(SessionNotFoundError):
        add(service, "a", SessionKey("other tenant", KEY.session_id))


# Changing and removing ---------------------------------------------------------------------------


def test_a_pin_is_reworded_in_place() -> None:
    service = with_session()
    pin_id = add(service, "Lives in Rome.").body["pin_id"]
    changed = service.pins.change(KEY, pin_id, PinInput(text="Lives in Oslo."))
    assert (changed.pin_id, changed.text) == (pin_id, "Lives in Oslo.")
    assert texts(service) == ["Lives in Oslo."]
    check_pins_agree(service, service.memory())


def test_a_pin_is_invalidated_and_made_active_again() -> None:
    service = with_session()
    pin_id = add(service, "a").body["pin_id"]
    for status in (PinStatus.INVALIDATED, PinStatus.INVALIDATED, PinStatus.ACTIVE):
        assert service.pins.change(KEY, pin_id, PinInput(status=status)).status is status
        check_pins_agree(service, service.memory())
    assert texts(service) == ["a"]


def test_a_stale_etag_changes_nothing() -> None:
    service = with_session()
    pin_id = add(service, "a").body["pin_id"]
    etag = service.pins.get(KEY, pin_id).etag
    service.pins.change(KEY, pin_id, PinInput(text="b"), frozenset([etag]))
    with pytest.raises(StaleEtagError):
        service.pins.change(KEY, pin_id, PinInput(text="c"), frozenset([etag]))
    assert texts(service) == ["b"]


def test_a_removed_pin_is_gone_in_every_status() -> None:
    service = with_session()
    active, former = (add(service, text).body["pin_id"] for text in "ab")
    service.pins.change(KEY, former, PinInput(status=PinStatus.INVALIDATED))
    for pin_id in (active, former):
        service.pins.remove(KEY, pin_id)
        with pytest.raises(PinNotFoundError):
            service.pins.get(KEY, pin_id)
        with pytest.raises(PinNotFoundError):
            service.pins.remove(KEY, pin_id)
        with pytest.raises(PinNotFoundError):
            service.pins.change(KEY, pin_id, PinInput(text="c"))
    assert service.memory().session.pin_count == 0


def test_pages_of_pins_are_complete_though_pins_go_meanwhile() -> None:
    service = with_session(max_pin_count=100)
    ids = [add(service, f"fact {number}").body["pin_id"] for number in range(7)]
    found: list[Pin] = []
    position = None
    while True:
        page = service.pins.list(KEY, PinStatus.ACTIVE, 2, position)
        found += page.items
        position = page.next_position
        if position is None:
            break
        with suppress(PinNotFoundError):
            service.pins.remove(KEY, ids[1])
    assert [pin.pin_id for pin in found] == ids


# Races and the background work -------------------------------------------------------------------


@pytest.mark.parametrize(("at", "late"), list(itertools.product(range(1, 4), [False, True])))
def test_two_pins_added_at_once_both_stay(at: int, late: bool) -> None:
    interference = Interference()
    service = Service(wrap=interference.wrap)
    service.commit(plain_turn(1))
    interference.arm(at, lambda: add(service, "inner"), late=late)
    add(service, "outer")
    assert sorted(texts(service)) == ["inner", "outer"]
    check_pins_agree(service, service.memory())


@pytest.mark.parametrize(("at", "late"), list(itertools.product(range(1, 4), [False, True])))
def test_one_request_sent_twice_at_once_pins_once(at: int, late: bool) -> None:
    interference = Interference()
    service = Service(wrap=interference.wrap)
    service.commit(plain_turn(1))
    request = IdempotentRequest.of("POST pins", "k", {"text": "a"})
    inner: list[Answer] = []
    interference.arm(
        at, lambda: inner.append(service.pins.add(KEY, PinInput(text="a"), request)), late=late
    )
    outer = service.pins.add(KEY, PinInput(text="a"), request)
    assert texts(service) == ["a"]
    assert inner[0].body == outer.body


@pytest.mark.parametrize(("at", "late"), list(itertools.product(range(1, 4), [False, True])))
def test_a_pin_removed_while_it_is_reworded_does_not_come_back(at: int, late: bool) -> None:
    interference = Interference()
    service = Service(wrap=interference.wrap)
    service.commit(plain_turn(1))
    pin_id = add(service, "a").body["pin_id"]
    interference.arm(at, lambda: service.pins.remove(KEY, pin_id), late=late)
    with suppress(PinNotFoundError):
        service.pins.change(KEY, pin_id, PinInput(text="b"))
    if not interference.disarm():
        assert texts(service) == []
    check_pins_agree(service, service.memory())


def test_pins_over_the_limit_get_folded_without_another_commit() -> None:
    service = Service(model=ScriptedModel(), max_pin_count=3)
    service.commit(plain_turn(1))
    service.drain()
    assert service.memory().session.due_at == service.memory().session.expires_at
    for number in range(4):
        add(service, f"fact {number}")
    service.clock.advance(130)
    service.sweep()
    service.drain()
    (pin,) = service.memory().pins
    assert pin.trust == "operator"
    assert len(pin.folded_from) == 4
    check_i5_bounded(service, KEY)


def test_a_folded_pin_is_changed_where_it_is_said_now() -> None:
    service = Service(max_pin_count=1)
    service.commit(plain_turn(1))
    first = add(service, "No meat.").body["pin_id"]
    for text in ("No milk.", "No nuts."):
        add(service, text)
        service.clock.advance(130)
        service.sweep()
        service.drain()
    (joined,) = service.memory().pins
    assert joined.text == "No meat. No milk. No nuts."
    assert first not in joined.folded_from, "it was folded twice over"
    with pytest.raises(PinFoldedError, match=joined.pin_id):
        service.pins.change(KEY, first, PinInput(text="Meat is fine."))
    with pytest.raises(PinFoldedError, match=joined.pin_id):
        service.pins.remove(KEY, first)
    service.pins.remove(KEY, joined.pin_id)
    service.pins.remove(KEY, first)
    with pytest.raises(PinNotFoundError):
        service.pins.get(KEY, first)


def test_pins_within_the_limit_leave_no_work() -> None:
    service = Service(model=ScriptedModel(), max_pin_count=3)
    service.commit(plain_turn(1))
    service.drain()
    add(service, "a")
    assert service.memory().session.due_at == service.memory().session.expires_at
    check_i5_bounded(service, KEY)
