"""Turns: the atomic unit of commit."""

from dataclasses import dataclass
from datetime import datetime

from turnfold.domain.messages import Message, split_leading
from turnfold.domain.tokens import byte_bound


@dataclass(frozen=True, slots=True)
class Turn:
    """One committed turn, word for word.

    `sha256` and `prev_sha256` are those of its transcript record.
    """

    number: int
    turn_id: str
    committed_at: datetime
    messages: tuple[Message, ...]
    sha256: str
    prev_sha256: str

    @property
    def conversation(self) -> tuple[Message, ...]:
        """The messages without the system messages that came with the turn."""
        return split_leading(self.messages)[1]

    @property
    def byte_bound(self) -> int:
        """An upper bound of the conversation's tokens that needs no tokenizer."""
        return byte_bound(self.conversation)
