"""Putting away the working memory of a session that nobody has used for long.

Snapshot first, then the one write that says so (guarded by the session's revision, so whoever used
the session meanwhile wins), then the items. The session's own small item stays: it keeps its number
of turns, its place in lists and its idempotency, and it names the snapshot.
"""

import logging
from dataclasses import dataclass

from turnfold.application.due_work import due_time
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.shelf import Shelf, Snapshots
from turnfold.domain.errors import GuardFailedError
from turnfold.domain.sessions import Session, SessionKey, SessionStatus
from turnfold.domain.snapshots import pack_snapshot

logger = logging.getLogger("turnfold")


@dataclass(frozen=True, slots=True)
class PutAway:
    """Moves working memory from the table to the archive."""

    store: MemoryStore
    shelf: Shelf
    snapshots: Snapshots
    clock: Clock
    new_id: NewId

    def __call__(self, key: SessionKey) -> bool:
        """Put a session away if it has expired; whether it is away now. Raises `StoreError`."""
        memory = self.store.load(key)
        if memory is None:
            return False
        session = memory.session
        if session.status is SessionStatus.EXPIRED:
            self._tidy(session)
            return True
        if session.status is not SessionStatus.LIVE or session.expires_at > self.clock():
            return False
        name = snapshot_name(session, self.new_id())
        self.snapshots.put(key, name, pack_snapshot(memory))
        due_at = due_time(self.clock())
        try:
            self.shelf.put_away(session, name, due_at)
        except GuardFailedError:
            self.snapshots.remove(key, [name])
            return False
        away, _ = self.store.read_session(key, None)
        if away is None or away.status is not SessionStatus.EXPIRED:
            return False
        self._tidy(away)
        logger.info("session put away", extra={"code": "PUT_AWAY"})
        return True

    def _tidy(self, session: Session) -> None:
        """Remove what the snapshot stands for, and snapshots before it; then the session rests.

        Whoever brings the session back meanwhile ends this by the first guard that fails.
        """
        try:
            while self.shelf.clear(session):
                pass
            others = [one for one in self.snapshots.names(session.key) if one != session.snapshot]
            self.snapshots.remove(session.key, others)
            self.shelf.rest(session)
        except GuardFailedError:
            return


def snapshot_name(session: Session, unique: str) -> str:
    """A name for a snapshot of that state; names of later states sort behind."""
    return f"{session.revision:012d}-{unique}"
