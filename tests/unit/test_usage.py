"""What a session has cost, and what that means in money."""

from __future__ import annotations

import pytest

from turnfold.domain.errors import InvalidSettingsError
from turnfold.domain.usage import Price, Usage, read_prices, usage_view

LEDGER = (
    Usage("round_summary", "m", calls=2, prompt_tokens=1000, completion_tokens=100),
    Usage("chat", "m-2026-01-01", calls=1, prompt_tokens=500_000, completion_tokens=0),
)


def test_costs_add_up_by_step_and_in_total() -> None:
    view = usage_view(LEDGER, {"m": Price(2.0, 10.0)})
    assert [(one["step"], one["cost"]) for one in view["steps"]] == [
        ("chat", 1.0),
        ("round_summary", 0.003),
    ]
    assert view["total"] == {
        "calls": 3,
        "prompt_tokens": 501_000,
        "completion_tokens": 100,
        "cost": 1.003,
    }


def test_a_model_without_a_price_costs_nobody_knows_what() -> None:
    view = usage_view(LEDGER, {"other": Price(1.0, 1.0)})
    assert {one["cost"] for one in view["steps"]} == {None}
    assert view["total"]["cost"] is None
    assert usage_view((), {})["total"]["cost"] == 0


def test_the_longest_name_counts() -> None:
    prices = {"m": Price(1.0, 1.0), "m-2026-01-01": Price(4.0, 4.0), "m-20": Price(9.0, 9.0)}
    assert usage_view(LEDGER[1:], prices)["total"]["cost"] == 2.0


def test_prices_are_read_from_json() -> None:
    assert read_prices("") == {}
    assert read_prices('{"m": [0.25, 2]}') == {"m": Price(0.25, 2.0)}


@pytest.mark.parametrize("text", ["{", "[]", '{"m": 1}', '{"m": [1]}', '{"m": ["a", "b"]}', "7"])
def test_other_prices_are_refused(text: str) -> None:
    with pytest.raises(InvalidSettingsError):
        read_prices(text)
