"""MiniStack as a whole AWS account: IAM is enforced, functions run, queues call them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from infra.local.settings import LOOPBACK, REGION, REPOSITORY

SERVER = Path(__file__).with_name("ministack_server.py")
START_SECONDS = 60.0
STOP_SECONDS = 5.0


class EmulatorError(Exception):
    """MiniStack cannot be started; the text says what to do."""


class Emulator:
    """A MiniStack with an empty account. Its folder takes state and log; nothing survives it."""

    def __init__(self, folder: Path, port: int = 0, server: Path = SERVER) -> None:
        """Start nothing yet. Port 0 takes a free one; `server` is what MiniStack's Python runs."""
        self._folder = folder
        self._server = server
        self.port = port or _free_port()
        self.log = folder / "ministack.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """Where all services answer."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def credentials(self) -> dict[str, str]:
        """Variables by which AWS tools and libraries work with it, as the account's owner."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def __enter__(self) -> Self:
        """Start it and wait until it answers."""
        executable = REPOSITORY / (
            os.environ.get("TURNFOLD_MINISTACK") or ".venv-ministack/bin/ministack"
        )
        interpreter = executable.parent / "python"
        if not interpreter.exists():
            message = f"MiniStack is not installed at {executable}: run `make venv-ministack`"
            raise EmulatorError(message)
        (self._folder / "tmp").mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [interpreter, "-P", self._server],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._wait_until_it_answers()
        return self

    def __exit__(self, *_: object) -> None:
        """End it, and the functions that it runs: they are in its process group."""
        process = self._process
        if process is None:
            return
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _environment(self) -> dict[str, str]:
        kept = ("PATH", "HOME", "LANG", "LC_ALL")
        return {name: os.environ[name] for name in kept if name in os.environ} | {
            "AUTH": "true",
            "BIND_HOST": LOOPBACK,
            "GATEWAY_PORT": str(self.port),
            "MINISTACK_REGION": REGION,
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "LOG_LEVEL": "WARNING",
            "TMPDIR": str(self._folder / "tmp"),
            "STATE_DIR": str(self._folder / "state"),
            "S3_DATA_DIR": str(self._folder / "objects"),
            # Functions are processes here; it would look for containers otherwise.
            "DOCKER_HOST": f"unix://{self._folder / 'tmp' / 'no-engine.sock'}",
        }

    def _wait_until_it_answers(self) -> None:
        process = self._process
        patience = time.monotonic() + START_SECONDS
        while process is not None and process.poll() is None and time.monotonic() < patience:
            with contextlib.suppress(OSError, urllib.error.URLError):
                urllib.request.urlopen(f"{self.endpoint}/_ministack/health", timeout=2).close()  # noqa: S310 - loopback
                return
            time.sleep(0.1)
        self.__exit__()
        tail = self.log.read_text(errors="replace")[-2000:]
        message = f"MiniStack did not start: {tail}"
        raise EmulatorError(message)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
