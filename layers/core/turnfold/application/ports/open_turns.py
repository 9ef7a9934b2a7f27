"""The store of open turns."""

from collections.abc import Sequence
from typing import Protocol

from turnfold.application.ports.memory import IdempotencyRecord
from turnfold.domain.messages import Message
from turnfold.domain.open_turn import OpenTurn, OpenTurnRef
from turnfold.domain.sessions import SessionKey


class OpenTurnStore(Protocol):
    """The open turns, which are no part of working memory and need no session."""

    def read_open_turn(
        self, key: SessionKey, key_hash: str | None = None
    ) -> tuple[OpenTurn | None, IdempotencyRecord | None]:
        """The open turn, unless its time is over, and the idempotency record of that hash."""
        ...

    def append_open_turn(
        self,
        key: SessionKey,
        before: OpenTurnRef | None,
        draft_id: str,
        messages: Sequence[Message],
        record: IdempotencyRecord,
    ) -> None:
        """Append to the open turn, or begin one of that id if there is none before.

        Raises `GuardFailedError`: "open_turn" if it is not as it was, "idempotency" if the record
        exists, "session" if the session is being erased.
        """
        ...

    def drop_open_turn(self, key: SessionKey, ref: OpenTurnRef) -> None:
        """Drop the open turn. Raises `GuardFailedError("open_turn")` if it is not as it was."""
        ...
