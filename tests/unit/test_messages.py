"""The shape of messages, their texts, and the form that a chat endpoint accepts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from support.invariants import CHAT_MEMBERS
from support.strategies import turns
from turnfold.domain.messages import (
    call_name_and_input,
    chat_form,
    content_texts,
    is_blank,
    split_leading,
    tool_calls,
)

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TEXT = {"type": "text", "text": "Hi"}
PICTURE = {"type": "image_url", "image_url": {"url": "u"}}


def test_leading_messages_are_those_at_the_start() -> None:
    system, user = {"role": "system", "content": "s"}, {"role": "user", "content": "u"}
    developer = {"role": "developer", "content": "d"}
    assert split_leading([system, developer, user, system]) == ((system, developer), (user, system))
    assert split_leading([system]) == ((system,), ())
    assert split_leading([]) == ((), ())


def test_calls_are_the_assistants_alone() -> None:
    assert tool_calls({"role": "assistant", "tool_calls": [CALL]}) == [CALL]
    assert tool_calls({"role": "assistant", "tool_calls": None}) == ()
    assert tool_calls({"role": "user", "tool_calls": [CALL]}) == ()


def test_name_and_input_of_both_kinds_of_calls() -> None:
    assert call_name_and_input(CALL) == ("f", "{}")
    assert call_name_and_input({"id": "c", "custom": {"name": "g", "input": "x"}}) == ("g", "x")


def test_the_texts_of_content() -> None:
    refusal = {"type": "refusal", "refusal": "No."}
    parts = {"role": "user", "content": [TEXT, PICTURE, refusal]}
    assert list(content_texts(parts)) == ["Hi", "No."]
    assert list(content_texts({"role": "user", "content": "Hi"})) == ["Hi"]
    assert list(content_texts({"role": "assistant", "content": None})) == []


@pytest.mark.parametrize(
    ("members", "blank"),
    [
        ({"content": "Hi"}, False),
        ({"content": " \n\t"}, True),
        ({"content": None}, True),
        ({}, True),
        ({"content": []}, True),
        ({"content": [{"type": "text", "text": " "}]}, True),
        ({"content": [{"type": "text", "text": None}]}, True),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, False),
        ({"content": [{"type": "refusal", "refusal": " "}]}, True),
        ({"content": [PICTURE]}, False),
        ({"content": None, "tool_calls": [CALL]}, False),
        ({"content": None, "tool_calls": []}, True),
        ({"content": None, "refusal": "No."}, False),
        ({"content": None, "refusal": ""}, True),
    ],
)
def test_what_says_nothing(members: dict[str, Any], blank: bool) -> None:
    assert is_blank({"role": "assistant", **members}) is blank


def test_the_chat_form_leaves_out_what_no_endpoint_knows() -> None:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": " as it is ",
        "name": None,
        "refusal": None,
        "tool_calls": [],
        "created_at": "2026-01-01",
        "x": 1,
    }
    assert chat_form(message) == {"role": "assistant", "content": " as it is "}
    assert chat_form({"role": "user", "content": "u", "tool_call_id": "c"}) == {
        "role": "user",
        "content": "u",
    }


def test_an_empty_text_beside_calls_becomes_null() -> None:
    message: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    assert chat_form(message) == {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert chat_form({"role": "tool", "tool_call_id": "c", "content": ""})["content"] == ""


@given(turns())
def test_the_chat_form_keeps_what_was_said_and_is_its_own_form(messages: list[Any]) -> None:
    for message in messages:
        form = chat_form(message)
        assert form.keys() <= CHAT_MEMBERS
        assert chat_form(form) == form
        assert list(content_texts(form)) == [text for text in content_texts(message) if text] or (
            form["role"] == "tool"
        )
        assert form.get("tool_calls") == message.get("tool_calls")
