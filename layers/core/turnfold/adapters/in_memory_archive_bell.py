"""The archivist's bell in this process, for tests."""

from collections.abc import Callable

from turnfold.adapters.sqs_archive_bell import archive_message
from turnfold.adapters.sqs_doorbell import DoorbellMessage
from turnfold.domain.erasures import UserErasure
from turnfold.domain.sessions import SessionKey


class InMemoryArchiveBell:
    """An `ArchiveBell` that hands each message to `deliver`. What it raises, `ring` raises."""

    def __init__(self, deliver: Callable[[DoorbellMessage], None]) -> None:
        """Connect a model of the queue."""
        self._deliver = deliver
        self.postponed: list[tuple[str, int]] = []

    def ring(self, key: SessionKey, ring_id: str) -> None:
        """See `ArchiveBell`."""
        self._deliver(archive_message(key, ring_id))

    def ring_user(self, tenant: str, erasure_id: str, ring_id: str) -> None:
        """See `ArchiveBell`."""
        self._deliver(archive_message(UserErasure(tenant, erasure_id), ring_id))

    def postpone(self, receipt: str, seconds: int) -> None:
        """See `ArchiveBell`; noted in `postponed`."""
        self.postponed.append((receipt, seconds))
