"""Taking in the turns that a client brings along in its history."""

from collections.abc import Sequence
from dataclasses import dataclass

from turnfold.application.answer import IdempotentRequest
from turnfold.application.commit_turn import TurnToCommit
from turnfold.application.import_content import ImportContent, TurnToImport
from turnfold.application.import_session import ImportSession
from turnfold.domain.messages import Message
from turnfold.domain.sessions import SessionKey
from turnfold.domain.transcript import sha256_of


@dataclass(frozen=True, slots=True)
class TakeHistory:
    """Commits finished turns before the turn that a request is about."""

    imports: ImportSession

    def __call__(
        self, key: SessionKey, turns: Sequence[Sequence[Message]], request: IdempotentRequest
    ) -> None:
        """Commit the turns in order, once for the request.

        What went in before a failure stays, and is recognised in the client's next history; what is
        left then is other content, so it has another key. Raises `TurnTooLargeError`,
        `CommitConflictError`, `SessionErasingError`, `StoreError`.
        """
        content = ImportContent()
        for place, messages in enumerate(turns, start=1):
            turn = TurnToCommit(tuple(messages))
            turn.check()
            content.turns.append(TurnToImport(place, turn))
        digest = sha256_of([list(one) for one in turns])
        own = IdempotentRequest.of("history", f"{request.key_hash}-{digest}", digest)
        self.imports(key, content, own)
