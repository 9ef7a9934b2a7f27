"""How commits to one session at the same moment fare, over HTTP on a local stack.

    python tests/load/race.py [RACERS ...]

For each number of racers: answers by status, and how long they took. Several rounds, each in a
session of its own; the racers are let go at once.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from integration.local_stack import RunningStack
from support.service import plain_turn

ROUNDS = 3


def race(url: str, session: str, racers: int) -> list[tuple[int, float]]:
    """Status and seconds of each racer."""
    results: list[tuple[int, float]] = []
    line = threading.Barrier(racers)
    path = f"{url}/v1/sessions/{session}/turns"

    def run(number: int) -> None:
        headers = {"Authorization": "Bearer local"}
        with httpx.Client(headers=headers, trust_env=False, timeout=60) as client:
            line.wait()
            started = time.monotonic()
            answer = client.post(path, json={"messages": plain_turn(number, words=20)})
            results.append((answer.status_code, time.monotonic() - started))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def main() -> None:
    numbers = [int(one) for one in sys.argv[1:]] or [1, 2, 5, 20, 50]
    functions = {
        "TURNFOLD_FUNCTIONS": str(ROOT / "functions"),
        "TURNFOLD_TEMPLATE": str(ROOT / "template.yaml"),
    }
    with tempfile.TemporaryDirectory() as data:
        stack = RunningStack(Path(data), 0, **functions).wait_until_ready()
        try:
            race(stack.url, "warm", 1)
            for racers in numbers:
                found: list[tuple[int, float]] = []
                for number in range(ROUNDS):
                    found += race(stack.url, f"race-{racers}-{number}", racers)
                seconds = sorted(took for _, took in found)
                statuses = dict(sorted(Counter(status for status, _ in found).items()))
                print(
                    f"{racers} racers, {ROUNDS} rounds: {statuses}; median"
                    f" {statistics.median(seconds):.2f} s, longest {seconds[-1]:.2f} s"
                )
        finally:
            stack.stop()


if __name__ == "__main__":
    main()
