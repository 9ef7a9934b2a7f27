"""Every estimator by example."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.policy_checks import asks, assistant, conversations, result_of, user
from turnfold.domain.estimators import (
    CallableEstimator,
    CharacterEstimator,
    Estimator,
    ExactEstimator,
    OverheadEstimator,
    as_estimator,
    estimate_all,
)
from turnfold.domain.tokens import PER_LIST, count_messages

ALL: list[Estimator] = [
    ExactEstimator(len),
    CharacterEstimator(),
    OverheadEstimator(),
    CallableEstimator(len),
]


@given(conversations(), st.sampled_from(ALL))
def test_a_list_costs_its_messages_and_its_own(
    messages: list[dict[str, Any]], estimator: Estimator
) -> None:
    each = [estimator.message(one) for one in messages]
    assert min(each, default=0) >= 0
    assert estimate_all(estimator, messages) == estimator.list_tokens + sum(each)
    assert isinstance(estimator, Estimator)


def test_the_exact_one_is_the_service_s_own_count() -> None:
    messages = [user("q"), asks("a"), result_of("a"), assistant("b")]
    assert estimate_all(ExactEstimator(len), messages) == PER_LIST + count_messages(messages, len)


def test_characters_are_rounded_up_for_each_message() -> None:
    assert CharacterEstimator().message(user("12345678")) == 3
    assert CharacterEstimator().message(user("1234")) == 2
    assert CharacterEstimator(1.0).message(user("漢字")) == 2
    assert CharacterEstimator(1.0).message(asks("a", arguments='{"q":1}')) == 6 + 7
    assert CharacterEstimator().text("") == 0


def test_overheads_of_tool_traffic() -> None:
    estimator = OverheadEstimator()
    call = asks("call1", text="", arguments='{"a": 2}')
    assert estimator.message(call) == 5 + 4 + 10 + 3 + 2 + 3
    assert estimator.message(asks("call1", text="")) == 5 + 4 + 10 + 3 + 2
    assert estimator.message(result_of("call1", "12345")) == 5 + 2 + 8 + 2 + 2
    parts = [{"type": "text", "text": "12345"}, {"type": "image_url", "image_url": {"url": "x"}}]
    assert estimator.message({"role": "user", "content": parts}) == 5 + 2 + 2 + 5
    assert estimator.text("x" * 137) == 60


def test_whatever_prices_a_message_is_an_estimator() -> None:
    assert as_estimator(2.0) == CharacterEstimator(2.0)
    exact = ExactEstimator(len)
    assert as_estimator(exact) is exact
    mine = as_estimator(lambda message: 7)
    assert (mine.message(user()), mine.text("x"), mine.list_tokens) == (7, 7, 0)


@pytest.mark.parametrize("wrong", [0, -1.5, float("nan"), float("inf")])
def test_a_ratio_must_be_above_zero(wrong: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        as_estimator(wrong)


@pytest.mark.parametrize("wrong", [None, "3", True])
def test_anything_else_is_no_estimator(wrong: Any) -> None:
    with pytest.raises(TypeError):
        as_estimator(wrong)
