"""Policies over committed turns."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.policy_checks import NOW, asks, assistant, check_valid, result_of, system, user
from turnfold.domain.estimators import ExactEstimator, estimate_all
from turnfold.domain.policies.over_turns import (
    MAX_TURNS,
    choose_of_turns,
    shortened,
    turns_wanted,
)
from turnfold.domain.policies.policy import OVER_BUDGET, OVER_LIMIT, Reach
from turnfold.domain.policies.registry import SERVICE_DEFAULTS, PolicyKit, parse_policy
from turnfold.domain.transcript import make_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnfold.domain.policies.policy import Policy
    from turnfold.domain.turns import Turn


def count(text: str) -> int:
    return -(-len(text.encode()) // 4)


KIT = PolicyKit(estimator=ExactEstimator(count), defaults=SERVICE_DEFAULTS)


def committed(number: int, messages: Sequence[Any], hours_ago: float = 0) -> Turn:
    turn, _ = make_record(
        number=number,
        turn_id=f"turn-{number}",
        committed_at=NOW - timedelta(hours=hours_ago),
        messages=tuple(messages),
        prev_sha256="0" * 64,
    )
    return turn


def plain(number: int, hours_ago: float = 0) -> Turn:
    return committed(number, [user(f"q{number}"), assistant(f"a{number}")], hours_ago)


def policy(**spec: Any) -> Policy:
    return parse_policy(spec, KIT)


def test_turns_come_between_system_messages_and_those_to_be_sent() -> None:
    choice = choose_of_turns(
        policy(name="message_window", max_messages=5),
        [plain(1), plain(2), plain(3)],
        now=NOW,
        system=[system()],
        incoming=[user("next")],
    )
    texts = [one["content"] for one in choice.messages]
    assert texts == ["rules", "q3", "a3", "next"]
    assert choice.sources == (None, 3, 3, None)
    assert choice.dropped == (1, 2)
    assert choice.reduced


def test_system_messages_that_came_with_a_turn_are_not_repeated() -> None:
    first = committed(1, [system(), user("q"), {**assistant("a"), "own": 1, "created_at": "x"}])
    choice = choose_of_turns(
        policy(name="message_window", max_messages=9), [first], now=NOW, system=[system()]
    )
    assert choice.messages == (system(), user("q"), assistant("a"))


def test_the_newest_turn_stays_with_all_its_questions() -> None:
    turns = [plain(1), committed(2, [user("one"), user("two"), assistant("both")])]
    choice = choose_of_turns(policy(name="limit_count", max_count=1), turns, now=NOW)
    assert choice.messages == (user("one"), user("two"), assistant("both"))
    assert OVER_LIMIT in choice.flags


def test_what_is_about_to_be_sent_is_the_newest_turn() -> None:
    """As in WIN-05: one message means the question that is to be answered."""
    choice = choose_of_turns(
        policy(name="limit_count", max_count=1), [plain(1)], now=NOW, incoming=[user("next")]
    )
    assert choice.messages == (user("next"),)
    assert OVER_LIMIT not in choice.flags


def test_a_turn_is_as_old_as_its_commit() -> None:
    turns = [plain(1, 9), committed(2, [{**user("q"), "created_at": "2019-01-01"}, assistant()], 1)]
    choice = choose_of_turns(policy(name="time_window", window_minutes=60), turns, now=NOW)
    assert choice.dropped == (1,)


@pytest.mark.parametrize("policy_name", ["token_limit", "token_window"])
def test_a_newest_turn_over_the_budget_can_be_shortened(policy_name: str) -> None:
    """As in WIN-11."""
    turn = committed(2, [user("2026-01-01 ok\n" * 4000), assistant("read")])
    choice = choose_of_turns(
        policy(name=policy_name, max_tokens=400), [plain(1), turn], now=NOW, system=[system()]
    )
    assert OVER_BUDGET in choice.flags
    cut = shortened(choice, 400, count)
    assert cut is not None
    check_valid(cut[0].messages, begins_with_user=True)
    assert estimate_all(ExactEstimator(count), cut[0].messages) <= 400
    assert "left out; fetch turn 2" in str(cut[0].messages[1]["content"])
    assert [one.message for one in cut[1]] == [0]


def test_a_round_over_the_budget_leaves_and_its_turn_says_so() -> None:
    """As in WIN-11."""
    log = "2026-01-01 ok\n" * 4000
    turn = committed(2, [user("dump"), asks("z"), result_of("z", log), assistant("done")])
    choice = choose_of_turns(policy(name="token_limit", max_tokens=400), [plain(1), turn], now=NOW)
    assert choice.messages == (user("dump"), assistant("done"))
    assert (choice.dropped, choice.partial) == ((1,), (2,))


def test_what_cannot_be_shortened_is_said() -> None:
    turns = [plain(1)]
    choice = choose_of_turns(
        policy(name="token_limit", max_tokens=9), turns, now=NOW, system=[system("long " * 99)]
    )
    assert OVER_BUDGET in choice.flags
    assert shortened(choice, 9, count) is None


def test_only_turns_that_can_matter_are_read() -> None:
    assert turns_wanted(Reach(messages=5), 100) == (97, 98, 99, 100)
    assert turns_wanted(Reach(messages=5, first=True), 100) == (1, 97, 98, 99, 100)
    assert turns_wanted(Reach(), 3) == (1, 2, 3)
    assert turns_wanted(Reach(), 0) == ()
    assert len(turns_wanted(Reach(first=True), 10 * MAX_TURNS)) == MAX_TURNS
    assert turns_wanted(Reach(messages=1), 1) == (1,)
