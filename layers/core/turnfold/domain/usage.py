"""What a session has cost: model calls and tokens by step and model, and their price."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from turnfold.domain.errors import InvalidSettingsError

PRICED_TOKENS = 1_000_000
"""Prices are given for that many tokens."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls of one model for one step, such as "round_summary" or "chat", and their tokens."""

    step: str
    model: str
    calls: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens, in any currency."""

    prompt: float
    completion: float


type Prices = Mapping[str, Price]
"""Prices by the name of the model. A name also stands for the dated versions of it."""


def read_prices(text: str) -> Prices:
    """Prices from JSON such as `{"gpt-5.4-mini": [0.25, 2.0]}`: prompt and completion.

    Raises `InvalidSettingsError` for anything else; an empty text means no prices.
    """
    if not text.strip():
        return {}
    try:
        return {
            str(model): Price(float(prompt), float(completion))
            for model, (prompt, completion) in json.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError):
        raise InvalidSettingsError(
            'prices must be JSON such as {"model": [0.25, 2.0]}: of a million prompt and'
            " completion tokens"
        ) from None


def usage_view(entries: Iterable[Usage], prices: Prices) -> dict[str, Any]:
    """The ledger as the contract shows it: by step and model, and in total.

    `cost` is null where a model has no price.
    """
    ordered = sorted(entries, key=lambda one: (one.step, one.model))
    steps = [_shown(one, prices) for one in ordered]
    costs = [one["cost"] for one in steps]
    return {
        "steps": steps,
        "total": {
            "calls": sum(one.calls for one in ordered),
            "prompt_tokens": sum(one.prompt_tokens for one in ordered),
            "completion_tokens": sum(one.completion_tokens for one in ordered),
            "cost": None if None in costs else round(sum(costs), 6),
        },
    }


def _shown(usage: Usage, prices: Prices) -> dict[str, Any]:
    price = _price(usage.model, prices)
    cost = None
    if price is not None:
        tokens = usage.prompt_tokens * price.prompt + usage.completion_tokens * price.completion
        cost = round(tokens / PRICED_TOKENS, 6)
    return {
        "step": usage.step,
        "model": usage.model,
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": cost,
    }


def _price(model: str, prices: Prices) -> Price | None:
    """The price of the longest name that the model's begins with: `x-2026-01-01` is an `x`."""
    names = [name for name in prices if model == name or model.startswith(f"{name}-")]
    return prices[max(names, key=len)] if names else None
