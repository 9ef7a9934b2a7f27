"""How many model calls a burst of 50 short turns costs, over HTTP on a local stack.

    python tests/load/burst.py [TURNS]

Prints the calls by kind until the session is caught up, and how many of them were the same twice.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from integration.local_stack import RunningStack
from support import fake_openai
from support.service import plain_turn

PATIENCE = 120


def kind_of(body: dict[str, Any]) -> str:
    """Which step asked: judgements want JSON, summaries do not."""
    return "judgement" if body.get("response_format") else "summary"


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    functions = {
        "TURNFOLD_FUNCTIONS": str(ROOT / "functions"),
        "TURNFOLD_TEMPLATE": str(ROOT / "template.yaml"),
    }
    with fake_openai.start() as fake, tempfile.TemporaryDirectory() as data:
        model = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": fake.url}
        stack = RunningStack(Path(data), 0, **functions, **model).wait_until_ready()
        try:
            headers = {"Authorization": "Bearer local"}
            client = httpx.Client(base_url=stack.url, headers=headers, trust_env=False, timeout=30)
            started = time.monotonic()
            for number in range(1, turns + 1):
                body = {"messages": plain_turn(number)}
                client.post("/v1/sessions/burst/turns", json=body).raise_for_status()
            committed = time.monotonic() - started
            while client.get("/v1/sessions/burst").json()["watermark"]["pending_turns"]:
                if time.monotonic() - started > PATIENCE:
                    raise TimeoutError("the session did not catch up")
                time.sleep(0.2)
            asked = [request.body for request in fake.requests()]
        finally:
            stack.stop()
    same = Counter(json.dumps(body, sort_keys=True) for body in asked)
    print(
        {
            "turns": turns,
            "commit_seconds": round(committed, 1),
            "caught_up_seconds": round(time.monotonic() - started, 1),
            "calls": len(asked),
            "by_kind": dict(Counter(map(kind_of, asked))),
            "repeated": sum(same.values()) - len(same),
        }
    )


if __name__ == "__main__":
    main()
