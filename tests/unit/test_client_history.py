"""Telling what is new from what a client repeats."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.service import START
from turnfold.domain.client_history import (
    continued,
    known_through,
    new_turns,
    read_client_messages,
)
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
    known = known_through(history, turns)
    assert known >= len(flat(committed))
    assert known % 2 == 0
    assert len(new_turns(history[known:])) == (len(history) - known) // 2


@given(PAIRS, PAIRS)
def test_nothing_is_known_of_a_session_that_said_other_things(
    committed: list[tuple[str, str]], history: list[tuple[str, str]]
) -> None:
    turns = [turn(at, *one) for at, one in enumerate(committed, start=1)]
    foreign = [(f"x{question}", f"y{answer}") for question, answer in history]
    assert known_through(flat(foreign), turns) == 0


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
    assert known_through([asked, {**refusal, "content": ""}], turns) == 2
    assert known_through([asked, {**refusal, "refusal": "Not now."}], turns) == 0
    assert known_through([asked, refusal], turns) == 2


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
