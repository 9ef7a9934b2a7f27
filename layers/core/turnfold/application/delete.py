"""Asking for an erasure: of a session, or of all sessions of a user.

The answer is quick, because only the tombstones are set here: from then on reads find nothing and
commits wait. The removing itself is done by `EraseSession`, rung for and swept for.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from turnfold.application.erase import EraseUser
from turnfold.application.ports.bells import ArchiveBell
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.erasures import Erasures
from turnfold.application.ports.memory import MemoryStore
from turnfold.domain.erasures import Erasure, ErasureStatus
from turnfold.domain.errors import (
    CommitConflictError,
    ErasureNotFoundError,
    GuardFailedError,
    LegalHoldError,
    SessionNotFoundError,
    StoreError,
    UserNotFoundError,
)
from turnfold.domain.sessions import Session, SessionKey, SessionStatus

logger = logging.getLogger("turnfold")

ATTEMPTS = 8
PAGE = 100


@dataclass(frozen=True, slots=True)
class Delete:
    """Starts erasures and shows their receipts."""

    store: MemoryStore
    erasures: Erasures
    bell: ArchiveBell
    clock: Clock
    new_random_id: NewId
    mark_user: EraseUser

    def session(self, key: SessionKey) -> Erasure:
        """Start to erase a session; a repetition answers the first erasure.

        Also within two days after the session is gone, unless it was begun anew meanwhile. Raises
        `SessionNotFoundError` or `LegalHoldError`.
        """
        for _ in range(ATTEMPTS):
            session, _ = self.store.read_session(key, None)
            if session is None:
                return self._earlier(key)
            if session.status is SessionStatus.ERASING:
                return self._under_way(session)
            _check_hold(session)
            erasure = Erasure(key.tenant, self.new_random_id(), self.clock())
            try:
                self.erasures.begin(erasure, session)
            except GuardFailedError:
                continue
            self._ring(key, erasure.erasure_id)
            return erasure
        raise CommitConflictError("other requests were faster; try again")

    def user(
        self, tenant: str, user_id: str, seconds_left: Callable[[], float] = lambda: 1e9
    ) -> Erasure:
        """Start to erase all sessions that a user has now; a repetition answers the first erasure.

        Raises `UserNotFoundError` without a session of that user, and `LegalHoldError` if one is
        under a hold: then none is erased.
        """
        known_id = self.erasures.of_user(tenant, user_id)
        known = self.erasures.get(tenant, known_id) if known_id else None
        if known is not None and known.status is ErasureStatus.ERASING:
            self._begin_user(known, seconds_left)
            return known
        if not self._has_sessions(tenant, user_id):
            if known is not None:
                return known
            raise UserNotFoundError("no session belongs to that user")
        erasure = Erasure(
            tenant,
            self.new_random_id(),
            self.clock(),
            user_id=user_id,
            listed=False,
            open_sessions=0,
        )
        try:
            self.erasures.begin_user(erasure)
        except GuardFailedError:
            raise CommitConflictError("another request was faster; try again") from None
        self._begin_user(erasure, seconds_left)
        return erasure

    def receipt(self, tenant: str, erasure_id: str) -> Erasure:
        """An erasure of the tenant. Raises `ErasureNotFoundError`."""
        erasure = self.erasures.get(tenant, erasure_id)
        if erasure is None:
            raise ErasureNotFoundError("no such erasure")
        return erasure

    def _earlier(self, key: SessionKey) -> Erasure:
        erasure_id = self.erasures.of_session(key)
        erasure = self.erasures.get(key.tenant, erasure_id) if erasure_id else None
        if erasure is None:
            raise SessionNotFoundError("no such session")
        return erasure

    def _under_way(self, session: Session) -> Erasure:
        erasure = self.erasures.get(session.key.tenant, session.erasure_id or "")
        if erasure is None:
            raise SessionNotFoundError("no such session")
        self._ring(session.key, f"{erasure.erasure_id}-{self.new_random_id()}")
        return erasure

    def _has_sessions(self, tenant: str, user_id: str) -> bool:
        position, found = None, False
        while True:
            page = self.store.list_sessions(tenant, user_id, PAGE, position)
            for session in page.items:
                _check_hold(session)
            found = found or bool(page.items)
            position = page.next_position
            if position is None:
                return found

    def _ring(self, key: SessionKey, ring_id: str) -> None:
        """Best effort: the tombstone is due at once, so the sweeper finds it."""
        try:
            self.bell.ring(key, ring_id)
        except StoreError:
            logger.warning("archive bell not rung", extra={"code": "DOORBELL_FAILED"})

    def _begin_user(self, erasure: Erasure, seconds_left: Callable[[], float]) -> None:
        """Set what tombstones time allows, and have the rest done; both are best effort."""
        try:
            self.mark_user(erasure.tenant, erasure.erasure_id, seconds_left)
            self.bell.ring_user(
                erasure.tenant, erasure.erasure_id, f"{erasure.erasure_id}-{self.new_random_id()}"
            )
        except StoreError:
            logger.warning("archive bell not rung", extra={"code": "DOORBELL_FAILED"})


def _check_hold(session: Session) -> None:
    if session.legal_hold:
        raise LegalHoldError(
            "the session is under a legal hold; set legal_hold to false before it is erased"
        )
