"""The conversation of the demo: somebody plans a team's three days in Porto, in thirty turns.

`demo_conversation.jsonl` holds one turn per line, as it is posted. It has what a memory has to hold
on to: names, order numbers, amounts, dates, a changed mind, two long documents and a turn in which
the assistant uses tools.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONVERSATION = Path(__file__).with_name("demo_conversation.jsonl")


def turns() -> list[list[dict[str, Any]]]:
    """The thirty turns, each as the list of its messages."""
    with CONVERSATION.open(encoding="utf-8") as lines:
        return [json.loads(line)["messages"] for line in lines]
