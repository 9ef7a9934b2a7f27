"""Exports in this process, for tests."""

from collections.abc import Iterable
from datetime import timedelta

from turnfold.adapters.in_memory_bucket import InMemoryBucket
from turnfold.adapters.s3_archive import session_prefix
from turnfold.adapters.s3_exports import LINK_SECONDS
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.exports import Link
from turnfold.domain.errors import InvalidCursorError
from turnfold.domain.sessions import SessionKey


class InMemoryExports:
    """`ExportFiles` over an `InMemoryBucket`; the link is the object's name."""

    def __init__(self, bucket: InMemoryBucket, clock: Clock) -> None:
        """Keep exports in that bucket."""
        self._bucket = bucket
        self._clock = clock

    def store(
        self, key: SessionKey, name: str, chunks: Iterable[bytes], earlier: str | None = None
    ) -> Link:
        """See `ExportFiles`."""
        folder = f"{session_prefix(key)}exports/"
        before = b"" if earlier is None else self._bucket.get(f"{folder}{earlier}")
        if before is None:
            raise InvalidCursorError("begin the export anew")
        self._bucket.put(f"{folder}{name}", before + b"".join(chunks))
        return Link(f"{folder}{name}", self._clock() + timedelta(seconds=LINK_SECONDS))
