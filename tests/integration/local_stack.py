"""Runs the local stack as a process, for the tests of the stack itself."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).resolve().parents[2]
FUNCTIONS = Path(__file__).resolve().parent / "local_functions"
MINISTACK = os.environ.get("TURNFOLD_MINISTACK") or str(
    REPOSITORY / ".venv-ministack" / "bin" / "ministack"
)


class RunningStack:
    """A stack with the stand-in functions, or with the project's own."""

    def __init__(self, data: Path, port: int = 0, **variables: str) -> None:
        self.data = data
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_")}
        environment |= {
            "PORT": str(port),
            "TURNFOLD_DATA": str(data),
            "TURNFOLD_MINISTACK": MINISTACK,
            "TURNFOLD_FUNCTIONS": str(FUNCTIONS),
            "TURNFOLD_TEMPLATE": str(FUNCTIONS / "template.yaml"),
            "TURNFOLD_TEST_NOTES": str(data / "batches.jsonl"),
            "TURNFOLD_TEST_SWEEPS": str(data / "sweeps.jsonl"),
            "HTTP_PROXY": "http://127.0.0.1:9",
            "http_proxy": "http://127.0.0.1:9",
        }
        data.mkdir(parents=True, exist_ok=True)
        self.log_path = data / "stack.log"
        self._log = self.log_path.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "infra.local"],
            cwd=REPOSITORY,
            env=environment | variables,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.output: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        self.url = ""

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.decode().rstrip("\n"))
        self._lines.put(None)

    def wait_until_ready(self, seconds: float = 60) -> RunningStack:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            line = self._lines.get(timeout=seconds)
            if line is None:
                raise AssertionError(f"the stack ended:\n{self.log}")
            self.output.append(line)
            found = re.fullmatch(r"Turnfold is ready at (http://127\.0\.0\.1:\d+)", line)
            if found:
                self.url = found.group(1)
                return self
        raise AssertionError("the stack did not become ready")

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def notes(self, name: str = "batches") -> list[dict[str, Any]]:
        path = self.data / f"{name}.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def processes(self) -> set[int]:
        """Every process that was started by the stack, with the stack itself."""
        return _descendants(self.process.pid)

    def stop(self, number: int = signal.SIGTERM, seconds: float = 90) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(seconds)
        self._log.close()
        return status


def _descendants(root: int) -> set[int]:
    listing = subprocess.run(
        ["/bin/ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    children: dict[int, list[int]] = {}
    for line in listing.splitlines():
        pid, parent = (int(part) for part in line.split())
        children.setdefault(parent, []).append(pid)
    found, open_ = set(), [root]
    while open_:
        pid = open_.pop()
        found.add(pid)
        open_ += children.get(pid, [])
    return found


def alive(pids: set[int]) -> set[int]:
    """Those of the processes that still run."""
    running = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        except FileNotFoundError:
            continue
        if state[0] != "Z":
            running.add(pid)
    return running


def wait_for[T](condition: Callable[[], T], seconds: float = 20) -> T:
    """Poll until the condition holds and return what it gave."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError("the condition did not come true in time")
        time.sleep(0.05)


def wait_until_gone(pids: set[int]) -> None:
    """Wait until none of the processes runs."""
    wait_for(lambda: not alive(pids))
