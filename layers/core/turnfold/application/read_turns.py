"""Reading single turns and pages of the transcript."""

from dataclasses import dataclass

from turnfold.application.ports.memory import MemoryStore, Page
from turnfold.application.read_transcript import Transcript
from turnfold.domain.errors import SessionNotFoundError, TurnNotFoundError
from turnfold.domain.sessions import Session, SessionKey, SessionStatus
from turnfold.domain.transcript import canonical
from turnfold.domain.turns import Turn

MAX_PAGE_BYTES = 4_500_000
"""Of one page of the transcript, since a Lambda answer may have 6 MB after escaping. A page with a
single larger turn cannot occur: a turn has at most 1 MiB."""


@dataclass(frozen=True, slots=True)
class ReadTurns:
    """Turns word for word, whether they still stand in working memory or not."""

    store: MemoryStore
    transcript: Transcript

    def one(self, key: SessionKey, number: int) -> Turn:
        """One turn. Raises `SessionNotFoundError` or `TurnNotFoundError`."""
        session = self._session(key)
        if not 1 <= number <= session.committed_through:
            raise TurnNotFoundError(f"the session has turns 1 to {session.committed_through}")
        return self.store.get_turn(key, number) or self.transcript.turns(session, number, number)[0]

    def page(self, key: SessionKey, from_turn: int, to_turn: int | None, limit: int) -> Page[Turn]:
        """Turns of a range, both inclusive, at most `limit` of them.

        The next position is a turn number; a page may be cut short by its size.
        """
        session = self._session(key)
        end = min(to_turn or session.committed_through, session.committed_through)
        last = min(end, from_turn + limit - 1)
        turns: list[Turn] = []
        size = 0
        for turn in self.transcript.turns(session, from_turn, last):
            size += len(canonical(list(turn.messages)))
            if turns and size > MAX_PAGE_BYTES:
                break
            turns.append(turn)
        reached = turns[-1].number if turns else end
        return Page(tuple(turns), str(reached + 1) if reached < end else None)

    def _session(self, key: SessionKey) -> Session:
        session, _ = self.store.read_session(key, None)
        if session is None or session.status is not SessionStatus.LIVE:
            raise SessionNotFoundError("no such session")
        return session
