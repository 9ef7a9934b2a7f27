"""Reading what is to be imported: an export, or messages of one kind of software or another.

An export is JSON Lines; whatever stands in a line is taken or reported by itself. Lines are divided
by line feeds alone, since a text may hold every other character that software takes for one. A turn
that says its hash has to have it, and turns that say their numbers have to come in their order.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from turnfold.application.commit_turn import TurnToCommit
from turnfold.application.sessions import session_input
from turnfold.domain.clean_json import parse_json
from turnfold.domain.cutting import CutTurn, Fault, cut_turns
from turnfold.domain.errors import BadJsonError, InvalidImportError, InvalidInputError
from turnfold.domain.foreign_messages import flattened
from turnfold.domain.limits import MAX_INLINE_TURN_BYTES
from turnfold.domain.pins import Pin
from turnfold.domain.portable import read_pin_object, read_settings
from turnfold.domain.settings import Settings
from turnfold.domain.transcript import canonical, parse_time, sha256_of

LINE_TYPES = ("session", "pin", "summary", "turn")

_ENTRY_NAMES = {"role", "data", "kwargs", "messagePair", "userMessage", "assistantMessage"}
"""One of these has every entry of a dump (`domain.foreign_messages`), and no body of ours."""

_PIN_ID = re.compile(r"[0-9A-Za-z_-]{1,128}")


@dataclass(frozen=True, slots=True)
class TurnToImport:
    """A finished turn, where it stood, and what its record said in its former life."""

    place: int
    sent: TurnToCommit
    number: int | None = None
    committed_at: datetime | None = None


@dataclass(slots=True)
class _Chain:
    """What the lines so far say of the turns' order."""

    number: int = 0
    sha256: object = None

    def fault(self, value: Mapping[str, Any]) -> str | None:
        """What is wrong with the next line of a turn, by what it says about itself."""
        number, prev, digest = (value.get(name) for name in ("turn", "prev_sha256", "sha256"))
        before, before_sha256 = self.number, self.sha256
        if type(number) is int:
            if number <= before:
                return f"turn {number} comes after turn {before}: each stands once, in order"
            self.number, self.sha256 = number, digest
        if digest is None:
            return None
        said = {name: one for name, one in value.items() if name not in ("type", "sha256")}
        if digest != sha256_of(said):
            return (
                "not as it was exported: sha256 is that of another turn; leave it out, if need be"
            )
        if number == before + 1 and before_sha256 not in (None, prev):
            return f"does not follow turn {before}: prev_sha256 is not its sha256"
        return None


@dataclass(slots=True)
class ImportContent:
    """All that can be taken, and what could not, by line (or by entry of a list).

    No two pins have one id: together they would be counted twice and stored once.
    """

    session: Mapping[str, Any] | None = None
    turns: list[TurnToImport] = field(default_factory=list)
    pins: list[tuple[int, Pin]] = field(default_factory=list)
    pin_ids: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    chain: _Chain = field(default_factory=_Chain)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to store."""
        return not (self.session or self.turns or self.pins)


def read_import(raw: str) -> ImportContent:
    """What a body holds.

    Raises `BadJsonError` if it is no JSON at all, and `InvalidImportError` if nothing of it can be
    taken.
    """
    try:
        whole = parse_json(raw)
    except BadJsonError:
        content = _read_lines(raw)
    else:
        content = _read_whole(whole)
    if content.is_empty:
        faults = [(f"line {one.place}", one.reason) for one in content.faults]
        raise InvalidImportError(
            faults or [("body", "must be an export, or an object with a list of messages")]
        )
    return content


def _read_whole(value: Any) -> ImportContent:  # noqa: ANN401 - any JSON
    """A body that is one JSON value: a list of messages, or an export of one line."""
    content = ImportContent()
    if isinstance(value, Mapping):
        if value.get("type") in LINE_TYPES:
            _read_object(content, 1, value)
            return content
        # A dump of one line is an entry by itself.
        value = [value] if _ENTRY_NAMES & value.keys() else value.get("messages")
    if isinstance(value, Sequence) and not isinstance(value, str):
        _read_messages(content, flattened(value))
    return content


def _read_lines(raw: str) -> ImportContent:
    """An export, or a dump with an entry in each line. Raises `BadJsonError` if no line is JSON."""
    content = ImportContent()
    others: list[tuple[int, Any]] = []
    readable = False
    for place, line in enumerate(raw.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except BadJsonError as error:
            content.faults.append(Fault(place, str(error).replace("the body", "the line")))
            continue
        readable = True
        if isinstance(value, Mapping) and value.get("type") in LINE_TYPES and "data" not in value:
            _read_object(content, place, value)
        elif isinstance(value, Mapping):
            others += [(place, message) for _, message in flattened([value])]
        else:
            content.faults.append(Fault(place, "must be an object"))
    if not readable:
        raise BadJsonError("the body is neither JSON nor JSON Lines")
    if others:
        _read_messages(content, others)
    content.faults.sort(key=lambda fault: fault.place)
    return content


def _read_messages(content: ImportContent, messages: Any) -> None:  # noqa: ANN401 - an iterable
    turns, faults = cut_turns(messages)
    content.faults += faults
    for turn in turns:
        _take_turn(content, TurnToImport(turn.place, TurnToCommit(turn.messages)))


def _read_object(content: ImportContent, place: int, value: Mapping[str, Any]) -> None:
    match value["type"]:
        case "session":
            _read_session(content, place, value)
        case "pin":
            try:
                pin = read_pin_object(value)
            except (ValueError, KeyError, TypeError, OverflowError):
                content.faults.append(Fault(place, "not a pin as it is exported"))
                return
            fault = _pin_fault(pin, value)
            if fault is None and pin.pin_id in content.pin_ids:
                fault = f"pin {pin.pin_id} stands in an earlier line"
            if fault is None:
                content.pins.append((place, pin))
                content.pin_ids.add(pin.pin_id)
            else:
                content.faults.append(Fault(place, fault))
        case "turn":
            _read_turn(content, place, value)
        # Summaries are made anew from the turns, so that they agree with what came in.


def _pin_fault(pin: Pin, value: Mapping[str, Any]) -> str | None:
    """What keeps a pin from being stored, besides its text."""
    if not _PIN_ID.fullmatch(pin.pin_id):
        return "pin_id must be 1 to 128 letters and digits"
    if not 0 <= pin.confidence <= 1:
        return "confidence must be a number from 0 to 1"
    if len(canonical(value)) > MAX_INLINE_TURN_BYTES:
        return f"a pin may have {MAX_INLINE_TURN_BYTES} bytes"
    return None


def _read_session(content: ImportContent, place: int, value: Mapping[str, Any]) -> None:
    """What an export says of its session; it counts where the import creates the session."""
    if content.session is not None:
        # Whose turns the lines are could not be told.
        raise InvalidImportError(
            [(f"line {place}", "another session begins here; import each by itself")]
        )
    content.session = value
    try:
        session_input(value.get("system"), value.get("user_id"), value.get("metadata"))
        read_settings(value.get("settings"), Settings())
    except InvalidInputError as error:
        content.faults.append(Fault(place, f"left out are the session's own settings: {error}"))


def _read_turn(content: ImportContent, place: int, value: Mapping[str, Any]) -> None:
    messages, metadata = value.get("messages"), value.get("metadata")
    if not isinstance(messages, list):
        content.faults.append(Fault(place, "a turn needs a list of messages"))
        return
    fault = content.chain.fault(value)
    if fault is not None:
        content.faults.append(Fault(place, fault))
        return
    number = value.get("turn")
    turn = TurnToImport(
        place=place,
        sent=TurnToCommit(
            tuple(messages), metadata=metadata if isinstance(metadata, Mapping) else None
        ),
        number=number if type(number) is int else None,
        committed_at=_time(value.get("committed_at")),
    )
    _take_turn(content, turn)


def _take_turn(content: ImportContent, turn: TurnToImport) -> None:
    try:
        turn.sent.check()
    except InvalidInputError as error:
        content.faults.append(Fault(turn.place, str(error)))
        return
    content.turns.append(turn)


def _time(value: object) -> datetime | None:
    try:
        moment = parse_time(value) if isinstance(value, str) else None
        # In UTC from here on: of some times at the edges of the calendar there is none.
        return None if moment is None or moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def cut_size(turn: CutTurn | TurnToImport) -> int:
    """About how many bytes a turn takes."""
    messages = turn.messages if isinstance(turn, CutTurn) else turn.sent.messages
    return len(json.dumps(list(messages), ensure_ascii=False))
