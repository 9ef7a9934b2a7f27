"""Runs the operations of a case in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.reports.ops import control, copies, looking, models, sessions, turns, working
from support.reports.registry import OPERATIONS
from support.reports.values import expand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.reports.run import Run

MODULES = (control, copies, looking, models, sessions, turns, working)
"""Imported for what they register."""

NESTED = ("do", "ops")
"""Members that hold operations: their forms are expanded when they run, in their own scope."""


def run_operations(run: Run, ops: Any, scope: Mapping[str, Any]) -> None:
    """One operation or several, in order."""
    for op in [ops] if isinstance(ops, dict) else ops:
        run_operation(run, op, scope)


def run_operation(run: Run, op: dict[str, Any], scope: Mapping[str, Any]) -> None:
    name = op["op"]
    assert name in OPERATIONS, f"the adapter does not know the operation {name}"
    given = {
        member: value if member in NESTED and not isinstance(value, str) else expand(value, scope)
        for member, value in op.items()
    }
    result = OPERATIONS[name](run, given, scope)
    if result is None:
        return
    run.results.append(result)
    expected = given.get("expect_status")
    if expected is not None and not contract_decides(run, given):
        assert result.answer.status == expected, result.answer.text[:300]


def contract_decides(run: Run, op: dict[str, Any]) -> bool:
    """Whether an expected status is another one by the contract.

    The working memory of an expired session comes back with the next read (api.md, design), so a
    read after `ttl_days` is answered with 200 where the notation expects 404.
    """
    absent = op["expect_status"] in (404, 410)
    deleted = run.ledger.of(run.name_of(op)).deleted
    return absent and run.clock_moved and not deleted
