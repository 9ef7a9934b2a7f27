"""Replays real conversations through the HTTP API of a local stack and says what came of it.

    python tests/load/replay.py DATA_FOLDER               with the project's fake model
    python tests/load/replay.py DATA_FOLDER --no-key      without a model: 1,000 turns, growth

Prints a table, or with --json one JSON document.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from integration.local_stack import RunningStack
from support import fake_openai
from support.conversations import (
    has_parallel_calls,
    read_conversations,
    turns_of,
)

PATIENCE = 300
EVERY = 10


class Client:
    """One session over HTTP."""

    def __init__(self, url: str, session: str) -> None:
        self.http = httpx.Client(
            base_url=url, headers={"Authorization": "Bearer local"}, timeout=60, trust_env=False
        )
        self.path = f"/v1/sessions/{session}"
        self.errors = 0

    def call(self, method: str, path: str = "", **options: Any) -> Any:
        response = self.http.request(method, self.path + path, **options)
        if response.status_code >= 400:
            self.errors += 1
            print(response.status_code, response.text[:300], file=sys.stderr)
            return None
        return response.json()

    def caught_up(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.call("GET")["watermark"]["pending_turns"]:
            if time.monotonic() > deadline:
                raise TimeoutError("the background work did not catch up")
            time.sleep(0.2)


def replay(url: str, name: str, turns: list[list[dict[str, Any]]], wait_every: int = 5) -> Any:
    """Commit the turns one by one, waiting for the background work now and then."""
    session = f"replay-{name}-{time.time_ns()}".replace("/", "-")
    client = Client(url, session)
    folds: set[tuple[int, int, int]] = set()
    growth: list[tuple[int, int]] = []
    over = 0
    started = time.monotonic()
    for number, turn in enumerate(turns, start=1):
        client.call("POST", "/turns", json={"messages": turn})
        if number % wait_every == 0 or number == len(turns):
            client.caught_up()
            context = client.call("GET", "/context")
            for one in context["regions"]["window"]:
                if one["level"]:
                    folds.add((one["from_turn"], one["to_turn"], one["level"]))
            window = context["regions"]["window"]
            size = sum(
                1 if one["level"] else len(conversation(turns[one["from_turn"] - 1]))
                for one in window
            )
            over += size > 5 or sum(one["tokens"] for one in window) > 3000
            if number % EVERY == 0:
                growth.append((number, context["tokens"]["total"]))
    context = client.call("GET", "/context")
    window = context["regions"]["window"]
    return {
        "conversation": name,
        "turns": len(turns),
        "messages": sum(map(len, turns)),
        "full_tokens": full_history(turns),
        "context_tokens": context["tokens"]["total"],
        "summaries_seen": len(folds),
        "degraded_now": sum(one["degraded"] for one in window),
        "window_now": len(window),
        "pins_now": len(context["regions"]["pins"]),
        "caps_broken": over,
        "errors": client.errors,
        "seconds": round(time.monotonic() - started, 1),
        "growth": growth,
    }


def conversation(turn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in turn if one["role"] != "system"]


def full_history(turns: list[list[dict[str, Any]]]) -> int:
    from turnfold.adapters.tiktoken_counter import TiktokenCounter
    from turnfold.domain.tokens import PER_LIST, count_messages

    counter = TiktokenCounter(ROOT / "layers" / "vocab" / "vocabulary")
    return PER_LIST + count_messages((one for turn in turns for one in turn), counter.count)


def slope_per_hundred(growth: list[tuple[int, int]]) -> float:
    """Per cent by which the context's tokens rise in 100 turns, after turn 30, by a fitted line."""
    points = [(number, tokens) for number, tokens in growth if number > 30]
    fit = statistics.linear_regression(*zip(*points, strict=True))
    return round(100 * 100 * fit.slope / statistics.mean(tokens for _, tokens in points), 2)


def chosen(folder: Path) -> dict[str, list[list[dict[str, Any]]]]:
    policy = (folder / "tau_airline_policy.txt").read_text(encoding="utf-8")
    found = {}
    for name in ("zh_long_chat", "beam_100k", "locomo"):
        one = next(read_conversations(folder / f"{name}.jsonl"))
        found[name] = turns_of(one)
    parallel = [
        one for one in read_conversations(folder / "toolcalls.jsonl") if has_parallel_calls(one)
    ]
    for one in parallel[:5]:
        found[one["id"]] = turns_of(one, policy)
    return found


def thousand(folder: Path) -> dict[str, list[list[dict[str, Any]]]]:
    """Two long sessions of 500 turns: English and Chinese."""
    english = [
        turn
        for name in ("beam_100k", "locomo")
        for one in read_conversations(folder / f"{name}.jsonl")
        for turn in turns_of(one)
    ]
    chinese = [
        turn
        for name in ("zh_memorybank", "zh_crosswoz", "zh_kdconv")
        for one in read_conversations(folder / f"{name}.jsonl")
        for turn in turns_of(one)
    ]
    return {"english": english[:500], "chinese": chinese[:500]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--no-key", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    variables = {"TURNFOLD_FUNCTIONS": str(ROOT / "functions")}
    variables["TURNFOLD_TEMPLATE"] = str(ROOT / "template.yaml")
    results = []
    with fake_openai.start() as fake, tempfile.TemporaryDirectory() as data:
        if not options.no_key:
            variables |= {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": fake.url}
        stack = RunningStack(Path(data), 0, **variables).wait_until_ready()
        try:
            load = thousand(options.data) if options.no_key else chosen(options.data)
            for name, turns in load.items():
                before = len(fake.requests())
                result = replay(stack.url, name, turns)
                result["model_calls"] = len(fake.requests()) - before
                if options.no_key:
                    result["percent_per_100_turns"] = slope_per_hundred(result["growth"])
                results.append(result)
                if not options.json:
                    print({k: v for k, v in result.items() if k != "growth"}, flush=True)
        finally:
            stack.stop()
    if options.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
