"""Open turns: appended to by several requests, then committed as one turn.

What was appended is stored at once, so it survives the process that took it. Two writers are told
apart by the number of pieces: the slower one reads again and appends behind the other. The commit
closes exactly the open turn that it read, in the commit's own transaction, so no append is lost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.commit_turn import Committed, CommitTurn, TurnToCommit
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.open_turns import OpenTurnStore
from turnfold.domain.errors import (
    CommitConflictError,
    GuardFailedError,
    OpenTurnNotFoundError,
    SessionErasingError,
)
from turnfold.domain.message_rules import check_messages
from turnfold.domain.messages import Message
from turnfold.domain.open_turn import OpenTurn, check_open_size
from turnfold.domain.sessions import SessionKey
from turnfold.domain.transcript import format_time

ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class OpenTurns:
    """The open turn of each session, which need not exist yet."""

    drafts: OpenTurnStore
    commit_turn: CommitTurn
    clock: Clock
    new_id: NewId

    def get(self, key: SessionKey) -> OpenTurn:
        """The open turn. Raises `OpenTurnNotFoundError`."""
        found = self.find(key)
        if found is None:
            raise OpenTurnNotFoundError("there is no open turn; append messages to begin one")
        return found

    def find(self, key: SessionKey) -> OpenTurn | None:
        """The open turn, if there is one."""
        return self.drafts.read_open_turn(key)[0]

    def append(self, key: SessionKey, messages: object, request: IdempotentRequest) -> Answer:
        """Append messages (201). Each must be well-formed; whether they make a turn is seen later.

        Raises `InvalidMessagesError`, `TurnTooLargeError`, `SessionErasingError`,
        `IdempotencyMismatchError`, or `CommitConflictError` when others were faster each time.
        """
        added = check_messages(messages)
        for _ in range(ATTEMPTS):
            before, record = self.drafts.read_open_turn(key, request.key_hash)
            if record:
                return request.replay(record)
            together = (*(before.messages if before else ()), *added)
            check_open_size(together)
            now = self.clock()
            body = {
                "session_id": key.session_id,
                "messages": len(together),
                "updated_at": format_time(now),
            }
            try:
                self.drafts.append_open_turn(
                    key,
                    before.ref if before else None,
                    self.new_id(),
                    added,
                    request.record(201, body, now),
                )
            except GuardFailedError as error:
                if "session" in error.failed:
                    raise SessionErasingError from error
                continue
            return Answer(201, body)
        raise CommitConflictError("other appends were faster; try again")

    def drop(self, key: SessionKey) -> None:
        """Drop the open turn. Raises `OpenTurnNotFoundError`."""
        for _ in range(ATTEMPTS):
            found = self.get(key)
            try:
                self.drafts.drop_open_turn(key, found.ref)
            except GuardFailedError:
                continue
            return
        raise CommitConflictError("appends were faster; try again")

    def commit(
        self,
        key: SessionKey,
        last: Sequence[Message],
        request: IdempotentRequest,
        *,
        user_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        judged_next: bool = False,
    ) -> Committed:
        """Commit the open turn with some last messages, as `CommitTurn` does.

        Raises besides `OpenTurnNotFoundError`. A refused commit leaves the open turn as it is.
        """
        added = check_messages(last) if last else ()
        for _ in range(ATTEMPTS):
            _, record = self.commit_turn.store.read_session(key, request.key_hash)
            if record:
                return Committed(request.replay(record))
            found = self.get(key)
            turn = TurnToCommit((*found.messages, *added), user_id, metadata)
            try:
                return self.commit_turn(
                    key, turn, request, closes=found.ref, judged_next=judged_next
                )
            except GuardFailedError:
                continue
        raise CommitConflictError("appends were faster; try again")
