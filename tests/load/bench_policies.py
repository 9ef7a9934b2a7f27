"""Each policy on 10,000 and on 100,000 messages: the larger takes at most 12 times as long.

    python tests/load/bench_policies.py

Prints a table and ends with 1 if a policy takes longer. Takes about a minute.
"""

from __future__ import annotations

import sys
import time
import timeit
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "layers" / "core"), str(ROOT / "tests")]

from turnfold.application.condense import CallableCondenser
from turnfold.domain.estimators import ExactEstimator
from turnfold.domain.policies.policy import PolicyInput
from turnfold.domain.policies.registry import PolicyKit, parse_policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnfold.domain.policies.policy import Policy

SMALL, LARGE = 10_000, 100_000
MOST_TIMES_LONGER = 12.0
ROUNDS = 5
NOW = datetime(2026, 1, 1, tzinfo=UTC)

HALF = SMALL // 2
SPECS: Sequence[dict[str, Any]] = (
    {"name": "message_window", "max_messages": HALF},
    {"name": "message_window", "max_messages": 20},
    {"name": "token_window", "max_tokens": 4000},
    {"name": "token_limit", "max_tokens": 4000},
    {"name": "limit_count", "max_count": 20},
    {"name": "limit_count", "max_count": HALF, "priority_removal": ["assistant", "tool"]},
    {"name": "time_window", "window_minutes": 60},
    {"name": "relevancy", "max_messages": 20},
    {"name": "summarization", "summarize_threshold": 50, "keep_recent": 20},
    {"name": "composite", "policies": [{"name": "limit_count"}, {"name": "token_limit"}]},
)


def conversation(count: int) -> PolicyInput:
    """A conversation of about that many messages, half of them tool traffic."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Answer in full sentences."}]
    number = 0
    while len(messages) < count:
        number += 1
        ids = [f"call-{number}-{at}" for at in range(1 + number % 3)]
        calls = [
            {"id": one, "type": "function", "function": {"name": "lookup", "arguments": "{}"}}
            for one in ids
        ]
        messages.append({"role": "user", "content": f"Question {number} about topic {number % 97}"})
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": one, "content": "found"} for one in ids]
        messages.append({"role": "assistant", "content": f"Answer {number}: 漢字 and words"})
    times = [NOW - timedelta(seconds=len(messages) - at) for at in range(len(messages))]
    return PolicyInput(messages, times=times, now=NOW, query="What about topic 5?", strict=True)


def seconds(policy: Policy, given: PolicyInput) -> float:
    """The fastest of some runs, in seconds of this process, without the garbage collector."""
    return min(
        timeit.repeat(lambda: policy.apply(given), timer=time.process_time, number=1, repeat=ROUNDS)
    )


def main() -> int:
    """Run all policies and say which took too long."""
    kit = PolicyKit(
        estimator=ExactEstimator(lambda text: -(-len(text.encode()) // 4)),
        condenser=CallableCondenser(lambda messages, _earlier: f"{len(messages)} messages"),
    )
    small, large = conversation(SMALL), conversation(LARGE)
    slow = 0
    print(f"{'policy':16} {SMALL:>9,} {LARGE:>9,}  times longer")
    for spec in SPECS:
        policy = parse_policy(spec, kit)
        one, other = seconds(policy, small), seconds(policy, large)
        slow += other > MOST_TIMES_LONGER * one
        print(f"{policy.name:16} {one * 1000:6.1f} ms {other * 1000:6.1f} ms  {other / one:.1f}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
