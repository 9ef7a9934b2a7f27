"""Putting working memory away in this process, for tests, beside an `InMemoryStore`."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from turnfold.adapters.in_memory_store import InMemoryStore, StoredSession
from turnfold.domain.errors import GuardFailedError
from turnfold.domain.sessions import Session, SessionStatus
from turnfold.domain.snapshots import Snapshot

BATCH_ITEMS = 3
"""Small, so that a test's session takes several steps."""


class InMemoryShelf:
    """`Shelf` under the lock of the store."""

    def __init__(self, store: InMemoryStore) -> None:
        """Put away what that store holds."""
        self._store = store

    def put_away(
        self,
        session: Session,
        snapshot: str,
        due_at: datetime,
        sets: Mapping[str, Any] | None = None,
    ) -> None:
        """See `Shelf`."""
        with self._store.lock:
            stored = self._store.sessions.get(session.key)
            if (
                stored is None
                or stored.session.status is not SessionStatus.LIVE
                or stored.session.epoch != session.epoch
                or stored.session.revision != session.revision
            ):
                raise GuardFailedError("session")
            stored.session = replace(
                stored.session,
                status=SessionStatus.EXPIRED,
                snapshot=snapshot,
                due_at=due_at,
                **(sets or {}),
            )

    def open(
        self, session: Session, snapshot: str, due_at: datetime, sets: Mapping[str, Any]
    ) -> None:
        """See `Shelf`."""
        with self._store.lock:
            stored = self._store.sessions.get(session.key)
            if (
                stored is None
                or stored.session.status is not session.status
                or stored.session.epoch != session.epoch
            ):
                raise GuardFailedError("session")
            stored.session = replace(
                stored.session,
                **{**sets, "status": SessionStatus.EXPIRED, "snapshot": snapshot, "due_at": due_at},
            )

    def give_up(self, session: Session, due_at: datetime) -> None:
        """See `Shelf`."""
        with self._store.lock:
            stored = self._in(session, session.status)
            stored.session = replace(
                stored.session, status=SessionStatus.REBUILDING, rebuild=True, due_at=due_at
            )

    def clear(self, session: Session, keep: Snapshot | None = None) -> int:
        """See `Shelf`."""
        status = SessionStatus.EXPIRED if keep is None else SessionStatus.RESTORING
        with self._store.lock:
            stored = self._in(session, status)
            kept: set[Any] = set()
            if keep is not None:
                kept.update(turn.number for turn in keep.turns)
                kept.update(summary.ref for summary in keep.summaries)
                kept.update(pin.pin_id for pin in keep.pins)
            kinds: tuple[dict[Any, Any], ...] = (stored.turns, stored.summaries, stored.pins)
            wanted = [(kind, name) for kind in kinds for name in kind if name not in kept]
            for kind, name in wanted[:BATCH_ITEMS]:
                del kind[name]
            return len(wanted[:BATCH_ITEMS])

    def rest(self, session: Session) -> None:
        """See `Shelf`."""
        with self._store.lock:
            stored = self._in(session, SessionStatus.EXPIRED)
            stored.session = replace(stored.session, due_at=None)

    def begin_restore(self, session: Session) -> None:
        """See `Shelf`."""
        with self._store.lock:
            stored = self._in(session, SessionStatus.EXPIRED)
            stored.session = replace(stored.session, status=SessionStatus.RESTORING)

    def fill(self, session: Session, part: Snapshot) -> None:
        """See `Shelf`."""
        with self._store.lock:
            stored = self._in(session, SessionStatus.RESTORING)
            if part.profile_rev != stored.session.profile_rev:
                raise ValueError("the profile is not the one that the session names")
            stored.profile = part.profile
            stored.turns.update({turn.number: turn for turn in part.turns})
            stored.summaries.update({summary.ref: summary for summary in part.summaries})
            stored.pins.update({pin.pin_id: pin for pin in part.pins})

    def finish_restore(self, session: Session, now: datetime, due_at: datetime) -> None:
        """See `Shelf`."""
        with self._store.lock:
            stored = self._in(session, SessionStatus.RESTORING)
            stored.session = replace(
                stored.session,
                status=SessionStatus.LIVE,
                snapshot=None,
                restored_at=now,
                due_at=due_at,
                sweeps=0,
            )

    def _in(self, session: Session, status: SessionStatus) -> StoredSession:
        stored = self._store.sessions.get(session.key)
        if (
            stored is None
            or stored.session.status is not status
            or stored.session.epoch != session.epoch
            or stored.session.snapshot != session.snapshot
        ):
            raise GuardFailedError("session")
        return stored
