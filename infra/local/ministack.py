"""MiniStack as a child process: start, wait until it answers, watch, stop."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from infra.local.ministack_server import IN_USE
from infra.local.settings import LOOPBACK, REGION, REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from infra.local.logs import LogPrinter

START_SECONDS = 120.0
STOP_SECONDS = 4.0
HTTP_OK = 200


class MiniStackError(Exception):
    """MiniStack cannot be started; the text says what to do."""


class MiniStack:
    """The emulated table, bucket and queue of one data folder."""

    def __init__(self, executable: Path, folder: Path, logs: LogPrinter) -> None:
        """Remember what to run; `start` runs it."""
        self._executable = executable
        self._folder = folder
        self._logs = logs
        self._stopping = False
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def endpoint(self) -> str:
        """Where AWS clients reach it."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int | None:
        """The process id, once started."""
        return None if self._process is None else self._process.pid

    def start(self, on_death: Callable[[int], None]) -> None:
        """Start it and wait until it answers; `on_death` is called if it ends by itself."""
        interpreter = self._executable.parent / "python"
        if not interpreter.exists():
            message = (
                f"MiniStack is not installed at {self._executable}. "
                "Run `make run`, which installs it, or set TURNFOLD_MINISTACK."
            )
            raise MiniStackError(message)
        self.port = _free_port()
        for name in ("store", "objects", "tmp"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [interpreter, "-m", "infra.local.ministack_server", self._folder / "store"],
            cwd=REPOSITORY,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._logs.follow("ministack", self._process.stdout)
        self._wait_until_it_answers()
        threading.Thread(
            target=self._watch, args=(on_death,), name="ministack-watch", daemon=True
        ).start()

    def stop(self) -> None:
        """End it, by force if it hangs."""
        process = self._process
        if process is None:
            return
        self._stopping = True
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._logs.note("warning", "MiniStack did not end by itself and is killed")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _environment(self) -> dict[str, str]:
        kept = ("PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT")
        return {k: os.environ[k] for k in kept if k in os.environ} | {
            "BIND_HOST": LOOPBACK,
            "GATEWAY_PORT": str(self.port),
            "SERVICES": "dynamodb,s3,sqs",
            "MINISTACK_REGION": REGION,
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(self._folder / "objects"),
            "TMPDIR": str(self._folder / "tmp"),
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "LOG_LEVEL": "WARNING",
            # It looks for containers of its own otherwise; the local stack has none.
            "DOCKER_HOST": f"unix://{self._folder / 'tmp' / 'no-engine.sock'}",
            "PYTHONUNBUFFERED": "1",
        }

    def _wait_until_it_answers(self) -> None:
        process = self._process
        patience = time.monotonic() + START_SECONDS
        while process is not None and time.monotonic() < patience:
            status = process.poll()
            if status == IN_USE:
                message = f"The data folder {self._folder} is in use by another local stack."
                raise MiniStackError(message)
            if status is not None:
                message = f"MiniStack ended while it started, with status {status}."
                raise MiniStackError(message)
            if _answers(self.port):
                return
            time.sleep(0.05)
        message = f"MiniStack did not answer within {START_SECONDS:.0f} seconds."
        raise MiniStackError(message)

    def _watch(self, on_death: Callable[[int], None]) -> None:
        if self._process is not None:
            status = self._process.wait()
            if not self._stopping:
                on_death(status)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=2)
    try:
        connection.request("GET", "/_ministack/health")
        return connection.getresponse().status == HTTP_OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
