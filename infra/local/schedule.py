"""The schedule that runs the sweeper."""

from __future__ import annotations

import threading
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from infra.local.environments import InvocationError, ThrottledError
from infra.local.settings import ACCOUNT, REGION

if TYPE_CHECKING:
    from infra.local.environments import Environments
    from infra.local.logs import LogPrinter


def schedule_event() -> dict[str, Any]:
    """What EventBridge Scheduler sends to a function."""
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": ACCOUNT,
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/default/turnfold-sweeper"],
        "detail": "{}",
    }


class Schedule:
    """Runs a function at once and then every so many seconds, until it is stopped."""

    def __init__(self, environments: Environments, seconds: float, logs: LogPrinter) -> None:
        """Prepare the thread; `start` starts it."""
        self._environments = environments
        self._seconds = seconds
        self._logs = logs
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="schedule", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def request_stop(self) -> None:
        """Start no further run."""
        self._stop.set()

    def join(self, patience: float) -> bool:
        """Wait for a run that is at work; false if it is still running."""
        if self._thread.is_alive():
            self._thread.join(patience)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._environments.invoke(schedule_event())
            except (InvocationError, ThrottledError) as error:
                if not self._stop.is_set():
                    name = self._environments.function.name
                    self._logs.note("error", f"{name} failed: {error}")
                    trace = getattr(error, "trace", "")
                    if trace:
                        self._logs.line(name, trace.rstrip())
            self._stop.wait(self._seconds)
