"""Chat completions in chunks and whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_completions import calling, spoken
from support.fake_openai import chunk, completion, in_chunks
from turnfold.domain.completions import (
    Assembly,
    chunks_of,
    frame_of,
    from_frame,
    memorable_reply,
    usage_of,
)

type Json = dict[str, Any]

ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "index", "tool_calls", "function", "name", "usage", "message"]
            ),
            inner,
            max_size=4,
        )
    ),
)


def assembled(*chunks: Json) -> Json:
    whole = Assembly()
    for one in chunks:
        whole.add(one)
    return whole.completion()


@pytest.mark.parametrize("message", [spoken("Two words "), calling("c1", "c2")])
def test_chunks_make_the_answer_that_they_were_cut_from(message: Json) -> None:
    whole = completion({"model": "m"}, message, "stop")
    (choice,) = assembled(*in_chunks(whole, with_usage=True))["choices"]
    said = {name: value for name, value in choice["message"].items() if value}
    assert said == {name: value for name, value in message.items() if value}
    assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize("message", [spoken("Two words "), calling("c1", "c2")])
def test_an_answer_in_chunks_is_the_same_again(message: Json) -> None:
    whole = completion({"model": "m"}, message, "stop")
    again = assembled(*chunks_of(whole, with_usage=True))
    assert memorable_reply(again) == memorable_reply(whole)
    assert again["usage"] == whole["usage"]
    assert len(list(chunks_of(whole, with_usage=False))) == 2


def test_a_frame_gives_the_answer_again() -> None:
    whole = completion({"model": "m"}, spoken(), "length")
    assert from_frame(frame_of(whole), spoken()) == whole


@pytest.mark.parametrize(
    ("answered", "asked", "counted"),
    [("a", "b", "a"), ("", "b", "b"), (None, "b", "b"), (7, None, "unknown"), ("x" * 999, "", 200)],
)
def test_the_ledger_names_the_model(answered: Any, asked: Any, counted: Any) -> None:
    model = usage_of({"model": answered}, asked).model
    assert (model if isinstance(counted, str) else len(model)) == counted


def test_calls_without_an_index_are_told_by_their_ids() -> None:
    pieces = [
        {"id": "a", "function": {"name": "f", "arguments": "{"}},
        {"function": {"arguments": "}"}},
        {"id": "b", "function": {"name": "g", "arguments": "1"}},
    ]
    message = assembled(*(chunk({"tool_calls": [one]}) for one in pieces))["choices"][0]["message"]
    assert message["tool_calls"] == [
        {"id": "a", "function": {"name": "f", "arguments": "{}"}},
        {"id": "b", "function": {"name": "g", "arguments": "1"}},
    ]


@pytest.mark.parametrize("later", [{}, {"id": "b", "type": "function"}])
def test_calls_that_share_an_index_are_told_by_id_and_name(later: Json) -> None:
    pieces = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "1"}},
        {"index": 0, "id": "b", "function": {"name": "f", "arguments": "["}},
        {"index": 0, "function": {"arguments": "]"}, **later},
    ]
    message = assembled(*(chunk({"tool_calls": [one]}) for one in pieces))["choices"][0]["message"]
    assert [
        (one["id"], one["function"]["name"], one["function"]["arguments"])
        for one in message["tool_calls"]
    ] == [("a", "f", "1"), ("b", "f", "[]")]


def test_an_id_that_changes_with_every_piece_begins_no_call() -> None:
    pieces = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "id": "b", "function": {"name": "", "arguments": "{}"}},
    ]
    message = assembled(*(chunk({"tool_calls": [one]}) for one in pieces))["choices"][0]["message"]
    assert [one["function"] for one in message["tool_calls"]] == [{"name": "f", "arguments": "{}"}]


def test_a_name_that_is_repeated_counts_once() -> None:
    piece = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "x"}}
    message = assembled(chunk({"tool_calls": [piece]}), chunk({"tool_calls": [piece]}))
    (call,) = message["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "f", "arguments": "xx"}


def test_other_choices_are_not_mixed_in() -> None:
    other = {**chunk({}), "choices": [{"index": 1, "delta": {"content": "no"}}]}
    message = assembled(chunk({"content": "yes"}), other)["choices"][0]["message"]
    assert message == {"content": "yes"}


@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage", "id"]), ODD, max_size=3)))
def test_chunks_of_any_shape_are_taken(chunks: list[Json]) -> None:
    whole = assembled(*chunks)
    assert whole["choices"][0]["finish_reason"] is None or memorable_reply(whole) is None
    assert usage_of(whole, "m").prompt_tokens >= 0


@given(ODD)
def test_answers_of_any_shape_are_taken(value: Any) -> None:
    whole = {"choices": value, "usage": value}
    reply = memorable_reply(whole)
    assert reply is None or reply["role"] == "assistant"
    assert list(chunks_of({"choices": []}, with_usage=False))
