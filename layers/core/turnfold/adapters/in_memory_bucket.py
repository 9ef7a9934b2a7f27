"""A versioned bucket in this process, for tests: what is deleted is only hidden."""

import itertools
import threading
from collections.abc import Sequence

from turnfold.adapters.s3_archive import session_prefix
from turnfold.application.ports.erasures import ObjectVersion
from turnfold.domain.sessions import SessionKey


class InMemoryBucket:
    """Objects by name, each a stack of versions. It is also `SessionObjects`."""

    def __init__(self) -> None:
        """Begin empty."""
        self._lock = threading.RLock()
        self._versions: dict[str, list[tuple[str, bytes | None]]] = {}
        self._ids = itertools.count(1)
        self.puts = 0
        self.gets = 0

    def put(self, name: str, data: bytes, *, if_absent: bool = False) -> bool:
        """Store a new version; whether it was stored. With `if_absent` nothing is replaced."""
        with self._lock:
            if if_absent and self._current(name) is not None:
                return False
            self.puts += 1
            self._versions.setdefault(name, []).append((str(next(self._ids)), bytes(data)))
            return True

    def get(self, name: str) -> bytes | None:
        """The newest version, unless it is a delete marker."""
        with self._lock:
            self.gets += 1
            return self._current(name)

    def size(self, name: str) -> int:
        """The bytes of the newest version."""
        with self._lock:
            return len(self._current(name) or b"")

    def names(self, prefix: str) -> list[str]:
        """The names of all current objects under a prefix, in the order of their bytes."""
        with self._lock:
            found = [one for one in self._versions if one.startswith(prefix)]
            return sorted(
                (one for one in found if self._current(one) is not None),
                key=lambda one: one.encode(),
            )

    def hide(self, name: str) -> None:
        """Put a delete marker over an object."""
        with self._lock:
            self._versions.setdefault(name, []).append((str(next(self._ids)), None))

    def list_versions(self, key: SessionKey, limit: int) -> Sequence[ObjectVersion]:
        """See `SessionObjects`."""
        prefix = session_prefix(key)
        with self._lock:
            found = [
                ObjectVersion(name, version)
                for name in sorted(self._versions)
                if name.startswith(prefix)
                for version, _ in self._versions[name]
            ]
        return found[:limit]

    def remove_versions(self, versions: Sequence[ObjectVersion]) -> None:
        """See `SessionObjects`."""
        with self._lock:
            for gone in versions:
                kept = [one for one in self._versions.get(gone.name, ()) if one[0] != gone.version]
                if kept:
                    self._versions[gone.name] = kept
                else:
                    self._versions.pop(gone.name, None)

    def _current(self, name: str) -> bytes | None:
        versions = self._versions.get(name)
        return versions[-1][1] if versions else None
