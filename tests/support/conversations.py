"""Real conversations as turns that can be committed, from files in the evaluation schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOTHING = "(nothing)"


def read_conversations(path: Path) -> Iterator[dict[str, Any]]:
    """The conversations of a file, one a line."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def turns_of(conversation: dict[str, Any], policy: str = "") -> list[list[dict[str, Any]]]:
    """The messages cut into finished turns; what a cut-off end lacks is filled in."""
    messages = [
        _message(one, policy) for session in conversation["sessions"] for one in session["messages"]
    ]
    turns: list[list[dict[str, Any]]] = []
    current: list[dict[str, Any]] = []
    for message in messages:
        begins = message["role"] == "user" and any(one["role"] != "user" for one in current)
        if begins and not all(one["role"] == "system" for one in current):
            turns.append(_finished(current))
            current = []
        current.append(message)
    if current:
        turns.append(_finished(current))
    return turns


def has_parallel_calls(conversation: dict[str, Any]) -> bool:
    """Whether any message makes several tool calls at once."""
    return any(
        len(one.get("tool_calls") or []) > 1
        for session in conversation["sessions"]
        for one in session["messages"]
    )


def _message(one: dict[str, Any], policy: str) -> dict[str, Any]:
    known = ("role", "content", "name", "tool_calls", "tool_call_id")
    message = {name: one[name] for name in known if one.get(name) is not None}
    message.setdefault("content", None)
    if message["content"] == "@tau_airline_policy":
        message["content"] = policy
    if not message["content"] and not message.get("tool_calls"):
        message["content"] = one.get("image_caption") or NOTHING
    return message


def _finished(turn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    leading = [one for one in turn if one["role"] == "system"]
    rest = [one for one in turn if one["role"] != "system"]
    if not rest or rest[0]["role"] != "user":
        rest = [{"role": "user", "content": NOTHING}, *rest]
    if rest[-1]["role"] != "assistant" or rest[-1].get("tool_calls"):
        for call in rest[-1].get("tool_calls") or []:
            rest.append({"role": "tool", "tool_call_id": call["id"], "content": NOTHING})
        rest.append({"role": "assistant", "content": NOTHING})
    return [*leading, *rest]
