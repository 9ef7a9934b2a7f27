"""A file to import as requests: parts of its lines, each under a key that follows from its content.

The same file always gives the same parts and keys. So an import that was interrupted is simply run
again: the service answers what it has already as before, and takes in the rest.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turnfold.application.import_content import LINE_TYPES, read_import
from turnfold.domain.clean_json import parse_json
from turnfold.domain.cutting import Fault
from turnfold.domain.errors import BadJsonError

PART_TURNS = 80
NOT_UTF_8 = b"not UTF-8"
"""What is sent in place of a line that is none, so that the service reports its number."""

PART_BYTES = 4_000_000
"""A request to a Lambda may have 6 MB, in which the body is a JSON text."""


@dataclass(slots=True)
class ImportPart:
    """One request. `places` are the lines of the file that its lines come from (0: none)."""

    session_id: str
    index: int
    lines: list[bytes] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    turns: int = 0
    size: int = 0

    @property
    def body(self) -> bytes:
        """The body to send."""
        return b"\n".join(self.lines) + b"\n"

    @property
    def key(self) -> str:
        """The idempotency key."""
        name = json.dumps([self.session_id, self.index]).encode()
        return hashlib.sha256(name + self.body).hexdigest()


def count_turns(path: Path) -> int:
    """How many turns a file holds, for a progress bar; about, where it is no export."""
    with path.open("rb") as file:
        return sum(b'"type":"turn"' in line or b'"type": "turn"' in line for line in file)


def import_parts(
    path: Path, session_id: str | None, report: Callable[[Fault], None] = lambda _: None
) -> Iterator[ImportPart]:
    """The requests that import a file, into one session or into those that the file names.

    An export is read line by line; any other file, which is a list of messages, as a whole: what of
    it is left out is reported here, by the number of its entry. Raises `InvalidImportError` or
    `BadJsonError`.
    """
    lines = _export_lines(path) if _is_export(path) else _turn_lines(path, report)
    part: ImportPart | None = None
    index = 0
    head: tuple[int, bytes] | None = None
    pins: list[tuple[int, bytes]] = []
    target = session_id
    for place, line, kind, said in lines:
        if kind == "session":
            # A file may hold several sessions, one after the other.
            yield from _last_parts(part, head, pins, target, index)
            part, index, head, pins = None, 0, (place, line), []
            target = session_id or str(said.get("session_id") or "")
            continue
        if kind == "pin":
            pins.append((place, line))
            continue
        full = part is not None and (part.turns >= PART_TURNS or part.size + len(line) > PART_BYTES)
        if part is not None and full:
            yield part
            part, index = None, index + 1
        if part is None:
            part = _begun(target or "", index, head)
        _add(part, place, line)
        part.turns += kind == "turn"
    yield from _last_parts(part, head, pins, target, index)


def _last_parts(
    part: ImportPart | None,
    head: tuple[int, bytes] | None,
    pins: list[tuple[int, bytes]],
    target: str | None,
    index: int,
) -> Iterator[ImportPart]:
    """What is open, and then the pins: they name turns, which are all there by then."""
    if part is not None:
        yield part
        index += 1
    if pins or (part is None and head is not None):
        last = _begun(target or "", index, head)
        for place, line in pins:
            _add(last, place, line)
        yield last


def _begun(session_id: str, index: int, head: tuple[int, bytes] | None) -> ImportPart:
    part = ImportPart(session_id, index)
    if head is not None:
        _add(part, *head)
    return part


def _add(part: ImportPart, place: int, line: bytes) -> None:
    part.lines.append(line)
    part.places.append(place)
    part.size += len(line) + 1


def _is_export(path: Path) -> bool:
    """Whether the first line that is not blank is an object of an export."""
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
    try:
        said = parse_json(first)
    except BadJsonError:
        return False
    return isinstance(said, dict) and said.get("type") in LINE_TYPES


def _export_lines(path: Path) -> Iterator[tuple[int, bytes, str, dict[str, Any]]]:
    """The lines of an export; what is none is sent as it is, so that the service reports it."""
    with path.open("rb") as file:
        for place, raw in enumerate(file, start=1):
            line = raw.rstrip(b"\n")
            if not line.strip():
                continue
            try:
                line.decode()
            except UnicodeDecodeError:
                # A body with it would be refused as a whole.
                line = NOT_UTF_8
            try:
                said = parse_json(line)
            except BadJsonError:
                said = None
            kind = said.get("type") if isinstance(said, dict) else None
            if kind == "summary":
                continue
            yield place, line, str(kind), said if isinstance(said, dict) else {}


def _turn_lines(
    path: Path, report: Callable[[Fault], None]
) -> Iterator[tuple[int, bytes, str, dict[str, Any]]]:
    """The turns that a list of messages is cut into, as lines of an export."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise BadJsonError(f"{path} is not UTF-8; if it is compressed, unpack it first") from None
    content = read_import(text)
    for fault in content.faults:
        report(fault)
    for turn in content.turns:
        said = {"type": "turn", "messages": list(turn.sent.messages)}
        yield turn.place, json.dumps(said, ensure_ascii=False).encode(), "turn", said
