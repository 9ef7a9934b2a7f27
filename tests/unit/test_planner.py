"""The planner: both schedules turn by turn, boundedness, and that it comes to an end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planning import Conversation, a_turn, longest, shortest
from support.service import count_words
from support.sessions import a_pin
from support.strategies import SIZES
from turnfold.domain.answers import kept_allowance
from turnfold.domain.measure import Measure
from turnfold.domain.planner import (
    BATCH_TURNS,
    MAX_FOLD_ENTRIES,
    MAX_FOLD_PINS,
    Fold,
    FoldPins,
    JudgeTurns,
    max_histories,
    pending_turns,
    summary_cap,
)
from turnfold.domain.regions import split_regions
from turnfold.domain.settings import STRATEGIES, Settings, merge_settings
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn

if TYPE_CHECKING:
    import random
    from collections.abc import Callable


def conversation(**changes: Any) -> Conversation:
    return Conversation(merge_settings(Settings(pin_mode="off"), changes))


def history_folds(talk: Conversation, turns: int, tokens: int) -> list[int]:
    """The turns after whose commit something became a history summary."""
    found = []
    for number in range(1, turns + 1):
        talk.commit(tokens)
        if any(level > 1 for _, _, level in talk.folds(talk.settle())):
            found.append(number)
    return found


# The schedule "whole", mm-memory's own -----------------------------------------------------------


def test_whole_folds_short_turns_at_6_9_12_15() -> None:
    assert history_folds(conversation(schedule="whole"), 16, 40) == [6, 9, 12, 15]


def test_whole_folds_long_turns_at_9_14_19_and_shortens_each_before() -> None:
    talk = conversation(schedule="whole")
    seen: dict[int, list[tuple[int, int, int]]] = {}
    for number in range(1, 20):
        talk.commit(1200)
        seen[number] = talk.folds(talk.settle())
    assert [number for number, folds in seen.items() if any(f[2] > 1 for f in folds)] == [9, 14, 19]
    assert all(seen[number][0] == (number - 2, number - 2, 1) for number in range(4, 20))
    assert seen[9] == [(7, 7, 1), (2, 7, 2)]
    assert seen[14] == [(12, 12, 1), (2, 12, 3)]


def test_whole_keeps_one_summary_after_a_fold() -> None:
    talk = conversation(schedule="whole")
    history_folds(talk, 15, 40)
    (summary,) = talk.summaries
    assert (summary.from_turn, summary.to_turn) == (2, 13)


# The schedule "tiered" ---------------------------------------------------------------------------


def test_tiered_keeps_the_newest_finest() -> None:
    talk = conversation(window_max_size=10, window_token_threshold=100_000)
    for _ in range(200):
        talk.commit()
        talk.settle()
        spans = [one.to_turn - one.from_turn for one in talk.summaries]
        assert len(talk.summaries) <= max_histories(talk.settings)
        assert spans == sorted(spans, reverse=True)
    assert len(talk.summaries) > 1


def test_tiered_lets_rounds_and_several_histories_stand_side_by_side() -> None:
    talk = conversation()
    kinds: set[tuple[int, ...]] = set()
    for _ in range(40):
        talk.commit(1200)
        talk.settle()
        kinds.add(tuple(min(one.level, 2) for one in talk.summaries))
    assert any(one.count(2) > 1 and 1 in one for one in kinds)


@pytest.mark.parametrize("window_max_size", [5, 10, 20])
def test_tiered_folds_a_turn_the_more_rarely_the_older_it_is(window_max_size: int) -> None:
    talk = conversation(window_max_size=window_max_size)
    folded = [0] * 4
    for number in range(400):
        talk.commit()
        folded[number // 100] += sum(
            first <= 10 <= last for first, last, _ in talk.folds(talk.settle())
        )
    assert folded[0] > 0
    assert sum(folded[1:]) <= 6


def test_tiered_does_not_summarise_a_long_turn_that_is_folded_anyway() -> None:
    talk = conversation()
    for _ in range(30):
        talk.commit(1200)
    steps = talk.settle()
    rounds = [one for one in talk.folds(steps) if one[2] == 1]
    assert len(steps) <= 6
    assert len(rounds) <= 3


# Limits are limits -------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["tiered", "whole"])
@pytest.mark.parametrize("over", [0, 1])
def test_the_windows_tokens(schedule: str, over: int) -> None:
    talk = conversation(schedule=schedule, window_token_threshold=100, window_max_size=100)
    talk.commit()
    talk.commit(50)
    talk.commit(50 + over)
    talk.commit()
    talk.commit()
    assert bool(talk.settle()) is bool(over)


@pytest.mark.parametrize("schedule", ["tiered", "whole"])
@pytest.mark.parametrize("over", [0, 1])
def test_the_windows_messages(schedule: str, over: int) -> None:
    talk = conversation(schedule=schedule)
    talk.commit()
    talk.commit(60, messages=3)
    talk.commit(60, messages=2 + over)
    talk.commit()
    talk.commit()
    assert bool(talk.settle()) is bool(over)


@pytest.mark.parametrize("schedule", ["tiered", "whole"])
@pytest.mark.parametrize("over", [0, 1])
def test_a_rounds_tokens(schedule: str, over: int) -> None:
    talk = conversation(schedule=schedule)
    talk.commit()
    talk.commit(1000 + over)
    talk.commit()
    talk.commit()
    folds = talk.folds(talk.settle())
    assert folds == ([(2, 2, 1)] if over else [])


@pytest.mark.parametrize(
    ("count", "tokens", "due"), [(10, 30, False), (11, 27, True), (10, 31, True)]
)
def test_the_pins_limits(count: int, tokens: int, due: bool) -> None:
    talk = Conversation(Settings())
    talk.pins = tuple(a_pin(f"p{number:02d}", tokens=tokens) for number in range(count))
    talk.session = replace(talk.session, pin_rev=1, pin_count=count)
    step = talk.next()
    assert isinstance(step, FoldPins) is due
    if due:
        assert [type(one) for one in talk.settle()] == [FoldPins]


def test_pins_are_folded_oldest_first_as_many_as_one_write_takes() -> None:
    talk = Conversation(Settings())
    talk.pins = tuple(a_pin(f"p{number:03d}") for number in range(150))
    talk.session = replace(talk.session, pin_rev=1, pin_count=150)
    step = talk.next()
    assert isinstance(step, FoldPins)
    assert step.pins == talk.pins[:MAX_FOLD_PINS]
    assert 1 + 2 * (2 * MAX_FOLD_PINS - 1) <= 100


def test_one_pin_cannot_be_folded() -> None:
    talk = Conversation(Settings())
    talk.pins = (a_pin("p1", tokens=1000),)
    talk.session = replace(talk.session, pin_rev=1, pin_count=1)
    assert talk.next() is None


# Switches ----------------------------------------------------------------------------------------


def all_purposes(talk: Conversation) -> set[str]:
    for _ in range(12):
        talk.commit()
        talk.commit(1200)
    return {
        type(one).__name__ if not isinstance(one, Fold) else f"level {min(one.level, 2)}"
        for one in talk.settle()
    }


@pytest.mark.parametrize("schedule", ["tiered", "whole"])
def test_what_is_switched_off_is_not_done(schedule: str) -> None:
    def done(*strategies: str, **changes: Any) -> set[str]:
        given = {"schedule": schedule, "strategies": list(strategies)} | changes
        return all_purposes(Conversation(merge_settings(Settings(), given)))

    assert done() == set()
    assert done("PIN_JUDGMENT") == {"JudgeTurns"}
    assert done("PIN_JUDGMENT", pin_mode="off") == set()
    assert done("CURRENT_ROUND_SUMMARIZATION") == {"level 1"}
    assert "level 2" in done("HISTORY_SUMMARIZATION")
    assert done(*STRATEGIES, auto_compression=False) == {"JudgeTurns"}


def test_a_forced_run_compacts_though_it_is_switched_off() -> None:
    talk = conversation(auto_compression=False)
    for _ in range(12):
        talk.commit()
    assert talk.settle() == []
    assert pending_turns(talk.memory, talk.measure) > 0
    assert talk.settle(forced=True) != []
    assert pending_turns(talk.memory, talk.measure) == 0


# Judged first, coalescing ------------------------------------------------------------------------


def test_turns_are_judged_before_anything_is_folded() -> None:
    talk = Conversation(Settings())
    for _ in range(30):
        talk.commit(200)
    steps = talk.settle()
    kinds = [isinstance(one, JudgeTurns) for one in steps]
    assert kinds == sorted(kinds, reverse=True)
    judged = [turn.number for one in steps if isinstance(one, JudgeTurns) for turn in one.turns]
    assert judged == list(range(1, 31))


def test_turns_of_a_batch_fit_a_call_and_a_longer_one_is_alone() -> None:
    talk = Conversation(Settings())
    for tokens in (3000, 3000, 1000, 9000, 40, 40):
        talk.commit(tokens)
    sizes = [len(one.turns) for one in talk.settle() if isinstance(one, JudgeTurns)]
    assert sizes == [2, 1, 1, 2]


def test_a_turn_that_was_left_raw_below_a_summary_is_judged_later() -> None:
    talk = conversation(tail_size=1)
    for tokens in (40, 40, 1200, 40):
        talk.commit(tokens)
    assert talk.folds(talk.settle()) == [(3, 3, 1)]
    talk.change(pin_mode="async")
    step = talk.next()
    assert isinstance(step, JudgeTurns)
    assert [turn.number for turn in step.turns] == [1, 2, 4]


def test_work_waits_while_more_turns_are_known_to_come() -> None:
    talk = Conversation(Settings())
    for _ in range(BATCH_TURNS - 1):
        talk.commit()
        assert talk.next(quiet=False) is None
    talk.commit()
    assert talk.next(quiet=False) is not None


def test_a_burst_of_fifty_short_turns_is_five_steps() -> None:
    talk = Conversation(Settings())
    for _ in range(50):
        talk.commit()
    steps = talk.settle()
    assert [type(one) for one in steps] == [JudgeTurns] * 4 + [Fold]


# Sizes that change in mid-life -------------------------------------------------------------------


@given(
    st.lists(st.one_of(st.integers(1, 6), st.fixed_dictionaries({}, optional=SIZES)), max_size=12),
    st.randoms(use_true_random=False),
)
def test_any_change_of_settings_in_mid_life_leaves_order_and_bounds(
    events: list[Any],
    chance: random.Random,
) -> None:
    talk = conversation()
    for event in events:
        if isinstance(event, dict):
            talk.change(**event)
        else:
            for _ in range(event):
                talk.commit(chance.choice([12, 40, 300, 1500]))
        if chance.random() < 0.7:
            talk.settle()
            check_order(talk)
            check_bounds(talk)


def check_order(talk: Conversation) -> None:
    """Head, window and tail are all turns, in order."""
    regions = split_regions(talk.memory)
    covered: list[int] = []
    for one in (*regions.head, *regions.window, *regions.tail):
        covered += [one.number] if isinstance(one, Turn) else range(one.from_turn, one.to_turn + 1)
    assert covered == list(range(1, talk.session.next_turn))
    assert len(regions.head) <= talk.session.settings.head_size


def check_bounds(talk: Conversation) -> None:
    """The window is within its limits."""
    settings = talk.session.settings
    window = split_regions(talk.memory).window
    size = sum(1 if isinstance(one, Summary) else len(one.conversation) for one in window)
    tokens = sum(
        one.tokens if isinstance(one, Summary) else talk.measure.tokens(one) for one in window
    )
    assert size <= settings.window_max_size
    assert tokens <= settings.window_token_threshold
    assert pending_turns(talk.memory, talk.measure) == 0


def with_identifiers(step: Fold) -> int:
    """A summary of the most tokens there may be, with a line of identifiers."""
    replaced = sum(
        one.tokens if isinstance(one, Summary) else Measure(count_words).tokens(one)
        for one in step.entries
    )
    return max(1, min(step.max_tokens + kept_allowance(step.max_tokens), replaced - 1))


@given(
    st.fixed_dictionaries({}, optional=SIZES),
    st.lists(st.tuples(st.sampled_from([12, 13, 40, 300, 1500, 5000]), st.booleans()), max_size=40),
    st.sampled_from([shortest, longest, with_identifiers]),
    st.booleans(),
)
def test_whatever_the_limits_the_window_is_bounded_and_the_plan_ends(
    changes: dict[str, Any],
    commits: list[tuple[int, bool]],
    size: Callable[[Fold], int],
    judged: bool,
) -> None:
    base = Settings() if judged else Settings(pin_mode="off")
    talk = Conversation(merge_settings(base, changes), size=size)
    for tokens, settles in commits:
        talk.commit(tokens)
        if settles:
            talk.settle(limit=100)
            check_order(talk)
            check_bounds(talk)
    talk.settle(limit=200)
    check_order(talk)
    check_bounds(talk)


@given(st.fixed_dictionaries({}, optional=SIZES), st.integers(0, 90), st.sampled_from([12, 900]))
def test_the_calls_of_a_burst_are_few(changes: dict[str, Any], count: int, tokens: int) -> None:
    talk = Conversation(merge_settings(Settings(), changes | {"round_token_threshold": 1000}))
    for _ in range(count):
        talk.commit(tokens)
    steps = talk.settle()
    judgements = sum(isinstance(one, JudgeTurns) for one in steps)
    per_call = min(BATCH_TURNS, 6000 // tokens)
    assert judgements == -(-count // per_call)
    folds = [one for one in steps if isinstance(one, Fold)]
    fold_tokens = count * tokens
    assert len(folds) <= 3 + 2 * max(count // (MAX_FOLD_ENTRIES // 2), fold_tokens // 12_000)


# Folds -------------------------------------------------------------------------------------------


def test_levels_and_coverage() -> None:
    summary = Summary(2, 4, 3, "x", 1, 9, "m", "", a_turn(1).committed_at)
    assert Fold((a_turn(5),), 9).level == 1
    assert Fold((a_turn(5), a_turn(6)), 9).level == 2
    assert Fold((summary,), 9).level == 4
    assert Fold((summary, a_turn(5)), 9).level == 4
    assert Fold((summary, a_turn(5)), 9).coverage == (2, 5)


@given(st.fixed_dictionaries({}, optional=SIZES), st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_cap_is_shorter_than_what_it_replaces_and_all_fit_side_by_side(
    changes: dict[str, Any], source: int, replaced: int
) -> None:
    settings = merge_settings(Settings(), changes)
    cap = summary_cap(settings, source, replaced)
    assert 1 <= cap <= max(1, replaced * 3 // 4)
    assert cap * (max_histories(settings) + 1) <= settings.window_token_threshold


def test_a_round_is_a_fifth_or_two_hundred_tokens() -> None:
    settings = Settings(window_token_threshold=100_000)
    assert summary_cap(settings, 500, 10_000, single=True) == 200
    assert summary_cap(settings, 1200, 10_000, single=True) == 240


def test_a_history_is_half_from_400_to_500_tokens() -> None:
    settings = Settings(window_token_threshold=100_000)
    assert summary_cap(settings, 500, 10_000) == 400
    assert summary_cap(settings, 900, 10_000) == 450
    assert summary_cap(settings, 9000, 10_000) == 500
