"""Finding out from the archive alone how far a session had come, when the table knows nothing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from turnfold.application.ports.archive import Archive
from turnfold.application.read_transcript import Transcript
from turnfold.domain.errors import DamagedRecordError
from turnfold.domain.sessions import FIRST_PREV_SHA256, Session, SessionKey

if TYPE_CHECKING:
    from turnfold.domain.transcript import Record

CHUNK_TURNS = 100
ANY_TURN = 10**12 - 1


@dataclass(frozen=True, slots=True)
class Found:
    """The end of the longest chain of records."""

    last_turn: int
    last_sha256: str
    archived_through: int
    user_id: str | None


@dataclass(frozen=True, slots=True)
class RecoverSession:
    """Reads a transcript that no session names the end of."""

    archive: Archive
    transcript: Transcript

    def has_transcript(self, key: SessionKey) -> bool:
        """Whether there is anything to recover."""
        return bool(self.archive.list_segments(key) or self.archive.list_records(key, 1, 1))

    def __call__(self, session: Session) -> Found:
        """Follow the chain to its end; of several ends, the newest record counts.

        It may be that of a commit that died before its last write: nobody was told of it, and it is
        taken as committed. Raises `DamagedRecordError` if the chain breaks, naming the turn.
        """
        segments = self.archive.list_segments(session.key)
        archived = max((one.last for one in segments), default=0)
        last = max(
            (number for number, _ in self.archive.list_records(session.key, 1, ANY_TURN)),
            default=0,
        )
        end = max(archived, last)
        reached: dict[str, Record | None] = {FIRST_PREV_SHA256: None}
        for first in range(1, end + 1, CHUNK_TURNS):
            stop = min(first + CHUNK_TURNS - 1, end)
            chunk = self.transcript.candidates(session, first, stop)
            for number in range(first, stop + 1):
                linked = [
                    one for one in chunk[number] if one.intact and one.turn.prev_sha256 in reached
                ]
                if not linked:
                    raise DamagedRecordError(f"the record of turn {number} is missing or changed")
                reached = {one.turn.sha256: one for one in linked}
        records = [one for one in reached.values() if one is not None]
        newest = max(
            records, key=lambda one: (one.turn.committed_at, one.turn.turn_id), default=None
        )
        if newest is None:
            return Found(0, FIRST_PREV_SHA256, 0, None)
        return Found(end, newest.turn.sha256, archived, newest.user_id)
