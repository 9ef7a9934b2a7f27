"""Folding pins without a model: fewer pins, every word kept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.domain.pin_joining import MAX_JOINED_CHARACTERS, join_pins
from turnfold.domain.pins import Pin, PinStatus, Trust

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def pin(number: int, text: str, trust: Trust = Trust.USER) -> Pin:
    return Pin(f"p{number}", text, 5, PinStatus.ACTIVE, trust, 1.0, (number,), NOW, NOW, 1)


def test_the_shortest_neighbours_are_joined_first() -> None:
    pins = [pin(1, "I like tea."), pin(2, "I do not eat meat."), pin(3, "No calls after nine")]
    facts = join_pins(pins, 2)
    assert [fact.text for fact in facts] == [
        "I like tea. I do not eat meat.",
        "No calls after nine",
    ]
    assert [fact.folds_pin_ids for fact in facts] == [("p1", "p2"), ("p3",)]


def test_a_text_without_a_full_stop_gets_a_semicolon() -> None:
    (fact,) = join_pins([pin(1, "No calls after nine"), pin(2, "我喜欢川菜。"), pin(3, "茶")], 1)
    assert fact.text == "No calls after nine; 我喜欢川菜。茶"


def test_facts_that_are_replaced_one_by_one_stay_alone() -> None:
    pins = [pin(1, "My name is Ana."), pin(2, "I like tea."), pin(3, "I live in Oslo.")]
    assert len(join_pins(pins, 1)) == 3


def test_trust_is_not_mixed() -> None:
    assert len(join_pins([pin(1, "a fact"), pin(2, "a rule", Trust.OPERATOR)], 1)) == 2


@pytest.mark.parametrize("most", [1, 3])
@given(st.lists(st.text(min_size=1, max_size=100).filter(str.strip), min_size=1, max_size=25))
def test_nothing_is_lost_and_none_gets_long(most: int, texts: list[str]) -> None:
    pins = [pin(at, text) for at, text in enumerate(texts)]
    facts = join_pins(pins, most)
    assert [one for fact in facts for one in fact.folds_pin_ids] == [one.pin_id for one in pins]
    for fact in facts:
        folded = [one for one in pins if one.pin_id in fact.folds_pin_ids]
        assert all(one.text.strip() in fact.text for one in folded)
        assert len(folded) == 1 or len(fact.text) <= MAX_JOINED_CHARACTERS
