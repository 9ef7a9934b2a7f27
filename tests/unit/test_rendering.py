import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.domain.passages import Passage
from turnfold.domain.rendering import MAX_TOOL_CHARACTERS, elide_middle, render_turn
from turnfold.domain.turns import Turn

PICTURE = "data:image/png;base64," + "iVBORw0K" * 400


def turn(*messages: dict[str, Any], number: int = 3) -> Turn:
    return Turn(number, "t", datetime(2026, 1, 1, tzinfo=UTC), messages, "", "")


def call(name: str = "lookup", arguments: str = "{}") -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_turn_is_what_its_speakers_said() -> None:
    rendered = render_turn(
        turn(
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is it?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [call(arguments='{"a":1,\n "b":[2]}')],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "It is 7."},
            {"role": "assistant", "content": "Seven."},
        )
    )
    assert rendered == (
        Passage("user", "What is it?", 3),
        Passage("assistant", 'lookup({"a": 1, "b": [2]})', 3),
        Passage("tool", "It is 7.", 3),
        Passage("assistant", "Seven.", 3),
    )


def test_text_comes_before_the_calls_beside_it() -> None:
    custom = {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "ls -l"}}
    message = {"role": "assistant", "content": "Let me see.", "tool_calls": [call(), custom]}
    assert [one.text for one in render_turn(turn(message))] == [
        "Let me see.",
        "lookup({})",
        "run(ls -l)",
    ]


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"type": "text", "text": "words"}, "words"),
        ({"type": "refusal", "refusal": "No."}, "No."),
        ({"type": "image_url", "image_url": {"url": PICTURE}}, "[image]"),
        ({"type": "input_audio", "input_audio": {"data": "UklGR", "format": "wav"}}, "[audio]"),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": PICTURE}}, "[file: a.pdf]"),
        ({"type": "file", "file": {"file_id": "f1"}}, "[file]"),
        ({"type": "file"}, "[file]"),
        ({"type": "hologram", "data": PICTURE}, "[attachment]"),
        ({}, "[attachment]"),
    ],
)
def test_parts_without_text_are_named(part: dict[str, Any], shown: str) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "Look:"}, part]}
    assert render_turn(turn(message)) == (Passage("user", f"Look:\n{shown}", 3),)


def test_encoded_bytes_inside_a_text_are_left_out() -> None:
    (passage,) = render_turn(turn({"role": "user", "content": f"See ![x]({PICTURE}) there"}))
    assert "iVBORw0K" not in passage.text
    assert passage.text.startswith("See")
    assert passage.text.endswith("there")


def test_a_refusal_is_said() -> None:
    message = {"role": "assistant", "content": None, "refusal": "I cannot do that."}
    assert render_turn(turn(message)) == (Passage("assistant", "I cannot do that.", 3),)


def test_silence_is_left_out_but_not_a_tools() -> None:
    rendered = render_turn(
        turn(
            {"role": "user", "content": "  \n"},
            {"role": "user", "content": []},
            {"role": "tool", "tool_call_id": "c1", "content": ""},
        )
    )
    assert rendered == (Passage("tool", "(nothing)", 3),)


def test_long_tool_texts_lose_their_middle() -> None:
    rendered = render_turn(
        turn(
            {"role": "assistant", "content": None, "tool_calls": [call(arguments="start " * 999)]},
            {"role": "tool", "tool_call_id": "c1", "content": "first " + "x y " * 9999 + " last"},
            {"role": "assistant", "content": "long " * 9999},
        )
    )
    assert len(rendered[0].text) <= MAX_TOOL_CHARACTERS + len("lookup()")
    assert len(rendered[1].text) <= MAX_TOOL_CHARACTERS
    assert rendered[1].text.startswith("first ")
    assert rendered[1].text.endswith(" last")
    assert "characters left out" in rendered[1].text
    assert rendered[2].text == "long " * 9999, "only tools are shortened here"


def test_arguments_need_not_be_json() -> None:
    deep = "[" * 100_000
    message = {"role": "assistant", "content": None, "tool_calls": [call(arguments=deep), call()]}
    assert render_turn(turn(message))[0].text.startswith("lookup([[[")


@given(text=st.text(max_size=300), most=st.integers(0, 300))
def test_eliding_keeps_the_ends(text: str, most: int) -> None:
    shorter = elide_middle(text, most)
    if len(text) <= most:
        assert shorter == text
    else:
        note = shorter[shorter.index(" [... ") : shorter.index(" ...] ") + len(" ...] ")]
        front, back = shorter.split(note, 1)
        assert text.startswith(front)
        assert text.endswith(back)
        assert f" {len(text) - len(front) - len(back)} " in note
        assert len(shorter) <= max(most, len(note))


MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant"]),
        "content": st.one_of(
            st.none(),
            st.text(max_size=50),
            st.lists(st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=20))),
        ),
    }
)


@given(st.lists(MESSAGES, max_size=6))
def test_no_passage_is_blank(messages: list[dict[str, Any]]) -> None:
    rendered = render_turn(turn(*messages))
    assert all(one.text.strip() for one in rendered)
    assert json.dumps([one.text for one in rendered])
