"""Exporting a session: everything of it as JSON Lines, a few turns in memory at a time.

A small one is the answer itself. A larger one becomes a file, and one that takes longer than a
request may take becomes a file in several requests: each of them goes on where the one before it
was cut off, and what it leaves is a file that holds all so far.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from turnfold.application.ports.bells import ArchiveBell
from turnfold.application.ports.clock import NewId
from turnfold.application.ports.exports import ExportFiles
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.read_transcript import Transcript
from turnfold.application.ringing import ring_archivist_gently
from turnfold.domain.errors import InvalidCursorError, SessionNotFoundError
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.pins import PinStatus
from turnfold.domain.portable import pin_object, session_object, summary_object
from turnfold.domain.sessions import Session, SessionKey, SessionStatus

MAX_INLINE_BYTES = 4_500_000
"""Of an answer, as a JSON text within a Lambda answer of 6 MB; a larger export becomes a link."""

PAGE = 100

_POSITION = re.compile(r"([0-9a-z]{1,64}\.jsonl):([1-9][0-9]{0,11}):([0-9]{1,12})")


@dataclass(frozen=True, slots=True)
class Exported:
    """The export itself, or where it can be fetched until when.

    Or, where time ran out, the `position` at which the next request goes on.
    """

    text: str | None = None
    url: str | None = None
    expires_at: datetime | None = None
    position: str | None = None


@dataclass(frozen=True, slots=True)
class ExportSession:
    """Writes exports."""

    store: MemoryStore
    transcript: Transcript
    files: ExportFiles
    archive_bell: ArchiveBell
    new_id: NewId

    def __call__(
        self,
        key: SessionKey,
        position: str | None = None,
        seconds_left: Callable[[], float] = lambda: 1e9,
    ) -> Exported:
        """The export of a session, or the rest of one that was cut off at a position.

        It has the turns that there were when it began. Each request gets some turns further,
        however little time it has. Raises `SessionNotFoundError`, `InvalidCursorError` for a
        position of an export that is gone, `DamagedRecordError` and `StoreError`.
        """
        memory = self.store.load(key, with_turns=False)
        if memory is None or memory.session.status is not SessionStatus.LIVE:
            raise SessionNotFoundError("no such session")
        session = memory.session
        if position is None:
            turns = _Turns(self.transcript, session, 1, session.committed_through, seconds_left)
            lines = chain(_about(self.store, memory), turns)
            return self._begin(session, lines, turns)
        earlier, next_turn, last_turn = _read_position(position)
        if last_turn > session.committed_through:
            raise InvalidCursorError("begin the export anew")
        turns = _Turns(self.transcript, session, next_turn, last_turn, seconds_left)
        return self._store(session, iter(turns), turns, earlier)

    def _begin(self, session: Session, lines: Iterator[bytes], turns: "_Turns") -> Exported:
        head: list[bytes] = []
        size = 0
        for line in lines:
            head.append(line)
            # As the answer carries it: within another JSON text.
            size += len(json.dumps(line.decode(), ensure_ascii=False).encode())
            if size > MAX_INLINE_BYTES:
                break
        else:
            if turns.are_complete:
                return Exported(text=b"".join(head).decode())
        return self._store(session, _chained(head, lines), turns)

    def _store(
        self,
        session: Session,
        lines: Iterator[bytes],
        turns: "_Turns",
        earlier: str | None = None,
    ) -> Exported:
        """Write a file of what an earlier one holds and these lines."""
        name = f"{self.new_id()}.jsonl"
        link = self.files.store(session.key, name, lines, earlier)
        if turns.are_complete:
            return Exported(url=link.url, expires_at=link.expires_at)
        # Single records take long to read; segments do not.
        ring_archivist_gently(self.archive_bell, session)
        return Exported(position=f"{name}:{turns.next_turn}:{turns.last_turn}")

    def lines(self, memory: WorkingMemory) -> Iterator[bytes]:
        """The lines: the session, its pins, its summaries, and all its turns."""
        session = memory.session
        yield from _about(self.store, memory)
        yield from _Turns(self.transcript, session, 1, session.committed_through)


class _Turns:
    """The lines of some turns, until they or the time come to an end. To be iterated once."""

    def __init__(
        self,
        transcript: Transcript,
        session: Session,
        next_turn: int,
        last_turn: int,
        seconds_left: Callable[[], float] = lambda: 1e9,
    ) -> None:
        self.next_turn = next_turn
        self.last_turn = last_turn
        self._records = transcript.stream(session, next_turn, last_turn)
        self._seconds_left = seconds_left

    @property
    def are_complete(self) -> bool:
        return self.next_turn > self.last_turn

    def __iter__(self) -> Iterator[bytes]:
        for record in self._records:
            # The record is a JSON object in one line; it becomes one with a type.
            yield b'{"type":"turn",' + record.raw[1:] + b"\n"
            self.next_turn = record.turn.number + 1
            # Looked at behind a turn, so that every request gets further.
            if self._seconds_left() <= 0:
                return


def _about(store: MemoryStore, memory: WorkingMemory) -> Iterator[bytes]:
    """The lines before the turns: the session, its pins of every status, its summaries."""
    session = memory.session
    yield _line(session_object(session, memory.profile))
    for pin in memory.pins:
        yield _line(pin_object(pin))
    for status in PinStatus:
        position = None
        while status is not PinStatus.ACTIVE:
            page = store.list_former_pins(session.key, status, PAGE, position)
            for pin in page.items:
                yield _line(pin_object(pin))
            position = page.next_position
            if position is None:
                break
    for summary in memory.summaries:
        yield _line(summary_object(summary))


def _read_position(position: str) -> tuple[str, int, int]:
    """The name of the file so far, the next turn and the last one."""
    found = _POSITION.fullmatch(position)
    if not found:
        raise InvalidCursorError("send next_cursor as it was answered")
    return found[1], int(found[2]), int(found[3])


def _line(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode() + b"\n"


def _chained(head: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    """What was read already, and the rest; the head is let go as it is used."""
    while head:
        yield head.pop(0)
    yield from rest
