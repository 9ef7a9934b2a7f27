"""Cutting messages into turns: whatever comes in, what comes out can be committed."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.service import plain_turn
from turnfold.domain.cutting import cut_turns
from turnfold.domain.message_rules import check_turn

CALLS = st.lists(st.sampled_from(["c1", "c2", "c3"]), max_size=2, unique=True)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    role = draw(st.sampled_from(["system", "user", "assistant", "tool", "moderator", "developer"]))
    content = draw(st.sampled_from(["", " ", "text", None, 7, [{"type": "text", "text": "a"}], []]))
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "tool":
        message["tool_call_id"] = draw(st.sampled_from(["c1", "c2", "c3", ""]))
    if role == "assistant":
        ids = draw(CALLS)
        if ids:
            message["tool_calls"] = [
                {"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}}
                for one in ids
            ]
    return message


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(messages(), st.integers(), st.none()), max_size=25))
def test_every_turn_is_finished_and_every_message_is_somewhere(values: list[Any]) -> None:
    turns, faults = cut_turns(enumerate(values, start=1))
    for turn in turns:
        check_turn(turn.messages)
    places = [turn.place for turn in turns]
    assert places == sorted(set(places))
    assert all(1 <= fault.place <= len(values) for fault in faults)
    kept = sum(
        1 for turn in turns for one in turn.messages if any(one is value for value in values)
    )
    if not faults:
        assert kept == len(values)


@given(st.lists(st.integers(1, 99), min_size=1, max_size=10))
def test_finished_turns_come_out_as_they_went_in(numbers: list[int]) -> None:
    wanted = [plain_turn(number) for number in numbers]
    flat = [message for turn in wanted for message in turn]
    turns, faults = cut_turns(enumerate(flat, start=1))
    assert [list(turn.messages) for turn in turns] == wanted
    assert faults == []
