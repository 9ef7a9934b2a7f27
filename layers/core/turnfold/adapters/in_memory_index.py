"""Search indexes in this process, for tests."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from turnfold.adapters.in_memory_bucket import InMemoryBucket
from turnfold.adapters.s3_recall_index import index_prefix, piece_key, read_piece_key
from turnfold.application.ports.recall import PieceName
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from turnfold.application.ports.erasures import ObjectVersion


class InMemoryRecallIndex:
    """A `RecallIndex` in the bucket that holds the transcript, so that an erasure sees both."""

    def __init__(self, bucket: InMemoryBucket) -> None:
        """Keep pieces in that bucket."""
        self._bucket = bucket

    def list_pieces(self, key: SessionKey, epoch: str) -> Sequence[PieceName]:
        """See `RecallIndex`."""
        prefix = index_prefix(key, epoch)
        names = self._bucket.names(prefix)
        return [name for one in names if (name := read_piece_key(one, prefix))]

    def get_piece(self, key: SessionKey, epoch: str, name: PieceName) -> bytes | None:
        """See `RecallIndex`."""
        return self._bucket.get(piece_key(key, epoch, name))

    def put_piece(self, key: SessionKey, epoch: str, name: PieceName, body: bytes) -> None:
        """See `RecallIndex`."""
        self._bucket.put(piece_key(key, epoch, name), body)

    def remove_pieces(self, key: SessionKey, epoch: str, names: Sequence[PieceName]) -> None:
        """See `RecallIndex`; with all versions."""
        gone = {piece_key(key, epoch, name) for name in names}
        versions: list[ObjectVersion] = [
            one for one in self._bucket.list_versions(key, 10**9) if one.name in gone
        ]
        self._bucket.remove_versions(versions)
