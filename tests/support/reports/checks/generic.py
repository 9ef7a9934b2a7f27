"""What has to hold of every case, whatever it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.reports.checks.logs import check_errors, check_logs
from support.reports.checks.stored import check_transcripts

if TYPE_CHECKING:
    import logging
    from collections.abc import Sequence

    from support.reports.run import Run

MAX_QUEUE_MESSAGE_BYTES = 2048


def check_case(run: Run, records: Sequence[logging.LogRecord]) -> None:
    """The README's "every `expect` also means", and `must_not` as far as it is of any case.

    Statuses 500 and 502 were refused with each answer, exceptions by having come this far.
    """
    run.stack.gate.faults.clear()
    check_errors(run)
    check_logs(run, records)
    if run.has_invariant("P2"):
        check_transcripts(run)
    if run.must_not("a model call"):
        assert not run.stack.model.chat_requests(), "the model was asked"
    for message in run.stack.sqs.sent:
        assert len(message["body"].encode()) < MAX_QUEUE_MESSAGE_BYTES, "a large queue message"
