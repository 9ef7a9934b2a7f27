"""Whether messages are a finished turn: told apart here, without the service's own rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

LEADING = ("system", "developer")


def unanswered(messages: Sequence[Any]) -> list[str]:
    """The ids of tool calls that have no answer yet."""
    waiting: list[str] = []
    for one in messages:
        waiting += [call["id"] for call in one.get("tool_calls") or ()]
        if one.get("role") == "tool" and one.get("tool_call_id") in waiting:
            waiting.remove(one["tool_call_id"])
    return waiting


def conversation(messages: Sequence[Any]) -> list[Any]:
    """The messages without leading system messages."""
    at = next((at for at, one in enumerate(messages) if one.get("role") not in LEADING), None)
    return [] if at is None else list(messages[at:])


def is_whole(messages: Sequence[Any]) -> bool:
    """Whether messages look like a turn from the question to the answer, good or bad."""
    said = conversation(messages)
    return bool(
        said
        and said[0].get("role") == "user"
        and said[-1].get("role") == "assistant"
        and not said[-1].get("tool_calls")
        and not unanswered(said)
    )


def can_follow(begun: Sequence[Any], more: Sequence[Any]) -> bool:
    """Whether messages can be added to a turn that was begun."""
    first = more[0].get("role") if more else None
    waiting = unanswered(begun)
    if waiting:
        return first == "tool" and more[0].get("tool_call_id") in waiting
    if first == "user":
        return all(one.get("role") in (*LEADING, "user") for one in begun)
    return first == "assistant"
