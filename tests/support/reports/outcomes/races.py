"""Outcomes of the reports about races, faults and erasures that meet work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.reports.aws_gate import Fault
from support.reports.outcomes import outcome
from support.reports.reading import check_coverage, contents

if TYPE_CHECKING:
    from support.reports.run import Run


@outcome("RACE-01")
def race_01(run: Run) -> None:
    assert len(run.statuses) == 20
    assert set(run.statuses) <= {201, 409}
    said = contents(run.said())
    assert len(said) == 2 * run.statuses.count(201)
    for question, reply in zip(said[::2], said[1::2], strict=True):
        assert question[1:] == reply[1:], "the messages of a commit are not together"
    check_coverage(run.context())


@outcome("RACE-02")
def race_02(run: Run) -> None:
    assert run.workers.stopped == 1
    assert "added while compressing" in contents(run.messages())
    assert "added while compressing" in contents(run.said())
    check_coverage(run.context())


@outcome("RACE-03")
def race_03(run: Run) -> None:
    assert run.workers.stopped == 1
    # That nothing is left was looked for by the scan itself.
    run.last("context").answer.problem(404, "session_not_found")
    assert not run.stack.dead_letters
    assert not run.stack.queue
    assert not run.last("raw_scan").data["objects"]


@outcome("RACE-06")
def race_06(run: Run) -> None:
    first, second = (one.answer for one in run.all("commit"))
    assert first.status == 201
    assert second.status in (429, 503)
    assert int(second.headers["retry-after"]) >= 1
    faults = run.stack.gate.faults
    faults.clear()
    faults.append(
        Fault("dynamodb", "TransactionCanceledException", 99, reasons=("ConditionalCheckFailed",))
    )
    messages = [{"role": "user", "content": "e"}, {"role": "assistant", "content": "f"}]
    answer = run.session("POST", "/turns", {"messages": messages})
    answer.problem(409, "commit_conflict")
    faults.clear()
    assert contents(run.said()) == ["a", "b"]
