"""Outcomes of the reports about erasure, tenants and changed inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.reports.checks.stored import everything
from support.reports.outcomes import outcome
from support.reports.reading import contents

if TYPE_CHECKING:
    from support.reports.run import Run


@outcome("DEL-01")
def del_01(run: Run) -> None:
    found = run.last("raw_scan").data
    assert "7731" not in everything(found)
    assert not found["objects"]
    assert not found["delete_markers"]
    run.last("search").answer.problem(404, "session_not_found")
    first, second = (one.answer for one in run.all("delete_session"))
    assert second.ok(202)["erasure_id"] == first.ok(202)["erasure_id"], "the first answer again"
    receipt = run.client("GET", f"/v1/erasures/{first.body['erasure_id']}").ok()
    assert receipt["status"] == "erased"
    assert "7731" not in str(receipt)


@outcome("SEC-01")
def sec_01(run: Run) -> None:
    theirs = run.context(1)
    assert contents(theirs["messages"]) == ["mine", "ok"]
    assert not [one for one in run.last("search").data if "ORD-A-1" in str(one)]
    assert contents(run.context(2)["messages"]) == ["order ORD-A-1", "ok"]
    never = run.client("GET", "/v1/sessions/never", tenant="t-b")
    missing = run.all("context")[0].answer
    assert {key: missing.body[key] for key in ("code", "title", "detail")} == {
        key: never.body[key] for key in ("code", "title", "detail")
    }, "the answer tells that the session exists elsewhere"
    body = {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}
    forged = run.client("POST", "/v1/sessions/s2/turns", {**body, "tenant": "t-a"}, tenant="t-b")
    assert forged.status == 201
    run.client("GET", "/v1/sessions/s2", tenant="t-a").problem(404, "session_not_found")


@outcome("MUT-01")
def mut_01(run: Run) -> None:
    assert len(run.all("python")) == 1, "looked at by the operation itself"


@outcome("MUT-02")
def mut_02(run: Run) -> None:
    assert run.statuses[:5] == [201] * 5
    assert set(run.statuses[5:]) == {422}, "memory was taken for conversation"
    assert len(run.transcript()) == 5
    assert "<memory>" not in str(run.said())
    assert [pin["text"] for pin in run.last("pins").data].count("likes tea") == 1
    assert not [pin for pin in run.last("pins").data if "<memory>" in pin["text"]]
