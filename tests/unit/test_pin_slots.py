"""Which facts of a person replace one another."""

from __future__ import annotations

import time

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


@pytest.mark.parametrize(
    "text",
    [
        "My budget is 500 euros for hotels.",
        "My budget is flexible.",
        "请记住酒店预算是500元。",
        "The deadline is Friday for the essay.",
        "母は大阪に住んでいます。",
        "母は佐藤と申します。",
        "请记住我叫外卖的时候不要辣。",
        "请记住我住在北京的妹妹对花生过敏。",
        "Remember that I moved to the enterprise plan.",
        "I live in a small flat.",
        "I live in Lyon in summer.",
        "Ich wohne in einer WG.",
        "My name is spelled with two n.",
        "My sister says my name is Bo.",
        "Remember that when I am 65 years old I want to retire.",
        "запомни, что меня зовут на свадьбу",
    ],
)
def test_a_sentence_about_something_else_replaces_nothing(text: str) -> None:
    assert not states_nothing_else(text)


@pytest.mark.parametrize(
    "text",
    [
        "Hello, my name is Ana de la Cruz!",
        "Me llamo Íñigo.",
        "меня зовут Анна Петрова",
        "제 이름은 김민수입니다.",
        "我叫李小明。",
        "我住在上海。",
        "私は東京に住んでいます。",
        "田中と申します。",
        "J'habite à Paris.",
        "Actually, our budget is €1,200.",
        "Mein Budget beträgt 400 Euro.",
        "请记住预算是800元。",
        "The new deadline is March 5, 2027.",
        "Remember that I am 35 years old now.",
        "Please call me Annie.",
    ],
)
def test_a_plain_value_is_recognised(text: str) -> None:
    assert states_nothing_else(text)


def test_how_one_is_called_is_not_ones_name() -> None:
    assert pin_slot("Please call me Annie.") != pin_slot("My name is Ana.")


@pytest.mark.parametrize(
    "part", ["please remember that ", "我的新的", "Ana ", "Ana de ", "now ", "5 ", "5,", "a"]
)
def test_no_text_takes_long(part: str) -> None:
    many = part * 500
    before = time.perf_counter()
    for words in ("my name is ", "i live in ", "my budget is ", "the deadline is ", "私の名前"):
        states_nothing_else(f"{many}{words}{many}?x")
    assert time.perf_counter() - before < 1
