"""What holds for every policy, whatever the conversation and its faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.policy_checks import check_result, inputs, newest_question, spoken
from turnfold.domain.estimators import CallableEstimator, CharacterEstimator, estimate_all
from turnfold.domain.policies.policy import OVER_BUDGET, OVER_LIMIT
from turnfold.domain.policies.registry import PolicyKit, parse_policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnfold.domain.policies.policy import PolicyInput

ESTIMATOR = CallableEstimator(lambda message: 4 + len(str(message["content"])), list_tokens=3)


class ShortCondenser:
    """Condenses to a few words."""

    def condense(self, messages: Sequence[Any], earlier: Sequence[str]) -> str | None:
        return f"{len(messages)} messages" if len(messages) % 5 else None


KIT = PolicyKit(estimator=ESTIMATOR, condenser=ShortCondenser())
sizes = st.integers(1, 12)
kinds = st.lists(st.sampled_from(["tool", "assistant", "user"]), unique=True)

simple = st.one_of(
    st.fixed_dictionaries({"name": st.just("message_window"), "max_messages": sizes}),
    st.fixed_dictionaries({"name": st.just("token_window"), "max_tokens": st.integers(1, 200)}),
    st.fixed_dictionaries(
        {
            "name": st.just("token_limit"),
            "max_tokens": st.integers(1, 60),
            "token_ratio": st.none() | st.floats(0.5, 8),
        }
    ),
    st.fixed_dictionaries(
        {
            "name": st.just("limit_count"),
            "max_count": sizes,
            "keep_first_user_message": st.booleans(),
            "priority_removal": kinds,
        }
    ),
    st.fixed_dictionaries({"name": st.just("time_window"), "window_minutes": st.integers(1, 120)}),
    st.fixed_dictionaries(
        {
            "name": st.just("relevancy"),
            "max_messages": sizes,
            "min_relevance_score": st.floats(0, 1),
        }
    ),
    st.fixed_dictionaries(
        {"name": st.just("summarization"), "threshold": sizes, "keep_recent": sizes}
    ),
)
composites = st.lists(simple, max_size=3).map(lambda some: {"name": "composite", "policies": some})


@given(inputs(), simple | composites)
@settings(max_examples=400, deadline=None)
def test_every_policy(given: PolicyInput, spec: dict[str, Any]) -> None:
    result = check_result(parse_policy(spec, KIT), given)
    question = newest_question(given)
    if given.strict and question is not None:
        assert any(one is question for one in result.messages)


@given(inputs(), sizes)
@settings(deadline=None)
def test_a_message_window_keeps_its_size_or_says_so(given: PolicyInput, size: int) -> None:
    policy = parse_policy({"name": "message_window", "max_messages": size})
    result = check_result(policy, given)
    assert len(result.messages) <= size or OVER_LIMIT in result.flags


@given(inputs(), sizes, st.booleans(), kinds)
@settings(deadline=None)
def test_a_count_keeps_its_limit_or_says_so(
    given: PolicyInput, size: int, first: bool, order: list[str]
) -> None:
    spec = {
        "name": "limit_count",
        "max_count": size,
        "keep_first_user_message": first,
        "priority_removal": order,
    }
    result = check_result(parse_policy(spec), given)
    assert len(spoken(result.messages)) <= size or OVER_LIMIT in result.flags


@given(inputs(), st.integers(1, 150), st.none() | st.floats(0.5, 8))
@settings(deadline=None)
def test_a_budget_is_kept_or_the_result_says_so(
    given: PolicyInput, budget: int, ratio: float | None
) -> None:
    spec = {"name": "token_limit", "max_tokens": budget, "token_ratio": ratio}
    result = check_result(parse_policy(spec, KIT), given)
    estimator = CharacterEstimator(ratio) if ratio else ESTIMATOR
    cost = estimate_all(estimator, result.messages)
    assert cost <= budget or OVER_BUDGET in result.flags


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "spec",
    [
        {"name": "message_window", "max_messages": 2},
        {"name": "relevancy"},
        {"name": "summarization"},
        {"name": "time_window"},
        {"name": "limit_count"},
        {"name": "token_limit"},
        {"name": "composite", "policies": [{"name": "limit_count"}, {"name": "token_limit"}]},
    ],
    ids=lambda spec: spec["name"],
)
def test_nothing_in_nothing_out(spec: dict[str, Any], strict: bool) -> None:
    from turnfold.domain.policies.policy import PolicyInput

    result = parse_policy(spec, KIT).apply(PolicyInput([], strict=strict))
    assert result.messages == ()
    assert not result.reduced
    assert result.flags == frozenset()
