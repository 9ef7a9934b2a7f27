"""The memory message: pins and summaries as fenced data, never as instructions."""

from collections.abc import Sequence

from turnfold.domain.memory_fence import CLOSING, OPENING, fenced
from turnfold.domain.messages import MEMORY_NAME
from turnfold.domain.pins import Pin
from turnfold.domain.summaries import Summary

PINS_TITLE = "Confirmed facts, to be respected:"
SUMMARIES_TITLE = "Earlier turns, summarised:"


def pins_text(pins: Sequence[Pin]) -> str:
    """The facts, one a line; empty without pins."""
    if not pins:
        return ""
    return "\n".join([PINS_TITLE, *(f"- {fenced(pin.text)}" for pin in pins)])


def summary_line(summary: Summary) -> str:
    """A summary with the turns that it stands for."""
    first, last = summary.from_turn, summary.to_turn
    covered = f"turn {first}" if first == last else f"turns {first}-{last}"
    return f"[{covered}] {fenced(summary.text)}"


def memory_text(pins: Sequence[Pin], summaries: Sequence[Summary]) -> str:
    """Pins, then summaries, oldest first; empty without either."""
    parts = [pins_text(pins)] if pins else []
    if summaries:
        parts.append("\n".join([SUMMARIES_TITLE, *map(summary_line, summaries)]))
    if not parts:
        return ""
    return "\n".join([OPENING, *parts, CLOSING])


def memory_message(
    role: str, pins: Sequence[Pin], summaries: Sequence[Summary]
) -> dict[str, str] | None:
    """The one memory message of a context; None when there is nothing to remember."""
    text = memory_text(pins, summaries)
    return {"role": role, "name": MEMORY_NAME, "content": text} if text else None
