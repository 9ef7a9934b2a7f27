"""Reading a context: what of a conversation it shows, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.reports.checks.contexts import MEMORY, conversation_of

if TYPE_CHECKING:
    from support.reports.run import Run


def spoken(run: Run, at: int = -1) -> list[dict[str, Any]]:
    """The conversation of a context, without system messages and memory."""
    return conversation_of(run.messages(at))


def contents(messages: list[dict[str, Any]]) -> list[Any]:
    return [one["content"] for one in messages]


def memory_text(body: dict[str, Any]) -> str:
    """What a context says in memory messages."""
    return "\n".join(one["content"] for one in body["messages"] if one.get("name") == MEMORY)


def summaries(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in body["regions"]["window"] if one["kind"] != "raw"]


def summary_texts(body: dict[str, Any]) -> str:
    return "\n".join(one["text"] for one in summaries(body))


def check_coverage(body: dict[str, Any]) -> None:
    """Every committed turn is there exactly once, word for word or in one summary, in order."""
    regions = body["regions"]
    ranges = [(one["turn"], one["turn"]) for one in regions["head"]]
    ranges += [(one["from_turn"], one["to_turn"]) for one in regions["window"]]
    ranges += [(one["turn"], one["turn"]) for one in regions["tail"]]
    following = 1
    for first, last in ranges:
        assert first == following, f"turn {following} is missing or there twice: {ranges}"
        following = last + 1
    assert following == body["watermark"]["committed_through"] + 1, ranges


def check_verbatim_or_summary(body: dict[str, Any], texts: dict[int, str]) -> None:
    """No turn's text stands word for word beside the summary that covers it."""
    covered = {
        number for one in summaries(body) for number in range(one["from_turn"], one["to_turn"] + 1)
    }
    shown = contents(conversation_of(body["messages"]))
    for number, text in texts.items():
        assert (text in shown) != (number in covered), f"turn {number}"
