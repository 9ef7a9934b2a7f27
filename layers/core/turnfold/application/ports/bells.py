"""The queues, which say that a session is to be looked at."""

from typing import Protocol

from turnfold.domain.sessions import SessionKey


class Doorbell(Protocol):
    """Says "look at this session" to the compactor, in order per session, at least once."""

    def ring(self, key: SessionKey, ring_id: str, turn: int, *, forced: bool = False) -> None:
        """Ring once. `ring_id` tells rings apart; `turn` is the newest turn known to the ringer.

        `forced` asks to compact though the session's `auto_compression` is off.

        Raises `StoreUnavailableError` or `ThrottledError`.
        """
        ...

    def postpone(self, receipt: str, seconds: int) -> None:
        """Let a message that was received and not dealt with come again after that time.

        Raises `StoreError`; the message then comes again when the queue's own time is over.
        """
        ...


class ArchiveBell(Protocol):
    """Says "look after this session's archive": roll up, put away, or erase.

    At least once, in order per session, and never to two at a time.
    """

    def ring(self, key: SessionKey, ring_id: str) -> None:
        """Ring for a session. Raises `StoreUnavailableError` or `ThrottledError`."""
        ...

    def ring_user(self, tenant: str, erasure_id: str, ring_id: str) -> None:
        """Ring for the erasure of a user. Raises the same."""
        ...

    def postpone(self, receipt: str, seconds: int) -> None:
        """See `Doorbell`."""
        ...
