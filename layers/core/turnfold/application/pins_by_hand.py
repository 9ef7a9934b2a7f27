"""Pins that people and applications make, change and remove themselves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.due_work import due_time
from turnfold.application.keep_by_hand import KeepByHand
from turnfold.application.pin_changes import pin_change
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.memory import IdempotencyRecord, MemoryStore, Page
from turnfold.application.ports.models import TokenCounter
from turnfold.application.read_memory import require_memory
from turnfold.application.views import pin_view
from turnfold.domain.errors import (
    CommitConflictError,
    GuardFailedError,
    InvalidPinError,
    PinFoldedError,
    PinNotFoundError,
    SessionErasingError,
    SessionNotFoundError,
)
from turnfold.domain.etags import require_match
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.pin_rules import PinEdit, PinFactory, check_pin_text, check_room
from turnfold.domain.pins import Pin, PinStatus, Trust
from turnfold.domain.planner import pins_to_fold
from turnfold.domain.sessions import Session, SessionKey, SessionStatus

ATTEMPTS = 8

MAX_PIN_SOURCES = 100
"""A fact is said and corrected in a few turns, and all active pins have to be one small query."""

MAX_TURN_NUMBER = 999_999_999_999
"""Twelve digits, as turn numbers are stored (design, section 5)."""

EDITABLE = (PinStatus.ACTIVE, PinStatus.INVALIDATED)


@dataclass(frozen=True, slots=True)
class PinInput:
    """What a client says about a pin; None where it says nothing."""

    text: str | None = None
    status: PinStatus | None = None
    confidence: float | None = None
    sources: tuple[int, ...] | None = None
    replaces: str | None = None


def pin_input(body: Mapping[str, Any]) -> PinInput:
    """The checked members of a pin. Raises `InvalidPinError` naming the member."""
    text = check_pin_text(body["text"]) if "text" in body else None
    status = body.get("status")
    if status is not None and status not in [one.value for one in EDITABLE]:
        raise InvalidPinError(f"status must be {' or '.join(one.value for one in EDITABLE)}")
    confidence = body.get("confidence")
    if confidence is not None and (
        isinstance(confidence, bool)
        or not isinstance(confidence, int | float)
        or not 0 <= confidence <= 1
    ):
        raise InvalidPinError("confidence must be a number from 0 to 1")
    replaces = body.get("replaces")
    if replaces is not None and not isinstance(replaces, str):
        raise InvalidPinError("replaces must be the id of a pin")
    return PinInput(
        text=text,
        status=None if status is None else PinStatus(status),
        confidence=None if confidence is None else float(confidence),
        sources=_sources(body.get("sources")),
        replaces=replaces,
    )


def _sources(value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    problem = InvalidPinError('sources must be a list such as [{"turn": 3}]')
    if not isinstance(value, list):
        raise problem
    if len(value) > MAX_PIN_SOURCES:
        raise InvalidPinError(f"sources may name {MAX_PIN_SOURCES} turns")
    turns = [one.get("turn") if isinstance(one, Mapping) else None for one in value]
    if not all(type(turn) is int and 0 < turn <= MAX_TURN_NUMBER for turn in turns):
        raise problem
    return tuple(turn for turn in turns if type(turn) is int)


@dataclass(frozen=True, slots=True)
class Pins:
    """Pins by hand. Every change is guarded by the session's pin revision."""

    store: MemoryStore
    counter: TokenCounter
    clock: Clock
    new_id: NewId
    keep: KeepByHand | None = None

    def add(self, key: SessionKey, given: PinInput, request: IdempotentRequest) -> Answer:
        """Pin a fact (201). One that it `replaces` is invalidated.

        Raises `PinNotFoundError` for an unknown `replaces`, `InvalidPinError` when there are too
        many.
        """
        if given.text is None:
            raise InvalidPinError("text is needed")
        text = given.text
        for _ in range(ATTEMPTS):
            session, record = self.store.read_session(key, request.key_hash)
            if record:
                return request.replay(record)
            memory = self._live(key, session)
            made = self._factory(memory)
            pin = made.new(
                text,
                trust=Trust.OPERATOR,
                confidence=1.0 if given.confidence is None else given.confidence,
                sources=given.sources or (),
                replaces=given.replaces,
            )
            edit = self._added(memory, pin, made)
            answer = Answer(201, pin_view(pin))
            now = self.clock()
            if self._write(memory, edit, request.record(201, answer.body, now)):
                return answer
        raise CommitConflictError("other changes to the pins were faster; try again")

    def get(self, key: SessionKey, pin_id: str) -> Pin:
        """A pin of any status. Raises `SessionNotFoundError` or `PinNotFoundError`."""
        memory = require_memory(self.store, key)
        pin = next((one for one in memory.pins if one.pin_id == pin_id), None)
        pin = pin or self.store.get_pin(key, pin_id)
        if pin is None:
            raise PinNotFoundError("no such pin")
        return pin

    def list(
        self, key: SessionKey, status: PinStatus, limit: int, position: str | None
    ) -> Page[Pin]:
        """Pins of a status, oldest first."""
        memory = require_memory(self.store, key)
        if status is not PinStatus.ACTIVE:
            return self.store.list_former_pins(key, status, limit, position)
        pins = memory.pins
        # Ids sort by time, so a position whose pin is gone meanwhile still has its place.
        start = 0 if position is None else sum(pin.pin_id <= position for pin in pins)
        items = pins[start : start + limit]
        more = start + limit < len(pins)
        return Page(items, items[-1].pin_id if more and items else None)

    def change(
        self,
        key: SessionKey,
        pin_id: str,
        given: PinInput,
        if_match: frozenset[str] | None = None,
    ) -> Pin:
        """Change a pin's text, status, confidence or sources.

        Raises `PinNotFoundError`, `PinFoldedError`, `StaleEtagError`.
        """

        def edit(memory: WorkingMemory, pin: Pin, made: PinFactory) -> tuple[PinEdit, Pin]:
            require_match(pin.etag, if_match)
            changed = pin if given.text is None else made.reworded(pin, given.text)
            if given.confidence is not None:
                changed = replace(changed, confidence=given.confidence)
            if given.sources is not None:
                changed = replace(changed, sources=given.sources)
            changed = made.moved(changed, given.status or pin.status)
            was, becomes = pin.status is PinStatus.ACTIVE, changed.status is PinStatus.ACTIVE
            active = len(memory.pins) + becomes - was
            if active > len(memory.pins):
                check_room(len(memory.pins))
            return PinEdit((changed,), active), changed

        return self._edit(key, pin_id, edit)

    def remove(self, key: SessionKey, pin_id: str) -> None:
        """Delete a pin for good. Raises `PinNotFoundError`, `PinFoldedError`."""

        def edit(memory: WorkingMemory, pin: Pin, _made: PinFactory) -> tuple[PinEdit, Pin]:
            return PinEdit((), len(memory.pins) - (pin.status is PinStatus.ACTIVE)), pin

        self._edit(key, pin_id, edit, removes=(pin_id,))

    def _added(self, memory: WorkingMemory, pin: Pin, made: PinFactory) -> PinEdit:
        if pin.replaces is None:
            check_room(len(memory.pins))
            return PinEdit((pin,), len(memory.pins) + 1)
        old = next((one for one in memory.pins if one.pin_id == pin.replaces), None)
        if old is None:
            raise PinNotFoundError("replaces names no active pin")
        return PinEdit((made.moved(old, PinStatus.INVALIDATED), pin), len(memory.pins))

    def _edit(
        self,
        key: SessionKey,
        pin_id: str,
        edit: "Callable[[WorkingMemory, Pin, PinFactory], tuple[PinEdit, Pin]]",
        removes: tuple[str, ...] = (),
    ) -> Pin:
        for _ in range(ATTEMPTS):
            memory = require_memory(self.store, key)
            pin = next((one for one in memory.pins if one.pin_id == pin_id), None)
            pin = pin or self.store.get_pin(key, pin_id)
            if pin is None:
                raise PinNotFoundError("no such pin")
            if pin.status is PinStatus.FOLDED:
                self._check_unsaid(memory, pin_id)
            done, result = edit(memory, pin, self._factory(memory))
            if self._write(memory, done, None, removes):
                return result
        raise CommitConflictError("other changes to the pins were faster; try again")

    def _check_unsaid(self, memory: WorkingMemory, pin_id: str) -> None:
        """Refuse to change a folded pin while an active one says the same: nothing would change."""
        for pin in memory.pins:
            waiting, seen = list(pin.folded_from), set[str]()
            while waiting:
                former = waiting.pop()
                if former == pin_id:
                    raise PinFoldedError(
                        f"it was folded into pin {pin.pin_id}; change or delete that one"
                    )
                found = None if former in seen else self.store.get_pin(memory.session.key, former)
                seen.add(former)
                waiting += found.folded_from if found else ()

    def _write(
        self,
        memory: WorkingMemory,
        edit: PinEdit,
        record: IdempotencyRecord | None,
        removes: tuple[str, ...] = (),
    ) -> bool:
        sets = self._due(memory, edit, removes)
        change = pin_change(memory.session, edit, sets=sets)
        try:
            self.store.write(replace(change, idempotency=record, removes_pins=removes))
        except GuardFailedError:
            return False
        if self.keep is not None:
            self.keep(memory.session.key)
        return True

    def _due(
        self, memory: WorkingMemory, edit: PinEdit, removes: tuple[str, ...]
    ) -> dict[str, Any]:
        """The sweeper rings if the pins are too many now: no commit does it for them."""
        changed = {pin.pin_id: pin for pin in (*memory.pins, *edit.changed)}
        session = memory.session
        after = replace(
            memory,
            session=replace(session, pin_rev=session.pin_rev + 1),
            pins=tuple(
                pin
                for pin in changed.values()
                if pin.status is PinStatus.ACTIVE and pin.pin_id not in removes
            ),
        )
        due_at = due_time(self.clock())
        if not session.is_due_later_than(due_at) or not pins_to_fold(after):
            return {}
        return {"due_at": due_at, "sweeps": 0}

    def _live(self, key: SessionKey, session: Session | None) -> WorkingMemory:
        if session is not None and session.status is not SessionStatus.LIVE:
            raise SessionErasingError
        if session is None:
            raise SessionNotFoundError("no such session")
        return require_memory(self.store, key)

    def _factory(self, memory: WorkingMemory) -> PinFactory:
        model = memory.session.settings.model
        return PinFactory(
            now=self.clock(),
            rev=memory.session.pin_rev + 1,
            new_id=self.new_id,
            count=lambda text: self.counter.count(text, model),
        )
