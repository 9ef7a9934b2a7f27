"""Shortening a turn: it fits, begins and ends as it did, and says what is missing."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.invariants import check_i9_valid
from support.service import count_words
from support.strategies import turns
from turnfold.domain.elision import MIN_KEPT_CHARACTERS, cut_middle, elide
from turnfold.domain.messages import chat_form, split_leading
from turnfold.domain.tokens import count_messages


def said(*texts: str) -> list[dict[str, Any]]:
    question = [{"role": "user", "content": text} for text in texts]
    return [*question, {"role": "assistant", "content": "Fine."}]


def cost(messages: Any) -> int:
    return count_messages(messages, count_words)


def test_the_longest_texts_lose_most() -> None:
    messages = said("a" * 4000, "b" * 400, "c" * 100)
    found = elide(messages, 7, 200, count_words)
    assert found
    shorter, cut = found
    assert cost(shorter) <= 200
    assert shorter[2:] == tuple(messages[2:])
    assert [one.message for one in cut] == [0, 1]
    assert cut[0].characters > cut[1].characters
    text = shorter[0]["content"]
    assert text.startswith("aaaa")
    assert text.endswith("aaaa")
    assert "fetch turn 7" in text
    assert f"{cut[0].characters} characters left out" in text


def test_what_fits_is_not_cut() -> None:
    messages = said("a" * 400)
    assert elide(messages, 1, cost(messages), count_words) == (tuple(messages), ())


def test_what_cannot_fit_is_told() -> None:
    assert elide(said("a" * 4000), 1, 10, count_words) is None
    assert elide(said(*["a" * 50] * 20), 1, 100, count_words) is None


def test_parts_are_cut_and_other_parts_stay() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    parts = [{"type": "text", "text": "a" * 4000}, picture]
    messages = [{"role": "user", "content": parts}, *said()]
    found = elide(messages, 1, 765 + 100, count_words)
    assert found
    (text, same) = found[0][0]["content"]
    assert len(text["text"]) < 500
    assert same == picture


def test_arguments_are_cut_last_and_stay_json() -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "f", "arguments": json.dumps({"q": "x" * 4000})},
    }
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "u" * 1000},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "t" * 1000},
        {"role": "assistant", "content": "Fine."},
    ]
    enough = elide(messages, 1, 1200, count_words)
    assert enough
    assert enough[0][1] == messages[1]
    tight = elide(messages, 1, 200, count_words)
    assert tight
    arguments = tight[0][1]["tool_calls"][0]["function"]["arguments"]
    assert set(json.loads(arguments)) == {"elided"}


def test_a_custom_tools_input_is_cut_as_text() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "f", "input": "x" * 4000}}
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "t"},
    ]
    found = elide(messages, 1, 200, count_words)
    assert found
    assert "left out" in found[0][0]["tool_calls"][0]["custom"]["input"]


def test_many_texts_a_little_over_the_least_do_not_get_longer() -> None:
    messages = said("a" * 3000, *["b" * (MIN_KEPT_CHARACTERS + 20)] * 20)
    found = elide(messages, 1, cost(messages) - 500, count_words)
    assert found
    assert [one.message for one in found[1]] == [0]


@given(st.text(max_size=400), st.integers(1, 300))
def test_a_cut_never_makes_a_text_longer(text: str, keep: int) -> None:
    shorter, lost = cut_middle(text, 3, keep)
    assert len(shorter) <= len(text)
    assert (lost == 0) == (shorter == text)
    if lost:
        assert shorter.startswith(text[: (keep + 1) // 2])
        assert text.endswith(shorter[len(shorter) - keep // 2 :])


@given(turns(), st.integers(0, 900))
def test_an_elided_turn_fits_and_is_still_a_turn(messages: list[Any], budget: int) -> None:
    conversation = [chat_form(one) for one in split_leading(messages)[1]]
    found = elide(conversation, 3, budget, count_words)
    if found is None:
        return
    shorter, cut = found
    assert cost(shorter) <= budget
    check_i9_valid([dict(one) for one in shorter])
    assert [one["role"] for one in shorter] == [one["role"] for one in conversation]
    changed = [at for at, one in enumerate(shorter) if one != conversation[at]]
    assert changed == [one.message for one in cut]
