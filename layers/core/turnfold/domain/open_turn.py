"""An open turn: messages of a turn that an agent builds over several requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from turnfold.domain.errors import TurnTooLargeError
from turnfold.domain.limits import MAX_TURN_BYTES, MAX_TURN_MESSAGES
from turnfold.domain.messages import Message
from turnfold.domain.transcript import canonical

OPEN_MINUTES = 60
"""An open turn is dropped this long after its last append (api.md)."""


@dataclass(frozen=True, slots=True)
class OpenTurnRef:
    """One state of an open turn: `pieces` grows with every append."""

    draft_id: str
    pieces: int


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """The messages that were appended so far, in order."""

    ref: OpenTurnRef
    messages: tuple[Message, ...]
    updated_at: datetime

    @property
    def expires_at(self) -> datetime:
        """When it is dropped."""
        return self.updated_at + timedelta(minutes=OPEN_MINUTES)


def check_open_size(messages: Sequence[Message]) -> None:
    """Raise `TurnTooLargeError` for more than one turn can have."""
    size = len(canonical(list(messages)))
    if len(messages) > MAX_TURN_MESSAGES or size > MAX_TURN_BYTES:
        raise TurnTooLargeError(
            f"an open turn may have {MAX_TURN_MESSAGES} messages and {MAX_TURN_BYTES} bytes"
        )
