"""What is stored: the transcript after a case, items within DynamoDB's limits, nothing left."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.reports.ledger import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from support.reports.ledger import Name, SessionLedger
    from support.reports.run import Run

MAX_ITEM_BYTES = 400 * 1024
MAX_LEVELS = 32
LEAST_TELLING = 4
"""Shorter texts occur in any base64 or hash."""


def check_transcripts(run: Run) -> None:
    """The second half of P2: every session's transcript holds exactly what was committed."""
    for name, session in sorted(run.ledger.sessions.items()):
        if session.deleted or session.foreign or not session.turns:
            continue
        turns = run.client.pages(name, "transcript", 100)
        numbers = [turn["turn"] for turn in turns]
        assert numbers == list(range(1, len(turns) + 1)), "P2: gaps or repetitions"
        stored = {turn["turn"]: turn["messages"] for turn in turns}
        assert stored == {number: clean(one) for number, one in session.turns.items()}, (
            "P2: the transcript is not what was committed"
        )


def check_items(items: Iterable[dict[str, Any]]) -> None:
    """No item is larger or deeper than DynamoDB takes (the emulator checks neither well)."""
    for item in items:
        assert len(text_of(item).encode()) <= MAX_ITEM_BYTES, "an item over 400 KB"
        assert levels_of(item) <= 2 * MAX_LEVELS, "an item nested over 32 levels"


def text_of(value: Any) -> str:
    return json.dumps(
        value, ensure_ascii=False, default=lambda one: bytes(one).decode("utf-8", "replace")
    )


def levels_of(value: Any) -> int:
    """Levels of an item as the client writes it, where each value has a level for its type."""
    if isinstance(value, dict):
        return 1 + max((levels_of(one) for one in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((levels_of(one) for one in value), default=0)
    return 0


def everything(found: dict[str, Any]) -> str:
    """All that a raw scan found, as one text; packed objects unpacked."""
    import gzip

    parts = [text_of(found["items"]), *found["queues"]]
    for (key, _), content in found["objects"].items():
        raw = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        parts += [key, raw.decode("utf-8", "replace")]
    return "\n".join(parts)


def check_nothing_left(
    name: Name, session: SessionLedger, alive: set[str], found: dict[str, Any]
) -> None:
    """Nothing that was said in an erased session is anywhere, if no living one says it too."""
    whole = everything(found)
    for turn in session.turns.values():
        for message in turn:
            content = message.get("content")
            if isinstance(content, str) and len(content) >= LEAST_TELLING and content not in alive:
                assert content[:2000] not in whole, f"a text of the erased session {name[1]}"
