"""What a message must look like, and what makes messages a finished turn or a question."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import turns
from turnfold.domain.errors import IncompleteTurnError, InvalidMessagesError
from turnfold.domain.limits import MAX_TURN_MESSAGES
from turnfold.domain.message_rules import (
    check_exchanges,
    check_messages,
    check_question,
    check_turn,
)
from turnfold.domain.messages import MEMORY_NAME

USER = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "Hello"}


def call(call_id: str = "c1", **members: Any) -> dict[str, Any]:
    function = {"name": "look_up", "arguments": "not JSON at all"}
    return {"id": call_id, "type": "function", "function": function} | members


def calling(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(one) for one in ids]}


def result(call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": ""}


GOOD_MESSAGES: list[dict[str, Any]] = [
    USER,
    ANSWER,
    {"role": "system", "content": ""},
    {"role": "developer", "content": "x", "name": "a"},
    {"role": "user", "content": [{"type": "text", "text": "x"}]},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]},
    {"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}], "unknown": 1},
    {"role": "assistant", "content": None, "refusal": "No."},
    {"role": "assistant", "refusal": "No."},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    {"role": "assistant", "content": "", "tool_calls": [call()]},
    {"role": "assistant", "tool_calls": [call(custom={"name": "f", "input": ""})]},
    {"role": "assistant", "content": "x", "tool_calls": []},
    {"role": "assistant", "content": "x", "tool_calls": None},
    {"role": "tool", "tool_call_id": "c1", "content": ""},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": ""}]},
]

BAD_MESSAGES: list[tuple[Any, str]] = [
    (None, ""),
    ("Hi", ""),
    ([], ""),
    ({}, ".role"),
    ({"role": "robot", "content": "x"}, ".role"),
    ({"role": ["user"], "content": "x"}, ".role"),
    ({"role": "user"}, ".content"),
    ({"role": "user", "content": None}, ".content"),
    ({"role": "user", "content": ""}, ".content"),
    ({"role": "user", "content": []}, ".content"),
    ({"role": "user", "content": 5}, ".content"),
    ({"role": "user", "content": {"type": "text"}}, ".content"),
    ({"role": "user", "content": ["x"]}, ".content[0]"),
    ({"role": "user", "content": [{"text": "x"}]}, ".content[0]"),
    ({"role": "user", "content": [{"type": "text"}]}, ".content[0].text"),
    ({"role": "user", "content": [{"type": "text", "text": None}]}, ".content[0].text"),
    (
        {"role": "user", "content": [{"type": "image_url", "image_url": "u"}]},
        ".content[0].image_url",
    ),
    ({"role": "user", "content": "x", "name": ""}, ".name"),
    ({"role": "user", "content": "x", "name": "n" * 257}, ".name"),
    ({"role": "user", "content": "x", "name": 1}, ".name"),
    ({"role": "system", "content": "x", "name": MEMORY_NAME}, ".name"),
    ({"role": "user", "content": "x", "tool_calls": [call()]}, ".tool_calls"),
    ({"role": "assistant", "content": None}, ""),
    ({"role": "assistant", "content": " \n"}, ""),
    ({"role": "assistant", "content": None, "tool_calls": []}, ""),
    ({"role": "assistant", "content": None, "refusal": ""}, ""),
    ({"role": "assistant", "content": [{"type": "text", "text": " "}]}, ""),
    ({"role": "assistant", "content": "x", "refusal": 1}, ".refusal"),
    ({"role": "assistant", "content": "x", "tool_calls": "c"}, ".tool_calls"),
    ({"role": "assistant", "content": "x", "tool_calls": {}}, ".tool_calls"),
    ({"role": "assistant", "content": "x", "tool_calls": ["c"]}, ".tool_calls[0]"),
    ({"role": "assistant", "tool_calls": [call(id="")]}, ".tool_calls[0].id"),
    ({"role": "assistant", "tool_calls": [call(id=1)]}, ".tool_calls[0].id"),
    ({"role": "assistant", "tool_calls": [call(), call()]}, ".tool_calls[1].id"),
    ({"role": "assistant", "tool_calls": [call(function=None)]}, ".tool_calls[0].function"),
    (
        {"role": "assistant", "tool_calls": [call(function={"name": "f"})]},
        ".tool_calls[0].function.arguments",
    ),
    (
        {"role": "assistant", "tool_calls": [call(function={"arguments": ""})]},
        ".tool_calls[0].function.name",
    ),
    (
        {"role": "assistant", "tool_calls": [call(custom={"name": "f"})]},
        ".tool_calls[0].custom.input",
    ),
    ({"role": "tool", "content": "x"}, ".tool_call_id"),
    ({"role": "tool", "content": "x", "tool_call_id": ""}, ".tool_call_id"),
    ({"role": "tool", "content": None, "tool_call_id": "c1"}, ".content"),
]


@pytest.mark.parametrize("message", GOOD_MESSAGES)
def test_good_messages(message: dict[str, Any]) -> None:
    assert check_messages([message]) == (message,)


@pytest.mark.parametrize(("message", "loc"), BAD_MESSAGES)
def test_bad_messages_and_where(message: Any, loc: str) -> None:
    with pytest.raises(InvalidMessagesError) as refused:
        check_messages([USER, message])
    ((where, what),) = refused.value.errors
    assert where == f"messages[1]{loc}"
    assert what


def test_one_fault_of_each_bad_message() -> None:
    with pytest.raises(InvalidMessagesError) as refused:
        check_messages([{"role": "user"}, USER, {"role": "tool"}, {}])
    places = [where for where, _ in refused.value.errors]
    assert places == ["messages[0].content", "messages[2].content", "messages[3].role"]


@pytest.mark.parametrize("value", [None, {}, "text", b"bytes", 5, [], [USER] * 501])
def test_what_is_no_list_of_messages(value: Any) -> None:
    with pytest.raises(InvalidMessagesError):
        check_messages(value)


def test_five_hundred_messages_are_taken() -> None:
    assert len(check_messages([USER] * MAX_TURN_MESSAGES)) == 500


# Turns -------------------------------------------------------------------------------------------

SYSTEM = {"role": "system", "content": "Be kind."}

GOOD_TURNS: list[list[dict[str, Any]]] = [
    [USER, ANSWER],
    [SYSTEM, {"role": "developer", "content": "x"}, USER, ANSWER],
    [USER, USER, USER, ANSWER],
    [USER, ANSWER, ANSWER],
    [USER, calling("a"), result("a"), ANSWER],
    [USER, calling("a", "b"), result("b"), result("a"), ANSWER],
    [USER, ANSWER, calling("a"), result("a"), calling("a"), result("a"), ANSWER],
    [USER, {"role": "assistant", "content": None, "refusal": "No."}],
]

INCOMPLETE_TURNS: list[tuple[list[dict[str, Any]], str]] = [
    ([USER], "answer is missing"),
    ([USER, calling("a")], "'a'"),
    ([USER, calling("a", "b"), result("a")], "'b'"),
    ([USER, calling("a"), result("a")], "answer is missing"),
    ([USER, calling("a"), ANSWER], "'a'"),
    ([USER, calling("a", "b"), result("b"), ANSWER], "'a'"),
    ([USER, calling("a"), calling("b")], "'a'"),
]

WRONG_TURNS: list[list[dict[str, Any]]] = [
    [SYSTEM],
    [ANSWER],
    [SYSTEM, ANSWER],
    [USER, SYSTEM, ANSWER],
    [USER, ANSWER, SYSTEM],
    [USER, ANSWER, USER, ANSWER],
    [result("a"), USER, ANSWER],
    [USER, result("a"), ANSWER],
    [USER, calling("a"), result("b"), ANSWER],
    [USER, calling("a"), result("a"), result("a"), ANSWER],
]


@pytest.mark.parametrize("messages", GOOD_TURNS)
def test_finished_turns(messages: list[dict[str, Any]]) -> None:
    assert check_turn(messages) == tuple(messages)


@pytest.mark.parametrize(("messages", "missing"), INCOMPLETE_TURNS)
def test_unfinished_turns_say_what_is_missing(messages: list[Any], missing: str) -> None:
    with pytest.raises(IncompleteTurnError, match=missing):
        check_turn(messages)


@pytest.mark.parametrize("messages", WRONG_TURNS)
def test_wrong_turns(messages: list[Any]) -> None:
    with pytest.raises(InvalidMessagesError) as refused:
        check_turn(messages)
    assert not isinstance(refused.value, IncompleteTurnError)


@given(turns())
def test_every_generated_turn_is_one(messages: list[Any]) -> None:
    assert check_turn(messages) == tuple(messages)


@given(turns(), st.data())
def test_no_beginning_of_a_turn_is_a_turn_unless_an_answer_ends_it(
    messages: list[Any], data: st.DataObject
) -> None:
    part = messages[: data.draw(st.integers(0, len(messages) - 1))]
    try:
        check_turn(part)
    except InvalidMessagesError:
        return
    assert part[-1]["role"] == "assistant"


def test_many_open_calls_are_listed_shortly() -> None:
    ids = [f"{number}-" + "x" * 500 for number in range(50)]
    with pytest.raises(IncompleteTurnError) as refused:
        check_turn([USER, calling(*ids)])
    assert len(str(refused.value)) < 600
    assert "45 more" in str(refused.value)


def test_open_calls_at_the_end_are_told_not_refused() -> None:
    assert check_exchanges([USER, calling("a", "b"), result("a")]) == ("b",)
    assert check_exchanges([USER, ANSWER]) == ()


# Questions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "messages", [[USER], [SYSTEM, USER, USER], [USER, calling("a"), result("a")]]
)
def test_questions(messages: list[Any]) -> None:
    assert check_question(messages) == tuple(messages)


@pytest.mark.parametrize(
    "messages", [[], [SYSTEM], [USER, ANSWER], [USER, calling("a")], [result("a")], [USER, SYSTEM]]
)
def test_what_no_model_can_answer(messages: list[Any]) -> None:
    with pytest.raises(InvalidMessagesError):
        check_question(messages)
