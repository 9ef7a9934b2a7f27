"""The demo's conversation is one that the service accepts, and its drawing fits a line."""

from __future__ import annotations

import json

from infra.local.demo import row, sparkline
from infra.local.demo_conversation import turns


def test_the_conversation_has_thirty_whole_turns() -> None:
    conversation = turns()
    assert len(conversation) == 30
    for messages in conversation:
        assert messages[0]["role"] == "user"
        assert messages[-1]["role"] == "assistant"
        assert messages[-1]["content"]
        asked = {c["id"] for m in messages for c in m.get("tool_calls") or []}
        assert asked == {m["tool_call_id"] for m in messages if m["role"] == "tool"}
        for message in messages:
            for call in message.get("tool_calls") or []:
                json.loads(call["function"]["arguments"])
    assert sum(len(json.dumps(messages)) > 4000 for messages in conversation) == 2
    assert sum(len(messages) > 2 for messages in conversation) == 1


def test_the_course_of_the_tokens_is_drawn() -> None:
    assert sparkline([]) == ""
    assert sparkline([0, 1, 50, 100]) == "▁▁▄█"


def test_a_row_shows_the_regions() -> None:
    entries = [
        {"kind": "history_summary", "from_turn": 2, "to_turn": 9},
        {"kind": "round_summary", "from_turn": 10, "to_turn": 10},
        {"kind": "raw", "from_turn": 11, "to_turn": 11},
    ]
    regions = {"head": [{"turn": 1}], "window": entries, "tail": [{}, {}], "pins": [{}]}
    line = row(13, 4000, {"regions": regions, "tokens": {"total": 700}}, [100, 700]).plain
    assert line.split() == ["13", "4,000", "700", "1", "■8▪·", "2", "1", "▂█"]
    assert len(line) < 80
