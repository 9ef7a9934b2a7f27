"""The operations of the notation by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from support.reports.run import Result, Run

type Act = Callable[[Run, dict[str, Any], Mapping[str, Any]], Result | None]

OPERATIONS: dict[str, Act] = {}


def operation(*names: str) -> Callable[[Act], Act]:
    """Registers what an operation does. It gets the run, the operation expanded, and the scope."""

    def register(act: Act) -> Act:
        for name in names:
            assert name not in OPERATIONS, name
            OPERATIONS[name] = act
        return act

    return register
