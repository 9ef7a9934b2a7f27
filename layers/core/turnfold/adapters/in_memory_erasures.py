"""Erasures in this process, for tests, beside the sessions of an `InMemoryStore`."""

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from turnfold.adapters.in_memory_store import InMemoryStore, StoredSession
from turnfold.application.ports.clock import Clock
from turnfold.domain.erasures import Erasure, ErasureStatus, Removed
from turnfold.domain.errors import GuardFailedError
from turnfold.domain.limits import ERASURE_ANSWER_SECONDS
from turnfold.domain.sessions import Session, SessionKey, SessionStatus

BATCH_ITEMS = 5
"""Small, so that a test's session takes several steps."""


class InMemoryErasures:
    """`Erasures` under the lock of the store."""

    def __init__(self, store: InMemoryStore, clock: Clock) -> None:
        """Erase what that store holds; the clock tells when pointers expire."""
        self._store = store
        self._clock = clock
        self._receipts: dict[tuple[str, str], Erasure] = {}
        self._due: dict[tuple[str, str], datetime] = {}
        self._pointers: dict[tuple[str, str, str], tuple[str, datetime]] = {}

    def begin(self, erasure: Erasure, session: Session) -> None:
        """See `Erasures`."""
        with self._store.lock:
            stored = self._store.sessions.get(session.key)
            failed = []
            if (
                stored is None
                or stored.session.epoch != session.epoch
                or stored.session.status is SessionStatus.ERASING
                or stored.session.legal_hold
            ):
                failed.append("session")
            at = (erasure.tenant, erasure.erasure_id)
            known = self._receipts.get(at)
            if erasure.user_id is None:
                failed += ["erasure"] if known else []
            elif known is None or known.status is not ErasureStatus.ERASING:
                failed.append("erasure")
            if failed or stored is None:
                raise GuardFailedError(*failed)
            now = self._clock()
            stored.session = replace(
                stored.session,
                status=SessionStatus.ERASING,
                erasure_id=erasure.erasure_id,
                erasing_since=now,
                due_at=now,
                revision=stored.session.revision + 1,
            )
            self._receipts[at] = (
                erasure if known is None else replace(known, open_sessions=known.open_sessions + 1)
            )

    def begin_user(self, erasure: Erasure) -> None:
        """See `Erasures`."""
        with self._store.lock:
            known = self.of_user(erasure.tenant, erasure.user_id or "")
            before = self._receipts.get((erasure.tenant, known)) if known else None
            if before is not None and before.status is ErasureStatus.ERASING:
                raise GuardFailedError("erasure")
            at = (erasure.tenant, erasure.erasure_id)
            self._receipts[at] = erasure
            self._due[at] = erasure.requested_at
            self._point(erasure.tenant, "user", erasure.user_id or "", erasure.erasure_id)

    def get(self, tenant: str, erasure_id: str) -> Erasure | None:
        """See `Erasures`."""
        with self._store.lock:
            return self._receipts.get((tenant, erasure_id))

    def of_session(self, key: SessionKey) -> str | None:
        """See `Erasures`."""
        return self._led_to(key.tenant, "session", key.session_id)

    def of_user(self, tenant: str, user_id: str) -> str | None:
        """See `Erasures`."""
        return self._led_to(tenant, "user", user_id)

    def remove_items(self, session: Session) -> int:
        """See `Erasures`."""
        with self._store.lock:
            stored = self._erasing(session)
            kinds = [*_kinds(stored), self._store.answers.get(session.key, {})]
            before = len(stored.vectors)
            removed = 0
            for kind in kinds:
                for name in list(kind)[: BATCH_ITEMS - removed]:
                    del kind[name]
                    removed += 1
            if not removed and stored.has_profile:
                stored.has_profile = False
                removed = 1
            if not removed:
                removed = self._remove_open_turn(session.key)
            vectors = before - len(stored.vectors)
            self._count(session, Removed(items=removed, vectors=vectors))
            return removed

    def note_objects(self, session: Session, removed: Removed) -> None:
        """See `Erasures`."""
        with self._store.lock:
            self._erasing(session)
            self._count(session, removed)

    def finish(self, session: Session, erasure: Erasure, now: datetime) -> None:
        """See `Erasures`."""
        with self._store.lock:
            self._erasing(session)
            at = (erasure.tenant, erasure.erasure_id)
            known = self._receipts[at]
            if known.status is not ErasureStatus.ERASING:
                raise GuardFailedError("erasure")
            del self._store.sessions[session.key]
            self._count(session, Removed(items=1))
            known = replace(self._receipts[at], open_sessions=known.open_sessions - 1)
            if known.user_id is None:
                known = replace(known, status=ErasureStatus.ERASED, finished_at=now)
            self._receipts[at] = known
            self._point(erasure.tenant, "session", session.key.session_id, erasure.erasure_id)

    def mark_listed(self, erasure: Erasure, due_at: datetime | None, *, listed: bool) -> None:
        """See `Erasures`."""
        with self._store.lock:
            at = (erasure.tenant, erasure.erasure_id)
            known = self._receipts.get(at)
            if known is None or known.status is not ErasureStatus.ERASING:
                raise GuardFailedError("erasure")
            self._receipts[at] = replace(known, listed=listed)
            self._due.pop(at, None)
            if due_at is not None:
                self._due[at] = due_at

    def close_user(self, erasure: Erasure, now: datetime) -> bool:
        """See `Erasures`."""
        with self._store.lock:
            at = (erasure.tenant, erasure.erasure_id)
            known = self._receipts.get(at)
            if (
                known is None
                or known.status is not ErasureStatus.ERASING
                or not known.listed
                or known.open_sessions
            ):
                return False
            self._receipts[at] = replace(
                known, status=ErasureStatus.ERASED, finished_at=now, user_id=None
            )
            self._due.pop(at, None)
            return True

    def due_users(self, now: datetime, limit: int) -> Sequence[tuple[str, str]]:
        """See `Erasures`."""
        with self._store.lock:
            due = sorted((at, name) for name, at in self._due.items() if at <= now)
        return [name for _, name in due[:limit]]

    def _erasing(self, session: Session) -> StoredSession:
        stored = self._store.sessions.get(session.key)
        if (
            stored is None
            or stored.session.epoch != session.epoch
            or stored.session.status is not SessionStatus.ERASING
            or stored.session.erasure_id != session.erasure_id
        ):
            raise GuardFailedError("session")
        return stored

    def _remove_open_turn(self, key: SessionKey) -> int:
        records = self._store.open_turn_records
        names = [name for name in records if name[0] == key]
        for name in names:
            del records[name]
        return len(names) + (self._store.open_turns.pop(key, None) is not None)

    def _count(self, session: Session, more: Removed) -> None:
        at = (session.key.tenant, session.erasure_id or "")
        known = self._receipts[at]
        removed = Removed(
            items=known.removed.items + more.items,
            objects=known.removed.objects + more.objects,
            versions=known.removed.versions + more.versions,
            vectors=known.removed.vectors + more.vectors,
        )
        self._receipts[at] = replace(known, removed=removed)

    def _point(self, tenant: str, kind: str, name: str, erasure_id: str) -> None:
        expires_at = self._clock() + timedelta(seconds=ERASURE_ANSWER_SECONDS)
        self._pointers[tenant, kind, name] = (erasure_id, expires_at)

    def _led_to(self, tenant: str, kind: str, name: str) -> str | None:
        with self._store.lock:
            erasure_id, expires_at = self._pointers.get((tenant, kind, name), (None, None))
            return None if expires_at is None or expires_at <= self._clock() else erasure_id


def _kinds(stored: StoredSession) -> list[dict[Any, Any]]:
    """All that a session has beside itself and its profile, whatever is added to it later."""
    values = (getattr(stored, one.name) for one in fields(stored))
    return [value for value in values if isinstance(value, dict)]
