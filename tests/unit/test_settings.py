"""Settings: defaults as the contract has them, bounds, and merging."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import SIZES
from turnfold.application.default_settings import default_settings
from turnfold.domain.errors import InvalidPolicyError, InvalidSettingsError
from turnfold.domain.settings import STRATEGIES, Settings, merge_settings


def test_the_contracts_defaults() -> None:
    assert Settings().to_json() == {
        "policy": {"name": "progressive"},
        "head_size": 1,
        "tail_size": 2,
        "window_max_size": 5,
        "window_token_threshold": 3000,
        "round_token_threshold": 1000,
        "max_pin_count": 10,
        "max_pin_tokens": 300,
        "expire_days": 7,
        "schedule": "tiered",
        "pin_mode": "async",
        "auto_compression": True,
        "strategies": [
            "PIN_JUDGMENT",
            "CURRENT_ROUND_SUMMARIZATION",
            "HISTORY_SUMMARIZATION",
            "PIN_AGGREGATION",
        ],
        "memory_role": "system",
        "model": None,
    }


BAD: list[dict[str, Any]] = [
    {"head_size": 0},
    {"tail_size": 0},
    {"head_size": 101},
    {"head_size": True},
    {"head_size": 1.0},
    {"head_size": "1"},
    {"head_size": None},
    {"window_max_size": 0},
    {"window_token_threshold": 99},
    {"round_token_threshold": 0},
    {"max_pin_count": 0},
    {"max_pin_tokens": 19},
    {"expire_days": 0},
    {"schedule": "weekly"},
    {"schedule": None},
    {"schedule": ["tiered"]},
    {"pin_mode": "maybe"},
    {"memory_role": "assistant"},
    {"auto_compression": 1},
    {"auto_compression": "true"},
    {"strategies": "PIN_JUDGMENT"},
    {"strategies": ["UNKNOWN"]},
    {"strategies": [1]},
    {"strategies": [["PIN_JUDGMENT"]]},
    {"strategies": None},
    {"model": ""},
    {"model": 5},
    {"model": "m" * 201},
    {"unknown": 1},
    {"policy": "unknown"},
    {"policy": None},
    {"policy": {"name": 5}},
    {"policy": {"name": "unknown"}},
    {"policy": {}},
]


@pytest.mark.parametrize("changes", BAD)
def test_bad_settings(changes: dict[str, Any]) -> None:
    with pytest.raises((InvalidSettingsError, InvalidPolicyError)):
        merge_settings(Settings(), changes)


@pytest.mark.parametrize("changes", [None, [], "x", 5])
def test_settings_are_an_object(changes: Any) -> None:
    with pytest.raises(InvalidSettingsError):
        merge_settings(Settings(), changes)


@given(st.fixed_dictionaries({}, optional=SIZES), st.fixed_dictionaries({}, optional=SIZES))
def test_merging_changes_what_is_named_and_nothing_else(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    merged = merge_settings(merge_settings(Settings(), first), second).to_json()
    assert merged == Settings().to_json() | first | second
    assert json.loads(json.dumps(merged)) == merged
    assert merge_settings(Settings(), merged).to_json() == merged


def test_pins_are_judged_unless_either_says_no() -> None:
    assert Settings().judges_pins
    assert Settings(pin_mode="sync").judges_pins
    assert not Settings(pin_mode="off").judges_pins
    assert not Settings(strategies=STRATEGIES[1:]).judges_pins


def test_the_operators_defaults_from_the_environment() -> None:
    settings = default_settings(
        {
            "TURNFOLD_DEFAULT_HEAD_SIZE": "3",
            "TURNFOLD_DEFAULT_TAIL_SIZE": "",
            "TURNFOLD_DEFAULT_AUTO_COMPRESSION": "FALSE",
            "TURNFOLD_DEFAULT_STRATEGIES": "PIN_JUDGMENT, PIN_AGGREGATION",
            "TURNFOLD_DEFAULT_SCHEDULE": "whole",
            "TURNFOLD_DEFAULT_POLICY": "progressive",
            "OTHER": "x",
        }
    )
    changed = {
        "head_size": 3,
        "auto_compression": False,
        "strategies": ["PIN_JUDGMENT", "PIN_AGGREGATION"],
        "schedule": "whole",
    }
    assert settings.to_json() == Settings().to_json() | changed


@pytest.mark.parametrize(
    ("name", "value"),
    [("HEAD_SIZE", "many"), ("HEAD_SIZE", "0"), ("AUTO_COMPRESSION", "yes"), ("SCHEDULE", "x")],
)
def test_a_wrong_default_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(InvalidSettingsError, match=f"TURNFOLD_DEFAULT_{name}"):
        default_settings({f"TURNFOLD_DEFAULT_{name}": value})
