"""Exporting a session: everything of it as JSON Lines, a few turns in memory at a time."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from turnfold.application.ports.bells import ArchiveBell
from turnfold.application.ports.clock import NewId
from turnfold.application.ports.exports import ExportFiles
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.read_memory import require_memory
from turnfold.application.read_transcript import Transcript
from turnfold.application.ringing import ring_archivist_gently
from turnfold.domain.errors import ThrottledError
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.pins import PinStatus
from turnfold.domain.portable import pin_object, session_object, summary_object
from turnfold.domain.sessions import SessionKey

MAX_INLINE_BYTES = 4_500_000
"""Of an answer, as a JSON text within a Lambda answer of 6 MB; a larger export becomes a link."""

PAGE = 100


@dataclass(frozen=True, slots=True)
class Exported:
    """The export itself, or where it can be fetched until when."""

    text: str | None = None
    url: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExportSession:
    """Writes exports."""

    store: MemoryStore
    transcript: Transcript
    files: ExportFiles
    archive_bell: ArchiveBell
    new_id: NewId

    def __call__(
        self, key: SessionKey, seconds_left: Callable[[], float] = lambda: 1e9
    ) -> Exported:
        """The export of a session; a link if it is large.

        Raises `SessionNotFoundError`, `DamagedRecordError`, `StoreError`, and `ThrottledError` if
        time runs out: thousands of records that were not rolled up yet take long to read.
        """
        memory = require_memory(self.store, key)
        lines = _in_time(self.lines(memory), seconds_left)
        head: list[bytes] = []
        size = 0
        for line in lines:
            head.append(line)
            # As the answer carries it: within another JSON text.
            size += len(json.dumps(line.decode(), ensure_ascii=False).encode())
            if size > MAX_INLINE_BYTES:
                break
        else:
            return Exported(text=b"".join(head).decode())
        try:
            link = self.files.store(key, f"{self.new_id()}.jsonl", _chained(head, lines))
        except ThrottledError:
            ring_archivist_gently(self.archive_bell, memory.session)
            raise
        return Exported(url=link.url, expires_at=link.expires_at)

    def lines(self, memory: WorkingMemory) -> Iterator[bytes]:
        """The lines: the session, its pins, its summaries, and all its turns."""
        session = memory.session
        yield _line(session_object(session, memory.profile))
        for pin in memory.pins:
            yield _line(pin_object(pin))
        for status in PinStatus:
            position = None
            while status is not PinStatus.ACTIVE:
                page = self.store.list_former_pins(session.key, status, PAGE, position)
                for pin in page.items:
                    yield _line(pin_object(pin))
                position = page.next_position
                if position is None:
                    break
        for summary in memory.summaries:
            yield _line(summary_object(summary))
        for record in self.transcript.stream(session):
            # The record is a JSON object in one line; it becomes one with a type.
            yield b'{"type":"turn",' + record.raw[1:] + b"\n"


def _in_time(lines: Iterator[bytes], seconds_left: Callable[[], float]) -> Iterator[bytes]:
    for line in lines:
        if seconds_left() <= 0:
            raise ThrottledError("the export takes too long now; ask again in a minute")
        yield line


def _line(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode() + b"\n"


def _chained(head: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    """What was read already, and the rest; the head is let go as it is used."""
    while head:
        yield head.pop(0)
    yield from rest
