"""The store of the transcript."""

from collections.abc import Sequence
from typing import Protocol

from turnfold.domain.segments import Segment
from turnfold.domain.sessions import SessionKey


class Archive(Protocol):
    """The transcript: one record per turn, never changed, later many in one segment."""

    def put_record(self, key: SessionKey, number: int, turn_id: str, record: bytes) -> None:
        """Store a new record; a record of the same number and turn id is never overwritten."""
        ...

    def get_record(self, key: SessionKey, number: int, turn_id: str) -> bytes | None:
        """One record."""
        ...

    def list_records(
        self, key: SessionKey, from_turn: int, to_turn: int
    ) -> Sequence[tuple[int, str]]:
        """(number, turn id) of all records in that range, ascending.

        A number may occur more than once: a commit that lost a race leaves its record behind. The
        hash chain tells which one counts (`turnfold.domain.transcript`).
        """
        ...

    def remove_records(self, key: SessionKey, names: Sequence[tuple[int, str]]) -> None:
        """Remove records that stand in a segment as well, at most 1,000; absent ones are fine."""
        ...

    def put_segment(self, key: SessionKey, segment: Segment, data: bytes) -> None:
        """Store a segment; one of the same name is never overwritten."""
        ...

    def get_segment(self, key: SessionKey, segment: Segment) -> bytes | None:
        """One segment."""
        ...

    def list_segments(self, key: SessionKey) -> Sequence[Segment]:
        """All segments of a session, ascending; for a moment, one may be part of another."""
        ...

    def remove_segments(self, key: SessionKey, segments: Sequence[Segment]) -> None:
        """Remove segments that stand in a larger one as well."""
        ...
