"""Bringing back the working memory of a session that was put away, when it is used again.

Any number of readers may do so at once, and any of them may die: each step is guarded by the state
of the session, all put the same items, and the one write at the end makes the session live.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from turnfold.application.due_work import due_time
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.memory import Change, IdempotencyRecord, MemoryStore, Page
from turnfold.application.ports.models import ModelAnswer
from turnfold.application.ports.shelf import Shelf, Snapshots
from turnfold.domain.errors import GuardFailedError, StoreError, StoreUnavailableError
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.pins import Pin, PinStatus
from turnfold.domain.sessions import Session, SessionKey, SessionStatus
from turnfold.domain.snapshots import Snapshot, unpack_snapshot
from turnfold.domain.turns import Turn
from turnfold.domain.usage import Usage

logger = logging.getLogger("turnfold")

PART_ITEMS = 40
"""Items put back at once: turns of up to 64 KB, and a transaction has 4 MB."""

ATTEMPTS = 4

_AWAY = "the session's working memory is put away and does not come back; rebuild it"


@dataclass(frozen=True, slots=True)
class Restore:
    """Moves working memory from the archive to the table."""

    shelf: Shelf
    snapshots: Snapshots
    clock: Clock

    def __call__(self, session: Session) -> None:
        """Bring a session back; nothing if another reader has done so meanwhile.

        Raises `StoreError` if the snapshot is lost or damaged, or a store cannot be used.
        """
        try:
            self._restore(session)
        except GuardFailedError:
            return

    def peek(self, session: Session) -> WorkingMemory | None:
        """The working memory as it would come back; None if the snapshot is gone.

        Raises `StoreError` if it is damaged.
        """
        snapshot = self._snapshot(session)
        if snapshot is None:
            return None
        return WorkingMemory(
            session=replace(session, status=SessionStatus.LIVE),
            profile=snapshot.profile,
            turns=snapshot.turns,
            summaries=snapshot.summaries,
            pins=snapshot.pins,
        )

    def _restore(self, session: Session) -> None:
        snapshot = self._snapshot(session)
        if snapshot is None:
            return
        if session.status is SessionStatus.EXPIRED:
            self.shelf.begin_restore(session)
            session = replace(session, status=SessionStatus.RESTORING)
        while self.shelf.clear(session, snapshot):
            pass
        for part in _parts(snapshot):
            self.shelf.fill(session, part)
        now = self.clock()
        # Soon: it may have been put away while work was pending. The compactor sees.
        self.shelf.finish_restore(session, now, due_time(now))
        logger.info("session brought back", extra={"code": "RESTORED"})

    def _snapshot(self, session: Session) -> Snapshot | None:
        """None if it is gone: somebody has brought the session back, and put it away anew."""
        data = self.snapshots.get(session.key, session.snapshot or "")
        if data is None:
            return None
        try:
            return unpack_snapshot(data)
        except ValueError:
            raise StoreError("restore: the snapshot is damaged") from None


def _parts(snapshot: Snapshot) -> Iterator[Snapshot]:
    """The snapshot in parts that one write takes; at least one, for the profile."""
    items = [*snapshot.turns, *snapshot.summaries, *snapshot.pins]
    for start in range(0, max(len(items), 1), PART_ITEMS):
        part = items[start : start + PART_ITEMS]
        chosen = frozenset(map(id, part))
        yield replace(
            snapshot,
            turns=tuple(one for one in snapshot.turns if id(one) in chosen),
            summaries=tuple(one for one in snapshot.summaries if id(one) in chosen),
            pins=tuple(one for one in snapshot.pins if id(one) in chosen),
        )


@dataclass(frozen=True, slots=True)
class RestoringStore:
    """A `MemoryStore` whose readers never meet a session that is put away: they bring it back.

    Only for those who serve a user. What works in the background (compactor, sweeper, archivist)
    leaves such a session alone.
    """

    store: MemoryStore
    restore: Restore

    def read_session(
        self, key: SessionKey, key_hash: str | None
    ) -> tuple[Session | None, IdempotencyRecord | None]:
        """See `MemoryStore`. A repeated request is answered without bringing the session back."""
        for _ in range(ATTEMPTS):
            session, record = self.store.read_session(key, key_hash)
            if session is None or record is not None or not session.is_away:
                return session, record
            self.restore(session)
        raise StoreUnavailableError(_AWAY)

    def load(self, key: SessionKey, *, with_turns: bool = True) -> WorkingMemory | None:
        """See `MemoryStore`."""
        for _ in range(ATTEMPTS):
            memory = self.store.load(key, with_turns=with_turns)
            if memory is None or not memory.session.is_away:
                return memory
            self.restore(memory.session)
        raise StoreUnavailableError(_AWAY)

    def write(self, change: Change) -> None:
        """See `MemoryStore`."""
        self.store.write(change)

    def get_turn(self, key: SessionKey, number: int) -> Turn | None:
        """See `MemoryStore`."""
        return self.store.get_turn(key, number)

    def get_pin(self, key: SessionKey, pin_id: str) -> Pin | None:
        """See `MemoryStore`."""
        return self.store.get_pin(key, pin_id)

    def list_former_pins(
        self, key: SessionKey, status: PinStatus, limit: int, position: str | None
    ) -> Page[Pin]:
        """See `MemoryStore`."""
        return self.store.list_former_pins(key, status, limit, position)

    def list_sessions(
        self, tenant: str, user_id: str | None, limit: int, position: str | None
    ) -> Page[Session]:
        """See `MemoryStore`."""
        return self.store.list_sessions(tenant, user_id, limit, position)

    def postpone(self, session: Session, due_at: datetime) -> None:
        """See `MemoryStore`."""
        self.store.postpone(session, due_at)

    def due_sessions(self, shard: int, now: datetime, limit: int) -> tuple[SessionKey, ...]:
        """See `MemoryStore`."""
        return self.store.due_sessions(shard, now, limit)

    def get_model_answer(self, key: SessionKey, step_id: str) -> ModelAnswer | None:
        """See `MemoryStore`."""
        return self.store.get_model_answer(key, step_id)

    def put_model_answer(
        self,
        key: SessionKey,
        step_id: str,
        answer: ModelAnswer,
        expires_at: datetime,
        epoch: str,
        usage: Usage,
    ) -> None:
        """See `MemoryStore`."""
        self.store.put_model_answer(key, step_id, answer, expires_at, epoch, usage)

    def add_usage(self, key: SessionKey, epoch: str, usage: Usage) -> None:
        """See `MemoryStore`."""
        self.store.add_usage(key, epoch, usage)

    def read_usage(self, key: SessionKey) -> Sequence[Usage]:
        """See `MemoryStore`."""
        return self.store.read_usage(key)


@dataclass(frozen=True, slots=True)
class PeekingStore(RestoringStore):
    """A `RestoringStore` that looks into snapshots and leaves them where they are.

    For a look at many sessions, such as a search, which is no use of each of them.
    """

    def load(self, key: SessionKey, *, with_turns: bool = True) -> WorkingMemory | None:
        """See `MemoryStore`."""
        for _ in range(ATTEMPTS):
            memory = self.store.load(key, with_turns=with_turns)
            if memory is None or not memory.session.is_away:
                return memory
            peeked = self.restore.peek(memory.session)
            if peeked is not None:
                return peeked if with_turns else replace(peeked, turns=())
        raise StoreUnavailableError(_AWAY)
