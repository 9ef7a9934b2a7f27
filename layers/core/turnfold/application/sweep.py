"""The sweep: looks at sessions whose time has come, and rings for what has to be done.

A session is due soon after work for it began (the bell may have been lost), and at the time when
its working memory may be put away. The sweep only rings: the compactor compacts, the archivist
puts away and erases. A session that stays stuck is rung for after ever longer pauses.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from turnfold.application.metrics import NO_METRICS, Metrics
from turnfold.application.ports.bells import ArchiveBell, Doorbell
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.erasures import Erasures
from turnfold.application.ports.memory import Change, MemoryStore
from turnfold.domain.errors import GuardFailedError, StoreError
from turnfold.domain.limits import DUE_SHARDS, SWEEP_GRACE_SECONDS
from turnfold.domain.measurements import Metric
from turnfold.domain.sessions import Session, SessionKey, SessionStatus

logger = logging.getLogger("turnfold")

PAGE = 50
"""Due sessions taken from one shard at a time."""

MAX_PAUSE_SECONDS = 6 * 3600
"""A session that never catches up is rung for four times a day."""


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one pass did."""

    rung: int
    failed: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """One pass over the sessions that are due."""

    store: MemoryStore
    doorbell: Doorbell
    clock: Clock
    new_id: NewId
    erasures: Erasures
    archive_bell: ArchiveBell
    metrics: Metrics = NO_METRICS

    def __call__(self, seconds_left: Callable[[], float] = lambda: 1e9) -> SweepReport:
        """Ring for every session that is due, and say when it is due again.

        What cannot be done now stays due for the next pass.
        """
        rung = failed = 0
        for shard in range(DUE_SHARDS):
            while seconds_left() > 0:
                keys = self.store.due_sessions(shard, self.clock(), PAGE)
                done = [key for key in keys if self._look(key)]
                rung += len(done)
                failed += len(keys) - len(done)
                if len(keys) < PAGE or not done:
                    break
        if seconds_left() > 0:
            users = self.erasures.due_users(self.clock(), PAGE)
            done_users = [name for name in users if self._ring_user(*name)]
            rung += len(done_users)
            failed += len(users) - len(done_users)
        logger.info("swept", extra={"code": "SWEPT", "rung": rung, "failed": failed})
        return SweepReport(rung, failed)

    def _look(self, key: SessionKey) -> bool:
        """Postpone, then ring: a crash in between delays a bell, and never makes it endless."""
        try:
            session, _ = self.store.read_session(key, None)
            if session is None or session.due_at is None:
                return True
            if session.status is SessionStatus.REBUILDING:
                pause = timedelta(seconds=SWEEP_GRACE_SECONDS)
                self.store.postpone(session, self.clock() + pause)
                self.doorbell.ring(key, self.new_id(), session.committed_through)
                return True
            if session.status is SessionStatus.LIVE and session.expires_at > self.clock():
                self._ring_compactor(session, session.due_at)
                return True
            pause = timedelta(seconds=SWEEP_GRACE_SECONDS)
            self.store.postpone(session, self.clock() + pause)
            self.archive_bell.ring(key, self.new_id())
        except GuardFailedError:
            # Another writer set another time meanwhile.
            return True
        except StoreError as error:
            logger.warning(
                "session not swept", extra={"code": "SWEEP_RETRIED", "error": type(error).__name__}
            )
            return False
        return True

    def _ring_compactor(self, session: Session, due_at: datetime) -> None:
        pause = min(SWEEP_GRACE_SECONDS * 2 ** min(session.sweeps, 20), MAX_PAUSE_SECONDS)
        self.store.write(
            Change(
                key=session.key,
                epoch=session.epoch,
                guards={"due_at": due_at},
                sets={
                    "due_at": self.clock() + timedelta(seconds=pause),
                    "sweeps": session.sweeps + 1,
                },
                visible=False,
            )
        )
        self.doorbell.ring(session.key, self.new_id(), session.committed_through)
        grace = timedelta(seconds=SWEEP_GRACE_SECONDS)
        if session.sweeps or due_at <= session.updated_at + grace:
            # Else it was to expire then, if nobody had used it since.
            self.metrics.record({Metric.OVERDUE_SESSIONS: 1})

    def _ring_user(self, tenant: str, erasure_id: str) -> bool:
        """An erasure of a user is due again later, until it is done; so it is only rung for."""
        try:
            self.archive_bell.ring_user(tenant, erasure_id, self.new_id())
        except StoreError as error:
            logger.warning(
                "user not swept", extra={"code": "SWEEP_RETRIED", "error": type(error).__name__}
            )
            return False
        return True
