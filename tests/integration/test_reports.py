"""What went wrong elsewhere must not go wrong here: one test for each report of a file.

`REPORT_CASES` names the file; by default it lies beside the repository. Another file in the same
notation runs through the same adapter, which fails on an operation that it does not understand.
What is asserted of a known id stands in `support/reports/outcomes`, what is asserted of every case
in `support/reports/checks`.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from support.aws import aws_environment
from support.reports.aws_gate import AwsGate
from support.reports.checks.generic import check_case
from support.reports.clock import clock_of
from support.reports.interpreter import run_operations
from support.reports.model import CaseModel
from support.reports.network import forbid_network
from support.reports.outcomes import outcome_of
from support.reports.quick_emulator import make_transactions_cheap
from support.reports.resources import Stores
from support.reports.run import Run
from support.reports.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(os.environ.get("REPORT_CASES") or ROOT.parent / "shared" / "cases" / "reports.json")


def _cases() -> list[dict[str, Any]]:
    if not CASES.is_file():
        return []
    found: Any = json.loads(CASES.read_text(encoding="utf-8"))
    cases: list[dict[str, Any]] = found["cases"] if isinstance(found, dict) else found
    return cases


@pytest.fixture(scope="module")
def gated_stores() -> Iterator[tuple[Stores, AwsGate]]:
    """Clients of the emulator behind a gate; each case begins the emulator anew."""
    with aws_environment(None):
        stores, gate = Stores.connect(), AwsGate()
        gate.attach(stores.dynamodb, "dynamodb")
        gate.attach(stores.s3, "s3")
        yield stores, gate


@pytest.mark.skipif(not CASES.is_file(), reason="there are no cases")
@pytest.mark.parametrize("case", _cases(), ids=lambda case: str(case["id"]))
def test_report(
    case: dict[str, Any],
    gated_stores: tuple[Stores, AwsGate],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="turnfold")
    monkeypatch.setattr(logging.getLogger("turnfold"), "propagate", True)
    forbid_network(monkeypatch)
    make_transactions_cheap(monkeypatch)
    config = case["input"].get("config") or {}
    with mock_aws(), CaseModel() as model:
        stack = Stack(*gated_stores, clock_of(config), model, monkeypatch)
        named = (config.get("env") or {}).get("TIKTOKEN_CACHE_DIR") != "unset"
        stack.start(_tenants(case["input"]["ops"]), tmp_path, vocabulary=named)
        run = Run(case, stack, tmp_path)
        run_operations(run, case["input"]["ops"], {})
        outcome = outcome_of(case["id"])
        if outcome is not None:
            outcome(run)
        check_case(run, caplog.records)


def _tenants(ops: Any) -> set[str]:
    """Every tenant that a case names."""
    if isinstance(ops, dict):
        named = {ops["tenant"]} if isinstance(ops.get("tenant"), str) else set()
        return named.union({"local"}, *map(_tenants, ops.values()))
    if isinstance(ops, list):
        return {"local"}.union(*map(_tenants, ops))
    return {"local"}
