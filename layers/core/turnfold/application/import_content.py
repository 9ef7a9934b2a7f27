"""Reading what is to be imported: an export, or messages of one kind of software or another.

An export is JSON Lines; whatever stands in a line is taken or reported by itself. Lines are divided
by line feeds alone, since a text may hold every other character that software takes for one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from turnfold.application.commit_turn import TurnToCommit
from turnfold.domain.clean_json import parse_json
from turnfold.domain.cutting import CutTurn, Fault, cut_turns
from turnfold.domain.errors import BadJsonError, InvalidImportError, InvalidInputError
from turnfold.domain.foreign_messages import flattened
from turnfold.domain.pins import Pin
from turnfold.domain.portable import read_pin_object
from turnfold.domain.transcript import parse_time

LINE_TYPES = ("session", "pin", "summary", "turn")


@dataclass(frozen=True, slots=True)
class TurnToImport:
    """A finished turn, where it stood, and what its record said in its former life."""

    place: int
    sent: TurnToCommit
    number: int | None = None
    committed_at: datetime | None = None


@dataclass(slots=True)
class ImportContent:
    """All that can be taken, and what could not, by line (or by entry of a list)."""

    session: Mapping[str, Any] | None = None
    turns: list[TurnToImport] = field(default_factory=list)
    pins: list[tuple[int, Pin]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

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
        value = value.get("messages")
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
            content.session = value
        case "pin":
            try:
                content.pins.append((place, read_pin_object(value)))
            except (ValueError, KeyError, TypeError):
                content.faults.append(Fault(place, "not a pin as it is exported"))
        case "turn":
            _read_turn(content, place, value)
        # Summaries are made anew from the turns, so that they agree with what came in.


def _read_turn(content: ImportContent, place: int, value: Mapping[str, Any]) -> None:
    messages, metadata = value.get("messages"), value.get("metadata")
    if not isinstance(messages, list):
        content.faults.append(Fault(place, "a turn needs a list of messages"))
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
    except ValueError:
        return None
    return None if moment is None or moment.tzinfo is None else moment


def cut_size(turn: CutTurn | TurnToImport) -> int:
    """About how many bytes a turn takes."""
    messages = turn.messages if isinstance(turn, CutTurn) else turn.sent.messages
    return len(json.dumps(list(messages), ensure_ascii=False))
