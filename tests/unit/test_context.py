"""Assembling a context: within every budget, valid, complete about what it leaves out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from support.invariants import check_alternates, check_i9_valid
from support.planning import KEY
from support.service import count_words
from support.sessions import START, a_pin, a_session
from support.strategies import sizes, texts, turns
from turnfold.domain.context import Context, Recalled, assemble
from turnfold.domain.errors import BudgetTooSmallError
from turnfold.domain.layouts import ALTERNATING, LAYOUTS
from turnfold.domain.measure import Measure
from turnfold.domain.memory import WorkingMemory, raw_numbers
from turnfold.domain.messages import LEADING_ROLES, MEMORY_NAME, chat_form
from turnfold.domain.recalled import RecalledTurn
from turnfold.domain.regions import split_regions
from turnfold.domain.sessions import Profile
from turnfold.domain.settings import Settings, merge_settings
from turnfold.domain.summaries import Summary
from turnfold.domain.tokens import count_messages
from turnfold.domain.transcript import make_record, sha256_of
from turnfold.domain.turns import Turn

if TYPE_CHECKING:
    from turnfold.domain.pins import Pin


def measure() -> Measure:
    return Measure(count_words)


def total(messages: Any) -> int:
    return 3 + count_messages(messages, count_words)


def turn_of(number: int, messages: list[dict[str, Any]]) -> Turn:
    turn, _ = make_record(
        number=number,
        turn_id=f"t{number}",
        committed_at=START,
        messages=messages,
        prev_sha256="0" * 64,
    )
    return turn


def a_turn(number: int, words: int = 20) -> Turn:
    text = f"turn {number} " + "word " * words
    return turn_of(
        number, [{"role": "user", "content": text}, {"role": "assistant", "content": text}]
    )


def summary_of(first: int, last: int, text: str = "They talked about it.") -> Summary:
    level = 1 if first == last else 2
    return Summary(
        first, last, level, text, count_words(text), 999, "model", "v1", START, degraded=False
    )


def memory_of(  # the parts of a working memory
    turns_by_number: dict[int, Turn],
    *summaries: Summary,
    pins: tuple[Pin, ...] = (),
    system: tuple[dict[str, Any], ...] = (),
    **settings: Any,
) -> WorkingMemory:
    last = max([*turns_by_number, *(one.to_turn for one in summaries)], default=0)
    session = a_session(
        KEY,
        settings=merge_settings(Settings(), settings),
        next_turn=last + 1,
        manifest=tuple(one.ref for one in summaries),
        compacted_through=max((one.to_turn for one in summaries), default=0),
        pin_count=len(pins),
    )
    return WorkingMemory(
        session=session,
        profile=Profile(system=system),
        turns=tuple(turns_by_number[number] for number in raw_numbers(session)),
        summaries=summaries,
        pins=pins,
    )


SYSTEM = ({"role": "system", "content": "Be kind."},)


def usual(**settings: Any) -> WorkingMemory:
    """Head 1, summaries of 2-5 and 6, raw 7 and 8, tail 9 and 10, two pins."""
    return memory_of(
        {number: a_turn(number) for number in (1, 7, 8, 9, 10)},
        summary_of(2, 5),
        summary_of(6, 6),
        pins=(a_pin("p1", text="Likes tea."), a_pin("p2", text="Lives in Oslo.")),
        system=SYSTEM,
        **settings,
    )


def shape(context: Context) -> list[str]:
    """What the messages are, in order."""
    found = []
    for one in context.messages:
        if one.get("name") == MEMORY_NAME:
            found.append("memory")
        elif one["role"] == "user":
            found.append(" ".join(str(one["content"]).split()[:2]))
        elif one["role"] == "system":
            found.append("system")
    return found


# Without a budget --------------------------------------------------------------------------------


def test_everything_in_its_order() -> None:
    context = assemble(usual(), measure())
    assert shape(context) == [
        "system",
        "turn 1",
        "memory",
        "turn 7",
        "turn 8",
        "turn 9",
        "turn 10",
    ]
    assert context.dropped == ()
    assert context.dropped_pins == ()
    assert context.elided is None
    assert context.tokens.total == total(context.messages)
    assert context.tokens.budget is None


def test_messages_about_to_be_sent_come_last_and_are_counted() -> None:
    question = {"role": "user", "content": "And now?", "x_note": 1}
    context = assemble(usual(), measure(), incoming=[question])
    assert context.messages[-1] == {"role": "user", "content": "And now?"}
    assert context.tokens.total == total(context.messages)


def test_other_system_messages_stand_in() -> None:
    other = [{"role": "developer", "content": "Be short."}]
    context = assemble(usual(), measure(), system=other)
    assert context.messages[0] == other[0]
    assert SYSTEM[0] not in context.messages


def test_an_empty_system_message_is_not_sent() -> None:
    memory = memory_of({1: a_turn(1)}, system=({"role": "system", "content": ""},))
    assert [one["role"] for one in assemble(memory, measure()).messages] == ["user", "assistant"]


def test_an_empty_session_is_an_empty_context() -> None:
    context = assemble(memory_of({}), measure())
    assert context.messages == ()
    assert context.tokens.total == 3
    assert assemble(memory_of({}), measure(), budget=3).messages == ()


@pytest.mark.parametrize("role", ["system", "developer", "user"])
def test_the_memorys_role(role: str) -> None:
    context = assemble(usual(memory_role=role), measure())
    (memory,) = [one for one in context.messages if one.get("name") == MEMORY_NAME]
    assert memory["role"] == role


# What is kept within a budget --------------------------------------------------------------------


def kept_by_budget(memory: WorkingMemory) -> list[tuple[int, Context]]:
    whole = assemble(memory, measure()).tokens.total
    found = []
    for budget in range(whole + 2):
        try:
            found.append((budget, assemble(memory, measure(), budget=budget)))
        except BudgetTooSmallError:
            continue
    return found


WORDS = {10: 5, 9: 8, 1: 10, 8: 40, 7: 50}


def test_the_order_in_which_things_come_in() -> None:
    """Each costs more than the one before it, so that none comes in only because it is small."""
    memory = memory_of(
        {number: a_turn(number, words) for number, words in WORDS.items()},
        summary_of(2, 5, "They talked. " * 20),
        summary_of(6, 6, "They talked. " * 15),
        pins=usual().pins,
    )
    first_seen: dict[str, int] = {}
    for budget, context in kept_by_budget(memory):
        parts = [f"turn {one.number}" for one in (*context.head, *context.tail)]
        parts += [f"pin {one.pin_id}" for one in context.pins]
        for one in context.window:
            if isinstance(one, Summary):
                parts.append(f"summary {one.from_turn}")
            else:
                parts.append(f"turn {one.number}")
        for part in parts:
            first_seen.setdefault(part, budget)
    order = sorted(first_seen, key=lambda part: first_seen[part])
    assert order == [
        "turn 10",
        "pin p2",
        "pin p1",
        "turn 9",
        "turn 1",
        "summary 6",
        "summary 2",
        "turn 8",
        "turn 7",
    ]


def test_the_exact_budget_is_enough_and_one_less_is_not() -> None:
    memory = usual()
    whole = assemble(memory, measure())
    exact = assemble(memory, measure(), budget=whole.tokens.total)
    assert exact.messages == whole.messages
    less = assemble(memory, measure(), budget=whole.tokens.total - 1)
    assert len(less.messages) < len(whole.messages)
    assert [(one.from_turn, one.to_turn) for one in less.dropped] == [(7, 7)]


def test_what_was_dropped_is_told_in_runs() -> None:
    memory = usual()
    newest = next(context for _, context in kept_by_budget(memory) if not context.elided)
    assert [(one.from_turn, one.to_turn) for one in newest.dropped] == [(1, 9)]
    assert newest.dropped_pins == ("p1", "p2")


def test_a_newest_turn_that_does_not_fit_is_elided_and_names_itself() -> None:
    memory = memory_of({1: a_turn(1), 2: a_turn(2, words=2000)})
    context = assemble(memory, measure(), budget=200)
    assert context.elided
    assert context.elided.turn == 2
    assert "fetch turn 2" in str(context.messages)
    assert context.tokens.total <= 200
    assert str(context.messages[0]["content"]).startswith("turn 2 word")


def test_a_budget_below_the_least_is_refused_with_what_it_takes() -> None:
    memory = usual()
    with pytest.raises(BudgetTooSmallError) as refused:
        assemble(memory, measure(), budget=5)
    assert refused.value.budget == 5
    assert refused.value.needed > 5
    with pytest.raises(BudgetTooSmallError) as again:
        assemble(memory, measure(), budget=refused.value.needed)
    assert assemble(memory, measure(), budget=again.value.needed).elided is None


def test_a_question_is_kept_even_where_the_newest_turn_does_not_fit() -> None:
    question = [{"role": "user", "content": "And now?"}]
    context = assemble(usual(), measure(), budget=20, incoming=question)
    assert list(context.messages) == [*SYSTEM, *question]
    assert [(one.from_turn, one.to_turn) for one in context.dropped] == [(1, 10)]
    with pytest.raises(BudgetTooSmallError):
        assemble(usual(), measure(), budget=5, incoming=question)


# Any memory, any budget --------------------------------------------------------------------------


@st.composite
def memories(draw: st.DrawFn) -> WorkingMemory:
    """A working memory with every region, of turns of every kind."""
    settings = draw(sizes())
    role = draw(st.sampled_from(["system", "developer", "user"]))
    last = draw(st.integers(0, 14))
    kinds = draw(st.lists(turns(), min_size=1, max_size=4))
    by_number = {n: turn_of(n, kinds[n % len(kinds)]) for n in range(1, last + 1)}
    summaries: list[Summary] = []
    reached = draw(st.integers(1, 4))
    while reached < last - 1 and draw(st.integers(0, 3)):
        first = reached + 1 + draw(st.sampled_from([0, 0, 1]))
        end = min(first + draw(st.integers(0, 4)), last - 1)
        if first > end:
            break
        summaries.append(summary_of(first, end, draw(texts)))
        reached = end
    pins = tuple(
        replace(a_pin(f"p{at}"), text=text)
        for at, text in enumerate(draw(st.lists(texts, max_size=4)))
    )
    system = tuple(
        {"role": "system", "content": text} for text in draw(st.lists(texts, max_size=2))
    )
    return memory_of(by_number, *summaries, pins=pins, system=system, memory_role=role, **settings)


def check(memory: WorkingMemory, context: Context) -> None:
    """All that holds for any context."""
    assert context.tokens.total == total(context.messages)
    if context.tokens.budget is not None:
        assert context.tokens.total <= context.tokens.budget
    check_i9_valid([dict(one) for one in context.messages])
    covered = [turn.number for turn in (*context.head, *context.tail)]
    for one in context.window:
        covered += [one.number] if isinstance(one, Turn) else range(one.from_turn, one.to_turn + 1)
    for run in context.dropped:
        covered += range(run.from_turn, run.to_turn + 1)
    assert sorted(covered) == list(range(1, memory.session.committed_through + 1))
    if context.dropped_pins:
        assert len(context.head) + len(context.window) + len(context.tail) <= 1
    numbers = [turn.number for turn in (*context.head, *context.tail)]
    assert numbers == sorted(numbers)
    shown = [*context.head, *context.window, *context.tail]
    for turn in shown:
        if isinstance(turn, Turn) and not (context.elided and context.elided.turn == turn.number):
            said = [chat_form(one) for one in turn.conversation]
            assert any(
                list(context.messages[at : at + len(said)]) == said
                for at in range(len(context.messages))
            )


@given(memories())
def test_without_a_budget_everything_is_there_and_valid(memory: WorkingMemory) -> None:
    context = assemble(memory, measure())
    check(memory, context)
    assert not context.dropped
    regions = split_regions(memory)
    assert (context.head, context.window, context.tail) == (
        regions.head,
        regions.window,
        regions.tail,
    )


@given(memories(), st.floats(0, 1.1))
def test_within_any_budget(memory: WorkingMemory, share: float) -> None:
    whole = assemble(memory, measure())
    budget = int(whole.tokens.total * share)
    try:
        context = assemble(memory, measure(), budget=budget)
    except BudgetTooSmallError:
        return
    check(memory, context)
    if budget >= whole.tokens.total:
        assert context.messages == whole.messages


@given(memories(), st.data())
def test_a_larger_budget_shows_no_less_of_the_pins(
    memory: WorkingMemory, data: st.DataObject
) -> None:
    whole = assemble(memory, measure()).tokens.total
    small = data.draw(st.integers(0, whole))
    large = data.draw(st.integers(small, whole))
    try:
        less = assemble(memory, measure(), budget=small)
    except BudgetTooSmallError:
        assume(False)
    more = assemble(memory, measure(), budget=large)
    assert set(more.dropped_pins) <= set(less.dropped_pins) or more.elided is None


# The alternating layout -------------------------------------------------------------------------


RECALLED = Recalled([RecalledTurn(a_turn(3), 0.9), RecalledTurn(a_turn(7), 0.5)], 2)


def test_memory_and_recalled_turns_are_told_by_the_user_and_acknowledged() -> None:
    question = [{"role": "user", "content": "And"}, {"role": "user", "content": "now?"}]
    context = assemble(usual(), measure(), incoming=question, recall=RECALLED, layout=ALTERNATING)
    told = [(one["role"], one.get("name"), str(one["content"])[:8]) for one in context.messages]
    assert told == [
        ("system", None, "Be kind."),
        ("user", None, "turn 1 w"),
        ("assistant", None, "turn 1 w"),
        ("user", MEMORY_NAME, "Memory o"),
        ("assistant", MEMORY_NAME, "Understo"),
        *[(role, None, f"turn {n} w") for n in (7, 8) for role in ("user", "assistant")],
        ("user", MEMORY_NAME, "Earlier "),
        ("assistant", MEMORY_NAME, "Understo"),
        *[(role, None, f"turn {n} word"[:8]) for n in (9, 10) for role in ("user", "assistant")],
        ("user", None, "And\n\nnow"),
    ]
    assert context.tokens.total == total(context.messages)
    assert context.stable_messages == 5
    assert context.prefix_sha256 == sha256_of([dict(one) for one in context.messages[:5]])


questions: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    texts.map(lambda text: {"role": "user", "content": text}), max_size=2
)


@given(memories(), questions, st.floats(0, 1.1), st.booleans())
def test_any_context_alternates_within_any_budget(
    memory: WorkingMemory, question: list[dict[str, Any]], share: float, bounded: bool
) -> None:
    def assembled(budget: int | None) -> Context:
        return assemble(
            memory,
            measure(),
            budget=budget,
            incoming=question,
            recall=RECALLED,
            layout=ALTERNATING,
        )

    whole = assembled(None)
    budget = int(whole.tokens.total * share) if bounded else None
    try:
        context = assembled(budget)
    except BudgetTooSmallError:
        return
    messages = [dict(one) for one in context.messages]
    check_alternates(messages)
    check_i9_valid(messages[: len(messages) - bool(question)])
    assert context.tokens.total == total(messages)
    if budget is not None:
        assert context.tokens.total <= budget
        if budget >= whole.tokens.total:
            assert context.messages == whole.messages
    assert not any(one["role"] in LEADING_ROLES for one in messages[len(context.system) :])


@given(memories())
def test_both_layouts_hold_the_same(memory: WorkingMemory) -> None:
    plain = assemble(memory, measure())
    other = assemble(memory, measure(), layout=ALTERNATING)
    for name in ("system", "head", "pins", "window", "tail", "dropped"):
        assert getattr(plain, name) == getattr(other, name)


# The prefix --------------------------------------------------------------------------------------


def test_the_prefix_is_what_stands_before_the_raw_middle() -> None:
    context = assemble(usual(), measure())
    assert context.stable_messages == 4
    assert context.prefix_sha256 == sha256_of([dict(one) for one in context.messages[:4]])


@given(st.integers(10, 20))
def test_the_prefix_stays_the_same_while_turns_are_added(last: int) -> None:
    turns_by_number = {number: a_turn(number) for number in (1, *range(7, last + 1))}
    longer = memory_of(
        turns_by_number, summary_of(2, 5), summary_of(6, 6), pins=usual().pins, system=SYSTEM
    )
    for layout in LAYOUTS.values():
        before = assemble(usual(), measure(), layout=layout)
        after = assemble(longer, measure(), layout=layout)
        assert before.prefix_sha256 == after.prefix_sha256
        stable = before.stable_messages
        assert after.messages[:stable] == before.messages[:stable]
