"""The outcomes of the known cases, by id. A case that is not known gets the general checks only."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.reports.run import Run

type Outcome = Callable[[Run], None]

_MODULES = (
    "counting",
    "delivery",
    "limits",
    "messages",
    "pins",
    "races",
    "safety",
    "summaries",
    "texts",
    "times",
    "windows",
)
_outcomes: dict[str, Outcome] = {}


def outcome(case_id: str) -> Callable[[Outcome], Outcome]:
    """Registers the assertions for a case."""

    def register(check: Outcome) -> Outcome:
        assert case_id not in _outcomes, case_id
        _outcomes[case_id] = check
        return check

    return register


def outcome_of(case_id: str) -> Outcome | None:
    """The assertions for a case, if it is known."""
    for name in _MODULES:
        import_module(f"support.reports.outcomes.{name}")
    return _outcomes.get(case_id)
