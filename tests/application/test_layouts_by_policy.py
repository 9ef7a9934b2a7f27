"""Contexts of every policy in every layout: valid, within the budget, and counted as they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.invariants import check_alternates, check_i9_valid
from support.service import KEY, Service, count_words
from support.strategies import texts, turns
from turnfold.adapters.extractive import ExtractiveSummariser
from turnfold.application.condense import WriterCondenser
from turnfold.application.prompts import PromptLibrary
from turnfold.application.read_context import ContextRequest
from turnfold.application.read_policy_context import ReadPolicyContext
from turnfold.application.summary_writer import SummaryWriter
from turnfold.domain.errors import BudgetTooSmallError
from turnfold.domain.estimators import ExactEstimator
from turnfold.domain.layouts import ACKNOWLEDGEMENT, ALTERNATING, LAYOUTS
from turnfold.domain.messages import MEMORY_NAME
from turnfold.domain.policies.registry import SERVICE_DEFAULTS, PolicyKit
from turnfold.domain.tokens import count_messages

if TYPE_CHECKING:
    from turnfold.domain.measure import Measure
    from turnfold.domain.memory import WorkingMemory

POLICIES: tuple[dict[str, Any], ...] = (
    {"name": "message_window", "max_messages": 5},
    {"name": "token_window", "max_tokens": 300},
    {"name": "token_limit", "max_tokens": 250},
    {"name": "limit_count", "max_count": 4},
    {"name": "limit_count", "max_count": 3, "keep_first_user_message": True},
    {"name": "time_window", "window_minutes": 60},
    {"name": "relevancy", "max_messages": 4},
    {"name": "summarization", "summarize_threshold": 4, "keep_recent": 2},
    {
        "name": "composite",
        "policies": [
            {"name": "summarization", "summarize_threshold": 4, "keep_recent": 2},
            {"name": "limit_count", "max_count": 3, "keep_first_user_message": True},
        ],
    },
)
MEMORY_ROLES = ("system", "developer", "user")


def reader(service: Service) -> ReadPolicyContext:
    writer = SummaryWriter(None, PromptLibrary(), ExtractiveSummariser(count_words))

    def kit(memory: WorkingMemory, measure: Measure) -> PolicyKit:
        return PolicyKit(
            estimator=ExactEstimator(measure.count),
            condenser=WriterCondenser(writer, KEY, measure.count),
            memory_role=memory.session.settings.memory_role,
            defaults=SERVICE_DEFAULTS,
        )

    return ReadPolicyContext(service.transcript, service.clock, kit)


def talked(kinds: list[list[dict[str, Any]]], role: str = "system") -> Service:
    service = Service(memory_role=role, pin_mode="off")
    for kind in kinds:
        service.commit(kind)
    return service


def view_of(service: Service, spec: dict[str, Any], **members: Any) -> dict[str, Any]:
    memory = service.memory()
    measure = service.context.measure(memory)
    return reader(service).view(memory, measure, spec, ContextRequest(**members))


@given(
    st.lists(turns(), min_size=1, max_size=6),
    st.sampled_from(POLICIES),
    st.sampled_from(MEMORY_ROLES),
    st.lists(texts, max_size=2),
    st.none() | st.integers(20, 1500),
)
def test_every_policy_alternates_within_its_budget(
    kinds: list[list[dict[str, Any]]],
    spec: dict[str, Any],
    role: str,
    asked: list[str],
    budget: int | None,
) -> None:
    service = talked(kinds, role)
    incoming = [{"role": "user", "content": text} for text in asked]
    try:
        view = view_of(service, spec, max_tokens=budget, incoming=incoming, layout=ALTERNATING)
    except BudgetTooSmallError:
        return
    messages = view["messages"]
    check_alternates(messages)
    check_i9_valid(messages[: len(messages) - bool(incoming)])
    total = 3 + count_messages(messages, count_words)
    assert view["tokens"]["total"] == total
    for limit in (budget, spec.get("max_tokens")):
        assert limit is None or total <= limit
    told = [one["turn"] for one in view["regions"]["tail"]]
    for one in view["dropped"]:
        told += range(one["from_turn"], one["to_turn"] + 1)
    assert sorted(told) == list(range(1, len(kinds) + 1))


def test_what_a_layout_adds_is_chosen_less() -> None:
    """A summary with its acknowledgement costs more than the policy knows."""
    service = talked([[*question(n), answer(n)] for n in range(1, 13)])
    spec = {"name": "summarization", "summarize_threshold": 12, "keep_recent": 10}
    whole = view_of(service, spec, layout=LAYOUTS["openai"])["tokens"]["total"]
    exact = view_of(service, spec, layout=ALTERNATING, max_tokens=whole)
    assert ACKNOWLEDGEMENT in exact["messages"]
    assert exact["tokens"]["total"] <= whole
    assert exact["elided"] == []
    more = view_of(service, spec, layout=ALTERNATING)["tokens"]["total"]
    assert more > whole
    assert len(exact["regions"]["tail"]) < len(
        view_of(service, spec, layout=ALTERNATING, max_tokens=more)["regions"]["tail"]
    )


def question(number: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"Question {number} about the boxes in hall {number}?"}]


def answer(number: int) -> dict[str, Any]:
    return {"role": "assistant", "content": f"There are {number} boxes in that hall today."}


@pytest.mark.parametrize("role", MEMORY_ROLES)
def test_a_summary_is_told_by_the_user(role: str) -> None:
    service = talked([[*question(n), answer(n)] for n in range(1, 9)], role)
    spec = {"name": "summarization", "summarize_threshold": 4, "keep_recent": 2}
    messages = view_of(service, spec, layout=ALTERNATING)["messages"]
    assert [(one["role"], one.get("name")) for one in messages] == [
        ("user", MEMORY_NAME),
        ("assistant", MEMORY_NAME),
        ("user", None),
        ("assistant", None),
    ]
