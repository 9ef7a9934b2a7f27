"""Erasing: everything of a session, in small steps that can be begun anew after any crash.

The tombstone stands, so nobody who reads the session from now on writes to it. What about those who
read it before?

- Writes to the table are guarded by status and epoch, so they fail.
- Objects are written without a guard: a commit puts its record, then finds that the session is
  gone. Such a writer lives no longer than its function's timeout, so the last pass over table and
  bucket begins only `settle_seconds` after the tombstone, and only if it finds nothing is the
  erasure done. Until then commits to the id are refused, so nothing new can be among the old.
- The archivist's own writes (segments, snapshots) never run beside an erasure of the same session:
  both come by one FIFO queue, whose group is the session.

An eraser that was held up until the id is in use again does no harm: items go in transactions that
check the tombstone, and of objects it removes exactly the versions that it had listed before it
looked at the tombstone for the last time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from turnfold.application.ports.bells import ArchiveBell
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.erasures import Erasures, SessionObjects
from turnfold.application.ports.memory import MemoryStore
from turnfold.domain.erasures import Erasure, ErasureStatus, Removed
from turnfold.domain.errors import GuardFailedError
from turnfold.domain.sessions import Session, SessionKey, SessionStatus

BATCH_VERSIONS = 1000
PAGE = 100

USER_PAUSE_SECONDS = 60
"""How soon the sweeper looks again at the erasure of a user, if the queue should fail."""


@dataclass(frozen=True, slots=True)
class Again:
    """The work is not done: it goes on `seconds` later."""

    seconds: int


@dataclass(frozen=True, slots=True)
class EraseSession:
    """Removes a session whose tombstone is set."""

    store: MemoryStore
    erasures: Erasures
    objects: SessionObjects
    clock: Clock
    settle_seconds: int

    def __call__(
        self, key: SessionKey, seconds_left: Callable[[], float] = lambda: 1e9
    ) -> Again | None:
        """Remove what there is; None if the session is gone, or is not being erased.

        Raises `StoreError`; what was done until then stays done.
        """
        try:
            return self._erase(key, seconds_left)
        except GuardFailedError:
            # Another eraser has finished, or was faster at a step.
            session, _ = self.store.read_session(key, None)
            erasing = session is not None and session.status is SessionStatus.ERASING
            return Again(1) if erasing else None

    def _erase(self, key: SessionKey, seconds_left: Callable[[], float]) -> Again | None:
        while True:
            session = self._erasing(key)
            if session is None:
                return None
            wait = self._to_wait(session)
            removed = 0
            while batch := self._remove_some(session):
                removed += batch
                if seconds_left() <= 0:
                    return Again(0)
            if wait > 0:
                return Again(wait)
            if removed:
                continue
            erasure = self.erasures.get(key.tenant, session.erasure_id or "")
            if erasure is not None:
                self.erasures.finish(session, erasure, self.clock())
                if erasure.user_id is not None:
                    self.erasures.close_user(erasure, self.clock())
            return None

    def _remove_some(self, session: Session) -> int:
        """Remove some items, or else some objects; how many, 0 if nothing is left."""
        items = self.erasures.remove_items(session)
        if items:
            return items
        versions = self.objects.list_versions(session.key, BATCH_VERSIONS)
        if not versions:
            return 0
        # Listed first, looked second: what a new session of this id writes is not among these.
        still = self._erasing(session.key)
        if still is None or still.erasure_id != session.erasure_id:
            raise GuardFailedError("session")
        self.objects.remove_versions(versions)
        names = {one.name for one in versions}
        vectors = sum("/index/" in name and "/vectors-" in name for name in names)
        removed = Removed(objects=len(names), versions=len(versions), vectors=vectors)
        self.erasures.note_objects(session, removed)
        return len(versions)

    def _erasing(self, key: SessionKey) -> Session | None:
        session, _ = self.store.read_session(key, None)
        return session if session and session.status is SessionStatus.ERASING else None

    def _to_wait(self, session: Session) -> int:
        """Seconds until a pass that begins now may be the last one."""
        since = session.erasing_since or session.updated_at
        left = since + timedelta(seconds=self.settle_seconds) - self.clock()
        return max(0, -(-left // timedelta(seconds=1)))


@dataclass(frozen=True, slots=True)
class EraseUser:
    """Marks all sessions of a user; each is then erased by itself."""

    store: MemoryStore
    erasures: Erasures
    bell: ArchiveBell
    clock: Clock
    new_id: NewId
    settle_seconds: int

    def __call__(
        self, tenant: str, erasure_id: str, seconds_left: Callable[[], float] = lambda: 1e9
    ) -> Again | None:
        """Mark the sessions that the user had when the erasure was asked for.

        The list of a user's sessions is moments behind, so it is read once more after
        `settle_seconds`. Raises `StoreError`; what is marked stays marked.
        """
        erasure = self.erasures.get(tenant, erasure_id)
        if erasure is None or erasure.status is not ErasureStatus.ERASING:
            return None
        if erasure.user_id is None:
            return None
        now = self.clock()
        last = now >= erasure.requested_at + timedelta(seconds=self.settle_seconds)
        due_at = now + timedelta(seconds=USER_PAUSE_SECONDS)
        self.erasures.mark_listed(erasure, due_at, listed=False)
        if not self._mark_all(erasure, seconds_left):
            return Again(0)
        if not last:
            return Again(max(1, self.settle_seconds))
        self.erasures.mark_listed(erasure, due_at, listed=True)
        # With sessions still open, the last of them closes the erasure.
        self.erasures.close_user(erasure, self.clock())
        return None

    def _mark_all(self, erasure: Erasure, seconds_left: Callable[[], float]) -> bool:
        """Whether all were marked before time ran out."""
        position = None
        while True:
            page = self.store.list_sessions(erasure.tenant, erasure.user_id, PAGE, position)
            for session in page.items:
                if seconds_left() <= 0:
                    return False
                if session.created_at <= erasure.requested_at and not session.legal_hold:
                    self._mark(erasure, session)
            position = page.next_position
            if position is None:
                return True

    def _mark(self, erasure: Erasure, session: Session) -> None:
        try:
            self.erasures.begin(erasure, session)
        except GuardFailedError:
            return
        self.bell.ring(session.key, self.new_id())
