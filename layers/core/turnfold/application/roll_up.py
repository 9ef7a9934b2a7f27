"""Rolling single records of a transcript into segments, and small segments into larger ones.

At every moment each turn can be read, and is read once: a segment is written before the records in
it are removed, readers list records before segments, and where both are there the segment counts.
Every step can be repeated, by this archivist or by another one beside it, because the same turns
always give the same segment, which is never overwritten.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from turnfold.application.erase import Again
from turnfold.application.ports.archive import Archive
from turnfold.application.ports.memory import Change, MemoryStore
from turnfold.application.read_transcript import ArchivedRecord, Transcript
from turnfold.domain.errors import DamagedRecordError, StoreUnavailableError
from turnfold.domain.memory import raw_numbers
from turnfold.domain.segments import (
    Segment,
    covering,
    fitting,
    next_segment,
    pack_segment,
    to_merge,
    unpack_segment,
)
from turnfold.domain.sessions import Session, SessionKey

logger = logging.getLogger("turnfold")

REMOVED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class RollUp:
    """Tidies the transcript of one session."""

    store: MemoryStore
    archive: Archive
    transcript: Transcript

    def __call__(
        self, session: Session, seconds_left: Callable[[], float] = lambda: 1e9
    ) -> Again | None:
        """Make all segments that are due; None if no more are.

        Raises `GuardFailedError` if the session has changed its state, and `StoreError`.
        """
        while segment := next_segment(session.committed_through, session.archived_through):
            if seconds_left() <= 0:
                return Again(0)
            session = self._seal(session, segment)
        self._remove_records(session, 1, session.archived_through)
        return self._merge(session, seconds_left)

    def _seal(self, session: Session, wanted: Segment) -> Session:
        """Write one segment, say so, and remove what stands in it; the session after that."""
        records = self.transcript.records(session, wanted.first, wanted.last)
        raws = fitting([one.raw for one in records])
        segment = Segment(wanted.first, wanted.first + len(raws) - 1)
        self._put(session.key, segment, raws)
        self.store.write(
            Change(
                key=session.key,
                epoch=session.epoch,
                guards={"archived_through": session.archived_through},
                sets={"archived_through": segment.last},
                visible=False,
            )
        )
        after = replace(session, archived_through=segment.last)
        self._remove_records(after, segment.first, segment.last, records[: len(raws)])
        logger.info("turns rolled up", extra={"code": "ROLLED_UP", "turns": segment.turns})
        return after

    def _put(self, key: SessionKey, segment: Segment, raws: Sequence[bytes]) -> None:
        """Write a segment and read it back: nothing is removed on the word of a PUT alone."""
        self.archive.put_segment(key, segment, pack_segment(raws))
        data = self.archive.get_segment(key, segment)
        if data is None or _unpacked(data, segment) != list(raws):
            raise StoreUnavailableError("a segment is not what was written")

    def _remove_records(
        self,
        session: Session,
        first: int,
        last: int,
        chosen: Sequence[ArchivedRecord] = (),
    ) -> None:
        """Remove single records that stand in a segment.

        Rivals of lost races go first: a reader that sees a number's record alone may believe it.
        Records of turns that stand word for word in working memory stay: large ones are read by
        themselves with every context.
        """
        raw = set(raw_numbers(session))
        names = [
            one for one in self.archive.list_records(session.key, first, last) if one[0] not in raw
        ]
        true = {(one.turn.number, one.turn.turn_id) for one in chosen}
        rivals = [one for one in names if one not in true]
        for group in (rivals, [one for one in names if one in true]):
            for start in range(0, len(group), REMOVED_AT_ONCE):
                some = group[start : start + REMOVED_AT_ONCE]
                self.archive.remove_records(session.key, some)

    def _merge(self, session: Session, seconds_left: Callable[[], float]) -> Again | None:
        while True:
            listed = self.archive.list_segments(session.key)
            segments = covering(listed)
            self.archive.remove_segments(
                session.key, [one for one in listed if one not in segments]
            )
            parts = to_merge(segments)
            if not parts:
                return None
            if seconds_left() <= 0:
                return Again(0)
            self._put(
                session.key,
                Segment(parts[0].first, parts[-1].last),
                [raw for part in parts for raw in self._records_of(session.key, part)],
            )

    def _records_of(self, key: SessionKey, segment: Segment) -> list[bytes]:
        data = self.archive.get_segment(key, segment)
        if data is None:
            raise StoreUnavailableError("a segment was merged meanwhile")
        return _unpacked(data, segment)


def _unpacked(data: bytes, segment: Segment) -> list[bytes]:
    try:
        return unpack_segment(data, segment)
    except ValueError:
        raise DamagedRecordError(f"the segment of turn {segment.first} is damaged") from None
