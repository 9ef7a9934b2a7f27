"""Runs a built function as Lambda runs it, without a container (`alone.sh`), and measures it."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.local.settings import LOOPBACK, REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SCRIPT = Path(__file__).with_name("alone.sh")
RUNTIME_PARTS = ("awslambdaric", "simplejson", "snapshot_restore_py.py", "runtime_client*.so")
READY_SECONDS = 20
STOP_SECONDS = 5


def obstacle() -> str | None:
    """Why functions cannot be run alone on this machine; None if they can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "it needs Linux on x86_64"
    if os.geteuid() != 0:
        return "it needs root, for a read-only disk"
    if shutil.which("unshare") is None or shutil.which("prlimit") is None:
        return "it needs unshare and prlimit"
    probe = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True)  # noqa: S607 - on PATH
    return "this machine allows no mount namespaces" if probe.returncode else None


@dataclass(frozen=True)
class Measured:
    """What an invocation answered, and what it took."""

    answer: Any
    cold_milliseconds: float
    warm_milliseconds: float
    init_milliseconds: float
    peak_megabytes: float


def runtime_folder(folder: Path) -> Path:
    """Lambda's own parts in one folder: the interface emulator and awslambdaric."""
    folder.mkdir(parents=True, exist_ok=True)
    (packages,) = (REPOSITORY / ".venv-lambda" / "lib").glob("python3.*/site-packages")
    for part in RUNTIME_PARTS:
        for found in packages.glob(part):
            if found.is_dir():
                shutil.copytree(found, folder / found.name, dirs_exist_ok=True)
            else:
                shutil.copy2(found, folder)
    (emulators,) = (REPOSITORY / ".venv-sam" / "lib").glob("python3.*/site-packages/samcli/local")
    shutil.copy2(emulators / "rapid" / "aws-lambda-rie-x86_64", folder / "aws-lambda-rie")
    (folder / "aws-lambda-rie").chmod(0o755)
    return folder


def layered(layers: Sequence[Path], folder: Path) -> Path:
    """Layers over one another, as Lambda shows them at /opt."""
    for layer in layers:
        shutil.copytree(layer, folder, dirs_exist_ok=True)
    return folder


@dataclass(frozen=True)
class Alone:
    """One function of a build. `opt` is its layers over one another."""

    function: Path
    opt: Path
    handler: str
    memory: int
    variables: Mapping[str, str]
    runtime: Path
    python: str

    def measure(self, event: Any, folder: Path) -> Measured:
        """Start it, invoke it with the event twice, and end it."""
        log = folder / "alone.log"
        with self._running(folder, log) as (process, url):
            cold, answer = _timed(url, event)
            warm, answer = _timed(url, event)
            peak = _peak_megabytes(process.pid)
        init = re.search(r"INIT REPORT\(durationMs: ([\d.]+)", log.read_text(errors="replace"))
        return Measured(answer, cold, warm, float(init[1]) if init else 0.0, peak)

    @contextlib.contextmanager
    def _running(self, folder: Path, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
        variables = folder / "variables"
        pairs = [f"{name}={value}" for name, value in self.variables.items()]
        variables.write_bytes(b"".join(f"{pair}\0".encode() for pair in pairs))
        port = _free_port()
        command: list[str | Path] = [SCRIPT, self.function, self.opt, self.runtime, self.handler]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, str(self.memory), str(port), variables, self.python],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            _wait_for_port(port, process, log)
            yield process, f"http://{LOOPBACK}:{port}/2015-03-31/functions/function/invocations"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(STOP_SECONDS)


def _timed(url: str, event: object) -> tuple[float, Any]:
    started = time.perf_counter()
    request = urllib.request.Request(url, json.dumps(event).encode())  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310 - the same
        answer = json.loads(response.read())
    return (time.perf_counter() - started) * 1000, answer


def _peak_megabytes(session: int) -> float:
    """The most memory that one process of the session has had: the function's, by far."""
    peak = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError, ProcessLookupError):
            if os.getsid(int(status.parent.name)) == session:
                found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
                peak = max(peak, int(found[1]) if found else 0)
    return peak / 1024


def _wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"the function did not start: {log.read_text(errors='replace')[-2000:]}")


def _free_port() -> int:
    """A port whose next one is free as well."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind((LOOPBACK, 0))
            port: int = first.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                second.bind((LOOPBACK, port + 1))
                return port
