"""Telling what is new from what a client repeats."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_completions import calling, result
from support.service import START
from turnfold.domain.client_history import (
    Known,
    continued,
    known_further,
    known_through,
    new_turns,
    read_client_messages,
)
from turnfold.domain.errors import IncompleteTurnError
from turnfold.domain.turns import Turn

type Json = dict[str, Any]

TEXTS = st.text("ab", min_size=1, max_size=2)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=6)


def pair(question: str, answer: str) -> tuple[Json, Json]:
    return {"role": "user", "content": question}, {"role": "assistant", "content": answer}


def turn(number: int, question: str, answer: str) -> Turn:
    return Turn(number, f"id{number}", START, pair(question, answer), "0", "0")


def flat(pairs: list[tuple[str, str]]) -> list[Json]:
    return [message for one in pairs for message in pair(*one)]


@given(PAIRS, PAIRS)
def test_what_was_committed_is_known_whatever_the_client_has_besides(
    committed: list[tuple[str, str]], more: list[tuple[str, str]]
) -> None:
    turns = [turn(at, *one) for at, one in enumerate(committed, start=1)]
    history = flat(committed + more)
    known = known_through(history, turns).messages
    assert known >= len(flat(committed))
    assert known % 2 == 0
    assert len(new_turns(history[known:])) == (len(history) - known) // 2


@given(PAIRS, PAIRS)
def test_nothing_is_known_of_a_session_that_said_other_things(
    committed: list[tuple[str, str]], history: list[tuple[str, str]]
) -> None:
    turns = [turn(at, *one) for at, one in enumerate(committed, start=1)]
    foreign = [(f"x{question}", f"y{answer}") for question, answer in history]
    assert known_through(flat(foreign), turns) == Known()


@given(PAIRS, st.integers(1, 3))
def test_the_question_is_what_comes_last(pairs: list[tuple[str, str]], asked: int) -> None:
    question = [{"role": "user", "content": "Now?"}] * asked
    system = [{"role": "developer", "content": "Be kind."}]
    sent = read_client_messages([*system, *flat(pairs), *question])
    assert list(sent.system) == system
    assert list(sent.history) == flat(pairs)
    assert list(sent.question) == question
    assert sent.question_at == 1 + 2 * len(pairs)


def test_a_refusal_is_recognised_by_its_words() -> None:
    refusal = {"role": "assistant", "content": None, "refusal": "No."}
    asked = {"role": "user", "content": "Please?"}
    turns = [Turn(1, "id1", START, (asked, refusal), "0", "0")]
    assert known_through([asked, {**refusal, "content": ""}], turns) == Known(2, 1)
    assert known_through([asked, {**refusal, "refusal": "Not now."}], turns) == Known()
    assert known_through([asked, refusal], turns) == Known(2, 1)


@given(PAIRS, st.integers(0, 6), PAIRS)
def test_folded_turns_are_known_behind_the_head(
    committed: list[tuple[str, str]], repeated: int, more: list[tuple[str, str]]
) -> None:
    head = turn(1, "the head", "yes")
    folded = [turn(at, *one) for at, one in enumerate(committed, start=2)]
    changed = [(f"x{question}", answer) for question, answer in more]
    history = [*head.messages, *flat(committed[:repeated] + changed)]
    known = known_through(history, [head])
    assert known == Known(2, 1)
    last = min(repeated, len(committed)) + 1
    assert known_further(history, known, folded) == Known(2 * last, last)
    assert known_further(history, known, []) == known


@pytest.mark.parametrize(
    "before", [[result("c1")], [calling("c1")], [calling("c1", "c2"), result("c1")]]
)
def test_half_an_exchange_before_the_first_question_is_unfinished(before: list[Json]) -> None:
    said = {"role": "assistant", "content": "Well."}
    for history in (before, [said, *before], [*before, *flat([("a", "b")])], [*before, said]):
        with pytest.raises(IncompleteTurnError):
            new_turns(history)
    whole = [calling("c1"), result("c1"), said]
    assert new_turns([*whole, *flat([("a", "b")])]) == (pair("a", "b"),)


@pytest.mark.parametrize("kept", [" Yes.\n", "Yes.", [{"type": "text", "text": "\nYes."}]])
def test_blanks_around_a_text_do_not_count(kept: Any) -> None:
    turns = [turn(1, "Well?", " Yes.\n")]
    history = [{"role": "user", "content": "Well? "}, {"role": "assistant", "content": kept}]
    assert known_through(history, turns) == Known(2, 1)
    other = [{"type": "text", "text": "Yes."}, {"type": "text", "text": "No."}]
    assert known_through([history[0], {**history[1], "content": other}], turns) == Known()


def test_what_a_model_thought_does_not_count() -> None:
    turns = [turn(1, "Well?", "<think>\nHm.\n</think>\n\nYes, <think> it.")]
    for kept in ("Yes, <think> it.", "<think>\nHm.\n</think>\n\nYes, <think> it."):
        assert known_through(pair("Well?", kept), turns) == Known(2, 1)
    assert known_through(pair("Well?", "it."), turns) == Known()


def test_an_open_turn_is_continued_from_any_part_of_its_end() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    begun: list[Json] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": "A moment.", "tool_calls": [call]},
    ]
    repeated = {**begun[1], "content": ""}
    answer = {"role": "tool", "tool_call_id": "c1", "content": "42"}
    assert continued(begun, [answer]) == (answer,)
    assert continued(begun, [repeated, answer]) == (answer,)
    assert continued(begun, [begun[0], repeated, answer]) == (answer,)
    assert continued([*begun, answer], [begun[0], repeated, answer]) == ()
    assert continued(begun, [begun[0]]) is None
