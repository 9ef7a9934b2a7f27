"""The doorbell in this process, for tests."""

from collections.abc import Callable

from turnfold.adapters.sqs_doorbell import DoorbellMessage, Ring, doorbell_message
from turnfold.domain.sessions import SessionKey


class InMemoryDoorbell:
    """A `Doorbell` that keeps what it rang in `messages`, and hands each to `deliver` if given.

    `deliver` is where a model of the queue is connected. What it raises, `ring` raises.
    """

    def __init__(self, deliver: Callable[[DoorbellMessage], object] | None = None) -> None:
        """Begin silent."""
        self.messages: list[DoorbellMessage] = []
        self.postponed: list[tuple[str, int]] = []
        self._deliver = deliver

    def ring(self, key: SessionKey, ring_id: str, turn: int, *, forced: bool = False) -> None:
        """See `Doorbell`."""
        message = doorbell_message(Ring(key, turn, forced), ring_id)
        if self._deliver is not None:
            self._deliver(message)
        self.messages.append(message)

    def postpone(self, receipt: str, seconds: int) -> None:
        """See `Doorbell`; noted in `postponed`."""
        self.postponed.append((receipt, seconds))
