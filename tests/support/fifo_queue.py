"""A reference model of an SQS FIFO queue in high-throughput mode, with time under control.

Models what the design relies on and what emulators get wrong:

- Order and exclusion by group: while a message of a group is in flight, no other of that group is
  handed out; a batch holds the oldest messages of each group that it touches, in order.
- Deduplication by group for five minutes after the first send, also when the message is deleted
  by then.
- A message whose visibility timeout ends is received again, before the younger ones of its group;
  its old receipt has no effect any more.
- A message that was received `max_receive_count` times moves to the dead-letter queue instead of
  being received once more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DEDUPLICATION = timedelta(minutes=5)
MAX_BATCH = 10
MAX_VISIBILITY_SECONDS = 12 * 3600


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message as a consumer sees it."""

    message_id: str
    group: str
    deduplication_id: str
    body: str
    receipt: str
    receive_count: int
    sequence_number: int
    sent_at: datetime


@dataclass(slots=True)
class _Stored:
    message_id: str
    group: str
    deduplication_id: str
    body: str
    sequence_number: int
    sent_at: datetime
    visible_at: datetime
    receipt: str | None = None
    receive_count: int = 0


@dataclass(slots=True)
class ManualClock:
    """A clock that stands still until it is moved."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass(slots=True)
class InMemoryFifoQueue:
    """One queue. `clock` tells the time; `advance` moves it if it is a `ManualClock`."""

    clock: Callable[[], datetime]
    visibility_seconds: float = 30
    delay_seconds: float = 0
    max_receive_count: int | None = None
    dead_letters: InMemoryFifoQueue | None = None
    retention_seconds: float = 4 * 24 * 3600
    _messages: list[_Stored] = field(default_factory=list)
    _accepted: dict[tuple[str, str], tuple[datetime, str]] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if not isinstance(self.clock, ManualClock):
            raise TypeError("only a ManualClock can be moved")
        self.clock.advance(seconds)

    def send(self, group: str, deduplication_id: str, body: str) -> str:
        """Take a message, or swallow it as a duplicate; its message id, or the first one's."""
        now = self.clock()
        first = self._accepted.get((group, deduplication_id))
        if first is not None and now < first[0] + DEDUPLICATION:
            return first[1]
        number = next(self._numbers)
        message_id = f"m{number}"
        self._accepted[group, deduplication_id] = (now, message_id)
        self._messages.append(
            _Stored(
                message_id=message_id,
                group=group,
                deduplication_id=deduplication_id,
                body=body,
                sequence_number=number,
                sent_at=now,
                visible_at=now + timedelta(seconds=self.delay_seconds),
            )
        )
        return message_id

    def receive(self, max_messages: int = MAX_BATCH) -> list[ReceivedMessage]:
        """Hand out up to ten messages; they are in flight until deleted or visible again."""
        now = self.clock()
        self._forget_expired(now)
        # Delayed messages hold their group up as well, or order would be lost.
        blocked = {one.group for one in self._messages if self._in_flight(one, now)}
        batch: list[ReceivedMessage] = []
        for message in list(self._messages):
            if len(batch) >= min(max_messages, MAX_BATCH):
                break
            if message.group in blocked:
                continue
            if message.visible_at > now:
                blocked.add(message.group)
            elif self._is_spent(message):
                self._bury(message)
            else:
                batch.append(self._hand_out(message, now))
        return batch

    def delete(self, receipt: str) -> bool:
        """Remove a message for good; False if the receipt is not good any more."""
        message = self._held(receipt)
        if message is None:
            return False
        self._messages.remove(message)
        return True

    def change_visibility(self, receipt: str, seconds: float) -> bool:
        """Make a message visible again in so many seconds; False if the receipt is not good."""
        if not 0 <= seconds <= MAX_VISIBILITY_SECONDS:
            raise ValueError("a visibility timeout is 0 to 43,200 seconds")
        message = self._held(receipt)
        if message is None:
            return False
        message.visible_at = self.clock() + timedelta(seconds=seconds)
        return True

    def __len__(self) -> int:
        """Messages in the queue, in flight or not."""
        return len(self._messages)

    @property
    def next_visible_at(self) -> datetime | None:
        """When the next message that is not visible now becomes so."""
        now = self.clock()
        return min((m.visible_at for m in self._messages if m.visible_at > now), default=None)

    def _in_flight(self, message: _Stored, now: datetime) -> bool:
        return message.receipt is not None and message.visible_at > now

    def _is_spent(self, message: _Stored) -> bool:
        return (
            self.max_receive_count is not None and message.receive_count >= self.max_receive_count
        )

    def _bury(self, message: _Stored) -> None:
        self._messages.remove(message)
        if self.dead_letters is not None:
            self.dead_letters.send(message.group, message.deduplication_id, message.body)

    def _hand_out(self, message: _Stored, now: datetime) -> ReceivedMessage:
        message.receive_count += 1
        message.receipt = f"{message.message_id}-{message.receive_count}"
        message.visible_at = now + timedelta(seconds=self.visibility_seconds)
        return ReceivedMessage(
            message_id=message.message_id,
            group=message.group,
            deduplication_id=message.deduplication_id,
            body=message.body,
            receipt=message.receipt,
            receive_count=message.receive_count,
            sequence_number=message.sequence_number,
            sent_at=message.sent_at,
        )

    def _held(self, receipt: str) -> _Stored | None:
        """The message in flight under that receipt."""
        now = self.clock()
        for message in self._messages:
            if message.receipt == receipt:
                return message if self._in_flight(message, now) else None
        return None

    def _forget_expired(self, now: datetime) -> None:
        oldest = now - timedelta(seconds=self.retention_seconds)
        self._messages = [one for one in self._messages if one.sent_at > oldest]
        self._accepted = {
            name: first for name, first in self._accepted.items() if now < first[0] + DEDUPLICATION
        }
