"""What messages cost, and the bound that needs no tokenizer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planning import a_turn
from support.service import count_words
from support.strategies import turns
from turnfold.domain.measure import Measure
from turnfold.domain.messages import chat_form
from turnfold.domain.tokens import (
    LEAST_AUDIO_TOKENS,
    LOW_DETAIL_TOKENS,
    OTHER_PART_TOKENS,
    PART_TOKENS,
    byte_bound,
    count_message,
    count_messages,
    estimate,
)


def letters(text: str) -> int:
    return len(text)


def test_a_message_costs_its_framing_role_and_text() -> None:
    assert count_message({"role": "user", "content": "Hello"}, letters) == 3 + 4 + 5


def test_a_name_costs_one_more() -> None:
    assert count_message({"role": "user", "content": "", "name": "Ada"}, letters) == 3 + 4 + 1 + 3


def test_calls_cost_id_name_and_arguments() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"a":1}'}}
    custom = {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "x"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call, custom]}
    assert count_message(message, letters) == 3 + 9 + (2 + 4 + 7) + (2 + 3 + 1)


def test_a_refusal_costs_its_text() -> None:
    message = {"role": "assistant", "content": None, "refusal": "No."}
    assert count_message(message, letters) == 3 + 9 + 3


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        ({"type": "text", "text": "Hello"}, 5),
        ({"type": "refusal", "refusal": "No."}, 3),
        ({"type": "image_url", "image_url": {"url": "data:" + "A" * 10**6}}, 765),
        ({"type": "image_url", "image_url": {"url": "u", "detail": "low"}}, LOW_DETAIL_TOKENS),
        ({"type": "input_audio", "input_audio": {"data": "A" * 10**6}}, PART_TOKENS["input_audio"]),
        ({"type": "input_audio", "input_audio": {"data": "A" * 64_000}}, 120),
        ({"type": "input_audio", "input_audio": {"data": ""}}, LEAST_AUDIO_TOKENS),
        ({"type": "input_audio", "input_audio": {}}, PART_TOKENS["input_audio"]),
        ({"type": "input_audio"}, PART_TOKENS["input_audio"]),
        ({"type": "file", "file": {"file_data": "A" * 10**6}}, PART_TOKENS["file"]),
        ({"type": "hologram"}, OTHER_PART_TOKENS),
    ],
)
def test_parts_cost_each_and_base64_is_no_text(part: dict[str, Any], tokens: int) -> None:
    assert count_message({"role": "user", "content": [part, part]}, letters) == 7 + 2 * tokens


@given(turns())
def test_bytes_are_never_less_than_tokens_and_an_estimate_is_no_more(messages: list[Any]) -> None:
    exact = count_messages(messages, count_words)
    assert exact <= byte_bound(messages)
    assert estimate(messages) <= byte_bound(messages)
    assert count_messages(map(chat_form, messages), count_words) <= exact


# Measuring turns ---------------------------------------------------------------------------------


class Counter:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, text: str) -> int:
        self.calls += 1
        return count_words(text)


def test_nothing_is_counted_where_the_bytes_fit() -> None:
    counter = Counter()
    turn = a_turn(1, 40)
    assert not Measure(counter).exceeds([turn], turn.byte_bound)
    assert counter.calls == 0


def test_a_turn_is_counted_once() -> None:
    counter = Counter()
    measure = Measure(counter)
    turn = a_turn(1, 40)
    assert measure.tokens(turn) == 40
    calls = counter.calls
    assert measure.exceeds([turn], 39)
    assert not measure.exceeds([turn], 40)
    assert counter.calls == calls


@given(st.lists(st.integers(12, 200), max_size=5), st.integers(0, 800))
def test_over_is_strictly_more(sizes: list[int], limit: int) -> None:
    turns_of_sizes = [a_turn(number, tokens) for number, tokens in enumerate(sizes, start=1)]
    assert Measure(count_words).exceeds(turns_of_sizes, limit) is (sum(sizes) > limit)
