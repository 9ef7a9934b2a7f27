"""What the logs of a case may hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from turnfold.adapters.json_logs import JsonLines

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterable

    from support.reports.run import Run

UNHANDLED = ("INTERNAL_ERROR", "COMPACTION_FAILED", "ARCHIVE_FAILED", "BATCH_FAILED")
LEAST_PERSONAL = 12
"""Shorter texts ("ok", "next") are words of ours as well."""
LONGEST_LOOKED_FOR = 200


def check_logs(run: Run, records: Iterable[logging.LogRecord]) -> None:
    """No unhandled exception, and nothing that anybody said."""
    formatter = JsonLines()
    for record in records:
        if record.name != "turnfold":
            continue
        line = formatter.format(record)
        assert json.loads(line).get("code") not in UNHANDLED, line
        _check_private(run, line, "the log")


def check_errors(run: Run) -> None:
    """No error repeats what anybody said."""
    for call in run.client.calls:
        if call.answer.status >= 400:
            _check_private(run, call.answer.text, f"{call.method} {call.target[:80]}")


def _check_private(run: Run, text: str, where: str) -> None:
    for said in run.ledger.texts:
        if len(said.strip()) >= LEAST_PERSONAL:
            assert said[:LONGEST_LOOKED_FOR] not in text, f"a text of a user in {where}"
