"""Outcomes of the reports about queues, repetitions and halves of work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.definitions import QUEUE
from support.reports.outcomes import outcome
from support.reports.reading import check_coverage, contents

if TYPE_CHECKING:
    from support.reports.run import Run


@outcome("DLV-01")
def dlv_01(run: Run) -> None:
    # A doorbell carries no work: a session is looked at once for all its messages of a batch, so
    # with one of them all messages of A come again, in order, and none of B (design, section 5).
    failed = run.last("sqs_event").data
    assert failed == ["record-0", "record-1", "record-3"]
    done = run.client.session(("local", "B"), "GET").ok()["watermark"]
    assert done["pending_turns"] == 0
    waiting = run.client.session(("local", "A"), "GET").ok()["watermark"]
    assert waiting["pending_turns"] > 0


@outcome("DLV-04")
def dlv_04(run: Run) -> None:
    answers = [one.answer for one in run.all("commit")]
    problem = answers[1].problem(422, "idempotency_mismatch")
    assert "Idempotency-Key" in problem["title"] + problem["detail"]
    assert sorted(one.status for one in answers[2:]) == [201, 422]
    said = contents(run.said())
    assert said[:2] == ["A", "a"]
    assert said[2:] in (["C", "c"], ["D", "d"])
    raw = b'{ "messages" : [ {"content":"A", "role":"user"},\n{"content":"a","role":"assistant"}] }'
    again = run.session("POST", "/turns", raw=raw, Idempotency_Key="k")
    assert again.ok(201) == answers[0].body
    assert again.headers["idempotency-replayed"] == "true"


@outcome("DLV-05")
def dlv_05(run: Run) -> None:
    assert run.workers.stopped == 1
    body = run.context()
    check_coverage(body)
    assert [one["kind"] for one in body["regions"]["window"]]
    definitions = run.stack.stores.definitions
    timeout = definitions.function("CompactorFunction").timeout_seconds
    assert definitions.properties(QUEUE)["VisibilityTimeout"] >= 6 * timeout


@outcome("DLV-07")
def dlv_07(run: Run) -> None:
    (dead,) = run.last("dlq").data
    assert dead.body.startswith("{this is not")
    check_coverage(run.context())
    assert run.context()["watermark"]["compacted_through"] > 2, "later rounds are compacted"


@outcome("DLV-09")
def dlv_09(run: Run) -> None:
    # Two turns in one commit are refused as a whole (contract: user messages come first).
    run.last("commit").answer.problem(422, "invalid_messages")
    run.session("GET", "/transcript").problem(404, "session_not_found")
    large = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "x" * 500_000},
    ]
    answer = run.session("POST", "/turns", {"messages": large}).ok(201)
    run.ledger.note_turn(("local", "s1"), answer["turn"], large)
    assert run.said() == large


@outcome("DLV-10")
def dlv_10(run: Run) -> None:
    assert run.last("deliver_jobs").data == []
    body = run.context()
    check_coverage(body)
    starts = [one["from_turn"] for one in body["regions"]["window"]]
    assert starts == sorted(starts)
