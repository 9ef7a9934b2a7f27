"""Summaries for the summarization policy: validated like compaction's."""

from __future__ import annotations

from typing import Any

import pytest

from support.policy_checks import assistant, user
from support.service import START, Reply, ScriptedModel, count_words, down
from turnfold.adapters.extractive import ExtractiveSummariser
from turnfold.adapters.in_memory_store import InMemoryStore
from turnfold.application.condense import CallableCondenser, WriterCondenser
from turnfold.application.ports.models import ModelAnswer
from turnfold.application.prompts import PromptLibrary
from turnfold.application.summary_writer import PaidAnswers, SummaryWriter
from turnfold.domain.sessions import SessionKey

LONG = "The order 4711-88 goes to Oslo on Friday, and the customer pays 250 EUR on delivery. " * 6
MESSAGES: list[dict[str, Any]] = [user(LONG), assistant(LONG)]


def condenser(model: ScriptedModel | None) -> WriterCondenser:
    store = InMemoryStore(lambda: START)
    answers = PaidAnswers(store, model, lambda: START) if model else None
    writer = SummaryWriter(answers, PromptLibrary(), ExtractiveSummariser(count_words))
    return WriterCondenser(writer, SessionKey("t", "s"), count_words)


def test_what_the_model_lost_is_kept() -> None:
    text = condenser(ScriptedModel(always=lambda _: "An order goes to Oslo.")).condense(
        MESSAGES, ()
    )
    assert text is not None
    assert text.startswith("An order goes to Oslo.")
    assert "4711-88" in text


def test_earlier_summaries_are_part_of_what_is_asked() -> None:
    model = ScriptedModel(always=lambda _: "In short.")
    condenser(model).condense(MESSAGES, ["The customer is called Ada."])
    assert "The customer is called Ada." in model.requests[0].data


@pytest.mark.parametrize(
    "reply",
    ["", " ", "I'm sorry, I can't help with that.", LONG * 3, ModelAnswer("cut", "length", "m")],
    ids=["empty", "blank", "refusal", "longer", "cut"],
)
def test_an_answer_that_must_not_be_used_gives_none(reply: Reply) -> None:
    model = ScriptedModel(always=lambda _: reply)
    assert condenser(model).condense(MESSAGES, ()) is None
    assert len(model.requests) == 2


def test_a_model_that_fails_gives_none() -> None:
    assert condenser(ScriptedModel(always=down)).condense(MESSAGES, ()) is None


def test_without_a_model_the_extractive_summary_is_used() -> None:
    text = condenser(None).condense(MESSAGES, ())
    assert text is not None
    assert 0 < count_words(text) < count_words(LONG)


def test_a_function_of_one_s_own_condenses() -> None:
    own = CallableCondenser(lambda messages, earlier: f"{len(messages)} {len(earlier)}")
    assert own.condense(MESSAGES, ["x"]) == "2 1"
    assert CallableCondenser(lambda _messages, _earlier: "  ").condense(MESSAGES, ()) is None
