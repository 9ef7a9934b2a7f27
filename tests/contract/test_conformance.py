"""Every rule of the three originals that has to hold, one test for each case of a file.

`CONFORMANCE_CASES` names the file; by default it lies beside the repository. Another file in the
same notation runs through the same adapter, which fails on anything that it does not understand.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from support.conformance.notation import Case, load_cases, run_case
from support.conformance.odin import (
    DriverRunner,
    HistoryRunner,
    ManagerRunner,
    PolicyRunner,
)
from support.conformance.parsers import EstimatorRunner, PinParserRunner, QueueRunner
from support.conformance.sessions import SessionRunner
from support.conformance.windows import MemoriesRunner, StoreRunner, WindowRunner

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(
    os.environ.get("CONFORMANCE_CASES") or ROOT.parent / "shared" / "cases" / "conformance.json"
)

RUNNERS: dict[str, Any] = {
    "message_window": WindowRunner,
    "token_window": WindowRunner,
    "chat_memory_store": StoreRunner,
    "memory_service": MemoriesRunner,
    "driver": DriverRunner,
    "memory_manager": ManagerRunner,
    "message_history": HistoryRunner,
    "limit_count_policy": PolicyRunner,
    "token_limit_policy": PolicyRunner,
    "composite_policy": PolicyRunner,
    "summarization_policy": PolicyRunner,
    "time_window_policy": PolicyRunner,
    "relevancy_policy": PolicyRunner,
    "partitioned_memory": SessionRunner,
    "session_memory": SessionRunner,
    "transcript_store": SessionRunner,
    "token_estimator": EstimatorRunner,
    "pin_parser": PinParserRunner,
    "compression_queue": QueueRunner,
}


@pytest.mark.skipif(not CASES.is_file(), reason="there are no cases")
@pytest.mark.parametrize(
    "raw",
    load_cases(CASES) if CASES.is_file() else [],
    ids=lambda raw: f"{raw['id']}-{raw['profile']}",
)
def test_conformance(raw: dict[str, Any], tmp_path: Path) -> None:
    case = Case(raw, tmp_path)
    run_case(case, RUNNERS[case.given["component"]])
