"""The sweep: rings doorbells that were lost, with a growing pause for sessions that stay stuck."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from turnfold.application.metrics import NO_METRICS, Metrics
from turnfold.application.ports import Change, Clock, Doorbell, MemoryStore, NewId
from turnfold.domain.errors import StoreError
from turnfold.domain.limits import DUE_SHARDS, SWEEP_GRACE_SECONDS
from turnfold.domain.measurements import Metric
from turnfold.domain.sessions import SessionKey, SessionStatus

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
    metrics: Metrics = NO_METRICS

    def __call__(self, seconds_left: Callable[[], float] = lambda: 1e9) -> SweepReport:
        """Ring for every session that is due, and say when it is due again.

        What cannot be done now stays due for the next pass.
        """
        rung = failed = 0
        for shard in range(DUE_SHARDS):
            while seconds_left() > 0:
                keys = self.store.due_sessions(shard, self.clock(), PAGE)
                done = [key for key in keys if self._ring(key)]
                rung += len(done)
                failed += len(keys) - len(done)
                if len(keys) < PAGE or not done:
                    break
        if rung:
            self.metrics.record({Metric.OVERDUE_SESSIONS: rung})
        logger.info("swept", extra={"code": "SWEPT", "rung": rung, "failed": failed})
        return SweepReport(rung, failed)

    def _ring(self, key: SessionKey) -> bool:
        """Postpone, then ring: a crash in between delays a bell, and never makes it endless."""
        try:
            session, _ = self.store.read_session(key, None)
            if session is None or session.due_at is None:
                return True
            if session.status is not SessionStatus.LIVE:
                return False
            pause = min(SWEEP_GRACE_SECONDS * 2 ** min(session.sweeps, 20), MAX_PAUSE_SECONDS)
            self.store.write(
                Change(
                    key=key,
                    epoch=session.epoch,
                    guards={"due_at": session.due_at},
                    sets={
                        "due_at": self.clock() + timedelta(seconds=pause),
                        "sweeps": session.sweeps + 1,
                    },
                    visible=False,
                )
            )
            self.doorbell.ring(key, self.new_id(), session.committed_through)
        except StoreError as error:
            logger.warning(
                "session not swept", extra={"code": "SWEEP_RETRIED", "error": type(error).__name__}
            )
            return False
        return True
