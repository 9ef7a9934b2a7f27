"""The data part of a prompt: turns, summaries and pins as fenced JSON, one object per line.

Each line is JSON, so a text in it can neither end its line nor its fence: line separators and the
fence's own words are escaped, and a parser gets the text back unchanged. Nothing is expanded: there
is no template here, whatever braces or dollars a text contains.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from turnfold.domain.passages import Passage
from turnfold.domain.pins import Pin
from turnfold.domain.rendering import elide_middle, render_turn
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn

MAX_DATA_BYTES = 240_000
"""About 60,000 tokens of English or of Chinese: what a model with a window of 128,000 tokens takes
with ease. Longer data loses the middles of its longest texts."""

_LEAST_CHARACTERS = 400
_FENCE_WORD = re.compile(r"<(?=\s*/?\s*(?:conversation|pins)\b)", re.IGNORECASE)
_LINE_BREAKERS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def entry_passages(entries: Iterable[Turn | Summary]) -> tuple[Passage, ...]:
    """Window entries as passages; a summary is one passage of the speaker "summary"."""
    passages: list[Passage] = []
    for entry in entries:
        if isinstance(entry, Summary):
            number = entry.from_turn if entry.from_turn == entry.to_turn else None
            passages.append(Passage("summary", entry.text, number))
        else:
            passages.extend(render_turn(entry))
    return tuple(passages)


def source_text(entries: Iterable[Turn | Summary]) -> str:
    """The words that a summary of the entries stands for, which its identifiers come from."""
    return "\n".join(passage.text for passage in entry_passages(entries))


def conversation_data(entries: Sequence[Turn | Summary], max_bytes: int = MAX_DATA_BYTES) -> str:
    """Turns and earlier summaries between `<conversation>` fences, oldest first.

    A turn gives a line per passage, `{"turn": 3, "role": "user", "content": "..."}`; a summary
    gives `{"turns": "2-5", "role": "summary", "content": "..."}`. Over `max_bytes` the longest
    texts lose their middles, each to the same length.
    """
    rows: list[dict[str, Any]] = []
    for entry in entries:
        if isinstance(entry, Summary):
            turns = f"{entry.from_turn}-{entry.to_turn}"
            rows.append({"turns": turns, "role": "summary", "content": entry.text})
        else:
            rows.extend(
                {"turn": passage.turn, "role": passage.speaker, "content": passage.text}
                for passage in render_turn(entry)
            )
    return _fenced("conversation", _within(rows, max_bytes))


def pins_data(pins: Iterable[Pin]) -> str:
    """Pins between `<pins>` fences, each a line `{"pin_id": "...", "content": "..."}`."""
    return _fenced("pins", [_line({"pin_id": pin.pin_id, "content": pin.text}) for pin in pins])


def judgement_data(turns: Sequence[Turn], pins: Iterable[Pin]) -> str:
    """The turns to judge and the active pins, each in its own fence."""
    return f"{conversation_data(turns)}\n{pins_data(pins)}"


def _line(row: dict[str, Any]) -> str:
    text = json.dumps(row, ensure_ascii=False).translate(_LINE_BREAKERS)
    return _FENCE_WORD.sub(r"\\u003c", text)


def _fenced(name: str, lines: Sequence[str]) -> str:
    return "\n".join([f"<{name}>", *lines, f"</{name}>"])


def _within(rows: list[dict[str, Any]], max_bytes: int) -> list[str]:
    """The rows as lines that together keep to the size, as far as eliding can do it."""
    cap = max((len(row["content"]) for row in rows), default=0)
    while True:
        lines = [_line(row | {"content": elide_middle(row["content"], cap)}) for row in rows]
        if cap <= _LEAST_CHARACTERS or sum(len(line.encode()) for line in lines) <= max_bytes:
            return lines
        cap = max(_LEAST_CHARACTERS, cap * 2 // 3)
