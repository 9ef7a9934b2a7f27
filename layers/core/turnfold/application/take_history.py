"""Taking in the turns that a client brings along in its history."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from turnfold.application.answer import IdempotentRequest
from turnfold.application.commit_turn import TurnToCommit
from turnfold.application.import_content import ImportContent, TurnToImport
from turnfold.application.import_session import ImportSession
from turnfold.domain.errors import CommitConflictError
from turnfold.domain.messages import Message
from turnfold.domain.sessions import SessionKey
from turnfold.domain.transcript import sha256_of


@dataclass(frozen=True, slots=True)
class TakeHistory:
    """Commits finished turns before the turn that a request is about."""

    imports: ImportSession

    def __call__(
        self,
        key: SessionKey,
        turns: Sequence[Sequence[Message]],
        seconds_left: Callable[[], float],
    ) -> None:
        """Commit the turns in order, once for as long as keys are remembered.

        A client that begins each request with the same examples brings the same turns again, when
        they are no longer recognised. What went in before a failure, or before time ran out, stays
        and is recognised in the client's next history; what is left then is other content, so it
        has another key. Raises `TurnTooLargeError`, `CommitConflictError`, `SessionErasingError`,
        `StoreError`.
        """
        content = ImportContent()
        for place, messages in enumerate(turns, start=1):
            turn = TurnToCommit(tuple(messages))
            turn.check()
            content.turns.append(TurnToImport(place, turn))
        digest = sha256_of([list(one) for one in turns])
        own = IdempotentRequest.of("history", digest, digest)
        done = self.imports(key, content, own, seconds_left)
        if not done.body["complete"]:
            raise CommitConflictError("the history is long; its rest goes in with the next request")
