"""MiniStack as a child process of a test session."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
START_SECONDS = 60
STOP_SECONDS = 10
HTTP_OK = 200


def executable() -> Path:
    """Where MiniStack is; skips where it is not installed, unless in CI."""
    path = REPOSITORY / os.environ.get("TURNFOLD_MINISTACK", ".venv-ministack/bin/ministack")
    if not path.exists() and not os.environ.get("CI"):
        pytest.skip("MiniStack is not installed: run `make test`, or set TURNFOLD_MINISTACK")
    return path


@contextlib.contextmanager
def running_ministack(
    folder: Path, services: str = "dynamodb,s3,sqs", *, auth: bool = False, script: str = ""
) -> Iterator[str]:
    """A fresh MiniStack on a free loopback port; its endpoint. `folder` takes its log.

    With `auth` it checks signatures and policies of all credentials but its owner's. A `script` of
    this folder is run by its interpreter in place of its own.
    """
    command: list[Path | str] = [executable()]
    if script:
        # -P: this very module would be found in place of the package of its name.
        command = [executable().with_name("python"), "-P", Path(__file__).with_name(script)]
    port = _free_port()
    log = folder / "ministack.log"
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=kept
            | {
                "BIND_HOST": "127.0.0.1",
                "GATEWAY_PORT": str(port),
                "SERVICES": services,
                "AUTH": str(auth).lower(),
                "IOT_MTLS_ENABLED": "0",
                "SFTP_ENABLED": "0",
                "LOG_LEVEL": "WARNING",
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_it_answers(process, port, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    patience = time.monotonic() + START_SECONDS
    while time.monotonic() < patience and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        with contextlib.closing(connection), contextlib.suppress(OSError):
            connection.request("GET", "/_ministack/health")
            if connection.getresponse().status == HTTP_OK:
                return
        time.sleep(0.05)
    pytest.fail(f"MiniStack did not start: {log.read_text(errors='replace')[-2000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
