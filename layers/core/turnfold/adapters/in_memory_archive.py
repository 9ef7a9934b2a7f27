"""The transcript in this process, for tests."""

import threading
from collections.abc import Sequence

from turnfold.domain.sessions import SessionKey


class InMemoryArchive:
    """An `Archive` that keeps its records in a dictionary."""

    def __init__(self) -> None:
        """Begin empty."""
        self._lock = threading.Lock()
        self._records: dict[SessionKey, dict[tuple[int, str], bytes]] = {}

    def put_record(self, key: SessionKey, number: int, turn_id: str, record: bytes) -> None:
        """See `Archive`."""
        with self._lock:
            self._records.setdefault(key, {}).setdefault((number, turn_id), bytes(record))

    def get_record(self, key: SessionKey, number: int, turn_id: str) -> bytes | None:
        """See `Archive`."""
        with self._lock:
            return self._records.get(key, {}).get((number, turn_id))

    def list_records(
        self, key: SessionKey, from_turn: int, to_turn: int
    ) -> Sequence[tuple[int, str]]:
        """See `Archive`."""
        with self._lock:
            records = sorted(self._records.get(key, {}))
        return [one for one in records if from_turn <= one[0] <= to_turn]
