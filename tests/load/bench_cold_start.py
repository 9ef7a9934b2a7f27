"""How long importing the API's handler takes, against the libraries alone.

    .venv/bin/python tests/load/bench_cold_start.py

The yardstick is boto3 with its three clients made, and Powertools' event handler. Both are measured
in turn, so that a busy machine is busy for both: the sum of all import times (`-X importtime`) and
the time on the clock. The handler may take 1.5 times the yardstick. The third line adds what its
first commit needs besides: its clients.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNS = 9
ALLOWED = 1.5

CLIENTS = 'for name in ("dynamodb", "s3", "sqs"): boto3.client(name)'
SUBJECTS = {
    "boto3, its clients, Powertools": (
        "from aws_lambda_powertools.event_handler import APIGatewayRestResolver\n"
        f"import boto3\n{CLIENTS}"
    ),
    "api.app": "import api.app",
    "api.app and its clients": (
        "import api.app\nservice = api.app.service()\nservice.commit, service._clients.s3"
    ),
}
_SELF_TIME = re.compile(r"^import time:\s+(\d+) \|", re.MULTILINE)


def measure(code: str) -> tuple[float, float]:
    """Milliseconds: the sum of import times, and the clock, in a process of its own."""
    timed = f"import time; _t = time.perf_counter()\n{code}\nprint(time.perf_counter() - _t)"
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "TURNFOLD_TABLE": "table",
        "TURNFOLD_BUCKET": "bucket",
        "TURNFOLD_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/000000000000/queue.fifo",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "layers" / "core"), str(ROOT / "functions")]),
    }
    clock = run(timed, environment, []).stdout
    imports = run(code, environment, ["-X", "importtime"]).stderr
    return sum(map(int, _SELF_TIME.findall(imports))) / 1000, float(clock.split()[-1]) * 1000


def run(
    code: str, environment: dict[str, str], options: list[str]
) -> subprocess.CompletedProcess[str]:
    """Run some code."""
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )


def main() -> int:
    """Measure and compare."""
    for code in SUBJECTS.values():
        measure(code)  # compiles what is not compiled, and fills the disk's cache
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in SUBJECTS}
    for _ in range(RUNS):
        for name, code in SUBJECTS.items():
            results[name].append(measure(code))
    medians = {
        name: tuple(statistics.median(column) for column in zip(*values, strict=True))
        for name, values in results.items()
    }
    print(f"median of {RUNS} runs, Python {sys.version.split()[0]}, ms")
    print(f"{'':34} {'imports':>8} {'clock':>8}")
    for name, (imports, clock) in medians.items():
        print(f"{name:34} {imports:8.0f} {clock:8.0f}")
    yardstick, handler = list(medians.values())[:2]
    ratios = [mine / theirs for mine, theirs in zip(handler, yardstick, strict=True)]
    print(f"{'api.app / yardstick':34} {ratios[0]:8.2f} {ratios[1]:8.2f}   (allowed {ALLOWED})")
    return int(max(ratios) > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
