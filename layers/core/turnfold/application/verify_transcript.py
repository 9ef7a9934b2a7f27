"""Verifying a transcript: every record intact, every link of the hash chain closed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from turnfold.application.ports.memory import MemoryStore
from turnfold.application.read_transcript import Transcript
from turnfold.domain.errors import SessionNotFoundError
from turnfold.domain.sessions import FIRST_PREV_SHA256, Session, SessionKey, SessionStatus
from turnfold.domain.transcript import Record

CHUNK_TURNS = 100
"""Records held in memory at a time."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found.

    `ok` is None if time ran out before the end: turns up to `checked_through` are good, and
    `position` says where to go on.
    """

    ok: bool | None
    turns: int
    first_bad_turn: int | None
    checked_through: int
    position: str | None = None

    def view(self) -> dict[str, Any]:
        """The answer of the contract, without its cursor."""
        return {
            "ok": self.ok,
            "turns": self.turns,
            "first_bad_turn": self.first_bad_turn,
            "checked_through": self.checked_through,
        }


@dataclass(frozen=True, slots=True)
class VerifyTranscript:
    """Walks the chain from its beginning to the newest turn that the session names.

    Where a lost race left rivals of one number, all of them are followed until the chain tells.
    """

    store: MemoryStore
    transcript: Transcript

    def __call__(
        self,
        key: SessionKey,
        position: str | None = None,
        seconds_left: Callable[[], float] = lambda: 1e9,
    ) -> Verification:
        """Verify all turns, or those after the position of an earlier, unfinished answer.

        A turn is bad if its record is missing, changed, or not the one that the chain names. Of two
        neighbours that do not fit, the one that no later record vouches for is named.
        Raises `SessionNotFoundError` or `StoreError`.
        """
        session, _ = self.store.read_session(key, None)
        if session is None or session.status is not SessionStatus.LIVE:
            raise SessionNotFoundError("no such session")
        through, reached = _read_position(position)
        last = session.committed_through
        while through < last:
            if seconds_left() <= 0:
                return Verification(None, last, None, through, _position(through, reached))
            end = min(through + CHUNK_TURNS, last)
            # One more, since a record is vouched for by the one after it.
            chunk = self.transcript.candidates(session, through + 1, min(end + 1, last))
            for number in range(through + 1, end + 1):
                intact = [one for one in chunk.get(number, ()) if one.intact]
                linked = [one for one in intact if one.turn.prev_sha256 in reached]
                if not linked:
                    bad = number
                    if intact and number > 1 and _vouched(session, intact, chunk, number):
                        bad = number - 1
                    return Verification(
                        ok=False, turns=last, first_bad_turn=bad, checked_through=bad - 1
                    )
                reached = {one.turn.sha256 for one in linked}
            through = end
        if last and session.last_sha256 not in reached:
            return Verification(ok=False, turns=last, first_bad_turn=last, checked_through=last - 1)
        return Verification(ok=True, turns=last, first_bad_turn=None, checked_through=last)


def _vouched(
    session: Session, intact: list[Record], chunk: dict[int, list[Record]], number: int
) -> bool:
    """Whether what comes after names one of these records as its predecessor."""
    hashes = {one.turn.sha256 for one in intact}
    if number == session.committed_through:
        return session.last_sha256 in hashes
    return any(one.turn.prev_sha256 in hashes for one in chunk.get(number + 1, ()) if one.intact)


def _position(through: int, reached: set[str]) -> str:
    return f"{through}:{','.join(sorted(reached))}"


def _read_position(position: str | None) -> tuple[int, set[str]]:
    if position is None:
        return 0, {FIRST_PREV_SHA256}
    through, _, hashes = position.partition(":")
    return int(through), set(hashes.split(","))
