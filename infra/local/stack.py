"""The local stack as a whole: what is started in which order, and how it ends."""

from __future__ import annotations

import http.client
import threading
import time
from typing import TYPE_CHECKING

from infra.local.definitions import Definitions
from infra.local.environments import Environments
from infra.local.functions import API, ARCHIVIST, COMPACTOR, SWEEPER, load_functions
from infra.local.http_server import HttpServer
from infra.local.keys import ensure_key_file
from infra.local.ministack import MiniStack
from infra.local.queue_poller import QueuePoller
from infra.local.resources import Clients, ensure_resources
from infra.local.schedule import Schedule
from infra.local.settings import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.logs import LogPrinter
    from infra.local.settings import Settings

READY_SECONDS = 60.0
HTTP_OK = 200


class NotReadyError(Exception):
    """The stack runs, but a first request does not succeed."""


class StoppedError(Exception):
    """The stack was told to stop while it started."""


class LocalStack:
    """Everything that `make run` starts."""

    def __init__(
        self, settings: Settings, logs: LogPrinter, on_death: Callable[[str], None]
    ) -> None:
        """Start nothing yet; `on_death` is told when a part ends by itself."""
        self._settings = settings
        self._logs = logs
        self._on_death = on_death
        self._http: HttpServer | None = None
        self._ministack: MiniStack | None = None
        self._pollers: list[QueuePoller] = []
        self._schedule: Schedule | None = None
        self._environments: list[Environments] = []
        self._stopping = False

    @property
    def address(self) -> str:
        """Where the API listens."""
        port = self._settings.port if self._http is None else self._http.port
        return f"http://{LOOPBACK}:{port}"

    def start(self) -> None:
        """Start all parts and return when a first request would succeed."""
        settings, logs = self._settings, self._logs
        self._http = HttpServer(settings.port, logs)
        definitions = Definitions.load(settings.template, settings.parameters)
        ensure_key_file(settings.key_file)
        self._go_on()
        self._ministack = MiniStack(settings.ministack, settings.data, logs)
        self._ministack.start(
            lambda status: self._on_death(f"MiniStack ended by itself with status {status}")
        )
        endpoint = self._ministack.endpoint
        self._go_on()
        clients = Clients(endpoint)
        resources = ensure_resources(clients, definitions)
        functions = load_functions(definitions, settings, resources, endpoint)
        api = Environments(functions[API], settings.api_environments, logs)
        compactor = Environments(functions[COMPACTOR], settings.compactor_environments, logs)
        sweeper = Environments(functions[SWEEPER], 1, logs)
        archivist = Environments(functions[ARCHIVIST], settings.archivist_environments, logs)
        self._environments = [api, compactor, sweeper, archivist]
        self._go_on()
        _warm_together(self._environments)
        self._go_on()
        self._http.serve(api)
        _wait_for_health(self._http.port)
        self._go_on()
        self._pollers = [
            QueuePoller(
                clients.sqs,
                resources.queue_url,
                resources.queue_arn,
                compactor,
                logs,
                settings.compactor_environments,
            ),
            QueuePoller(
                clients.sqs,
                resources.archive_queue_url,
                resources.archive_queue_arn,
                archivist,
                logs,
                settings.archivist_environments,
            ),
        ]
        for poller in self._pollers:
            poller.start()
        self._schedule = Schedule(sweeper, settings.sweep_seconds, logs)
        self._schedule.start()

    def _go_on(self) -> None:
        if self._stopping:
            raise StoppedError

    def stop(self, patience: float | None = None) -> None:
        """Finish what is at work, for a bounded time, and end every process."""
        self._stopping = True
        seconds = self._settings.shutdown_seconds if patience is None else patience
        deadline = time.monotonic() + seconds
        for poller in self._pollers:
            poller.request_stop()
        if self._schedule is not None:
            self._schedule.request_stop()
        finished = True
        if self._http is not None:
            finished &= self._http.stop(seconds)
        for worker in (*self._pollers, self._schedule):
            if worker is not None:
                finished &= worker.join(max(0.0, deadline - time.monotonic()))
        if not finished:
            self._logs.note("warning", "some work was not finished in time and is cut off")
        for environments in self._environments:
            environments.close()
        if self._ministack is not None:
            self._ministack.stop()


def _warm_together(pools: list[Environments]) -> None:
    """Load the handlers at the same time, and pass on the first failure."""
    failures: list[BaseException] = []

    def warm(environments: Environments) -> None:
        try:
            environments.warm()
        except Exception as error:  # noqa: BLE001 - raised in the caller's thread
            failures.append(error)

    threads = [threading.Thread(target=warm, args=(pool,), daemon=True) for pool in pools]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _wait_for_health(port: int) -> None:
    deadline = time.monotonic() + READY_SECONDS
    answer = "nothing"
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=READY_SECONDS)
        try:
            connection.request("GET", "/healthz")
            response = connection.getresponse()
            answer = f"{response.status}: {response.read(300)!r}"
            if response.status == HTTP_OK:
                return
        except (OSError, http.client.HTTPException) as error:
            answer = str(error)
        finally:
            connection.close()
        time.sleep(0.3)
    message = f"GET /healthz does not succeed; the last answer was {answer}"
    raise NotReadyError(message)
