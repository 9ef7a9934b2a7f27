"""The transcript in this process, for tests."""

from collections.abc import Sequence
from dataclasses import replace

from turnfold.adapters.in_memory_bucket import InMemoryBucket
from turnfold.adapters.s3_archive import (
    read_record_key,
    read_segment_key,
    record_key,
    segment_key,
    session_prefix,
)
from turnfold.domain.segments import Segment
from turnfold.domain.sessions import SessionKey


class InMemoryArchive:
    """An `Archive` over an `InMemoryBucket`, with the names that the archive in S3 gives."""

    def __init__(self, bucket: InMemoryBucket | None = None) -> None:
        """Use that bucket, or an empty one."""
        self.bucket = bucket or InMemoryBucket()

    def records_of(self, key: SessionKey) -> dict[tuple[int, str], bytes]:
        """All single records of a session, for checks."""
        return {
            name: self.get_record(key, *name) or b"" for name in self.list_records(key, 0, 10**12)
        }

    def put_record(self, key: SessionKey, number: int, turn_id: str, record: bytes) -> None:
        """See `Archive`."""
        self.bucket.put(record_key(key, number, turn_id), record, if_absent=True)

    def get_record(self, key: SessionKey, number: int, turn_id: str) -> bytes | None:
        """See `Archive`."""
        return self.bucket.get(record_key(key, number, turn_id))

    def list_records(
        self, key: SessionKey, from_turn: int, to_turn: int
    ) -> Sequence[tuple[int, str]]:
        """See `Archive`."""
        names = self.bucket.names(f"{session_prefix(key)}turns/")
        records = sorted(one for name in names if (one := read_record_key(name)) is not None)
        return [one for one in records if from_turn <= one[0] <= to_turn]

    def remove_records(self, key: SessionKey, names: Sequence[tuple[int, str]]) -> None:
        """See `Archive`."""
        for number, turn_id in names:
            self.bucket.hide(record_key(key, number, turn_id))

    def put_segment(self, key: SessionKey, segment: Segment, data: bytes) -> None:
        """See `Archive`."""
        self.bucket.put(segment_key(key, segment), data, if_absent=True)

    def get_segment(self, key: SessionKey, segment: Segment) -> bytes | None:
        """See `Archive`."""
        return self.bucket.get(segment_key(key, segment))

    def list_segments(self, key: SessionKey) -> Sequence[Segment]:
        """See `Archive`."""
        found: list[Segment] = []
        for name in self.bucket.names(f"{session_prefix(key)}segments/"):
            segment = read_segment_key(name)
            if segment is not None:
                found.append(replace(segment, size=self.bucket.size(name)))
        return sorted(found)

    def remove_segments(self, key: SessionKey, segments: Sequence[Segment]) -> None:
        """See `Archive`."""
        for segment in segments:
            self.bucket.hide(segment_key(key, segment))
