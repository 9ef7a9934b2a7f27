"""Snapshots of working memories in this process, for tests."""

from collections.abc import Sequence

from turnfold.adapters.in_memory_bucket import InMemoryBucket
from turnfold.adapters.s3_snapshots import SUFFIX, snapshot_prefix
from turnfold.domain.sessions import SessionKey


class InMemorySnapshots:
    """`Snapshots` over an `InMemoryBucket`."""

    def __init__(self, bucket: InMemoryBucket) -> None:
        """Keep snapshots in that bucket."""
        self._bucket = bucket

    def put(self, key: SessionKey, name: str, data: bytes) -> None:
        """See `Snapshots`."""
        self._bucket.put(f"{snapshot_prefix(key)}{name}{SUFFIX}", data)

    def get(self, key: SessionKey, name: str) -> bytes | None:
        """See `Snapshots`."""
        return self._bucket.get(f"{snapshot_prefix(key)}{name}{SUFFIX}")

    def names(self, key: SessionKey) -> Sequence[str]:
        """See `Snapshots`."""
        prefix = snapshot_prefix(key)
        names = self._bucket.names(prefix)
        return [one.removeprefix(prefix).removesuffix(SUFFIX) for one in names]

    def discard(self, key: SessionKey, name: str) -> None:
        """See `Snapshots`."""
        object_name = f"{snapshot_prefix(key)}{name}{SUFFIX}"
        versions = self._bucket.list_versions(key, 10**6)
        self._bucket.remove_versions([one for one in versions if one.name == object_name])

    def remove(self, key: SessionKey, names: Sequence[str]) -> None:
        """See `Snapshots`."""
        for name in names:
            self._bucket.hide(f"{snapshot_prefix(key)}{name}{SUFFIX}")
