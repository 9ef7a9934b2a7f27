"""The service's clock: it moves a millisecond with each look, unless it is frozen."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

TICK = timedelta(milliseconds=1)


@dataclass
class CaseClock:
    """Tells the time of a case."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    frozen: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self) -> datetime:
        with self._lock:
            if not self.frozen:
                self.now += TICK
            return self.now

    def advance(self, seconds: float) -> None:
        with self._lock:
            self.now += timedelta(seconds=seconds)

    def wait_until(self, moment: datetime) -> None:
        """Move on to a moment, if it is not past."""
        with self._lock:
            self.now = max(self.now, moment)


def clock_of(config: dict[str, object]) -> CaseClock:
    """The clock that a config asks for."""
    clock = CaseClock(frozen=config.get("clock") == "frozen")
    start = config.get("now")
    if isinstance(start, str):
        clock.now = datetime.fromisoformat(start)
    return clock
