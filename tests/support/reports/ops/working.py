"""Operations on workers, queues, clock and faults."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from support.fifo_queue import ReceivedMessage
from support.reports.aws_gate import Fault
from support.reports.registry import operation
from support.reports.run import DEFAULT_TENANT, Result
from turnfold.adapters.sqs_doorbell import Ring, doorbell_message
from turnfold.domain.limits import SWEEP_GRACE_SECONDS
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.reports.run import Run

type Op = dict[str, Any]
type Scope = Mapping[str, Any]

MOST_COMPACTIONS = 12
UNITS = {"advance_s": 1, "advance_m": 60, "advance_h": 3600, "advance_days": 86400}
MODEL_SERVICES = ("openai", "model", "llm")


@operation("drain_compression", "drain")
def drain_compression(run: Run, op: Op, _scope: Scope) -> Result:
    drain(run)
    return Result("drain_compression", op)


def catch_up(run: Run) -> None:
    """Run the workers if anything was committed since; not while one is held."""
    if run.stale and run.workers.held is None:
        drain(run)


def drain(run: Run) -> None:
    """Run the workers until nothing is left to do.

    A degraded summary is done again at the next compaction (clarification 8). As long as scripted
    replies are left for that, the drain asks for one.
    """
    assert run.workers.held is None, "a paused worker has to be resumed first"
    run.workers.drain()
    run.stale = False
    for _ in range(MOST_COMPACTIONS):
        waiting = [name for name in sorted(run.ledger.sessions) if _is_degraded(run, name)]
        if not run.stack.model.replies or not waiting:
            break
        for name in waiting:
            run.client.session(name, "POST", "/compact").ok(202)
        run.workers.drain()
    if _pending(run):
        # A bell may have been lost: the sweeper rings again.
        run.stack.clock.advance(SWEEP_GRACE_SECONDS + 1)
        run.workers.sweep()
        run.workers.drain()
    if run.config.get("auto_compression", True) and not run.stack.gate.faults:
        assert not _pending(run), "work is left when the queues are empty"


def _pending(run: Run) -> dict[tuple[str, str], Any]:
    """The sessions that have work left."""
    found = {name: _watermark(run, name) for name in sorted(run.ledger.sessions)}
    return {name: one for name, one in found.items() if one and one["pending_turns"]}


def _watermark(run: Run, name: tuple[str, str]) -> Any:
    """Of a session that is there."""
    session = run.ledger.of(name)
    if session.deleted or not session.turns:
        return None
    answer = run.client.session(name, "GET")
    return answer.body["watermark"] if answer.status == 200 else None


def _is_degraded(run: Run, name: tuple[str, str]) -> bool:
    watermark = _watermark(run, name)
    return watermark is not None and bool(watermark["degraded"])


@operation("pause_worker")
def pause_worker(run: Run, op: Op, _scope: Scope) -> None:
    run.workers.hold(op.get("at", "after_model_before_write"))


@operation("resume_worker")
def resume_worker(run: Run, _op: Op, _scope: Scope) -> None:
    run.workers.resume()


@operation("kill", "kill_worker")
def kill(run: Run, op: Op, _scope: Scope) -> None:
    """End a worker in the middle of its work."""
    if run.workers.held is None:
        run.workers.hold(op.get("at", "after_model_before_write"))
    run.workers.kill()


@operation("sweep")
def sweep(run: Run, op: Op, _scope: Scope) -> None:
    run.workers.sweep()


@operation("redrive")
def redrive(run: Run, op: Op, _scope: Scope) -> None:
    """Dead letters go back to their queue."""
    for at, one in enumerate(run.stack.dead_letters.receive()):
        run.stack.queue.send(one.group, f"redriven-{at}-{one.message_id}", one.body)
        run.stack.dead_letters.delete(one.receipt)


@operation("redeliver_last_compression_message")
def redeliver(run: Run, op: Op, _scope: Scope) -> Result:
    """The queue hands the last messages out once more, as after a visibility timeout."""
    assert run.workers.last, "no message was delivered yet"
    again = [_again(one) for one in run.workers.last]
    return Result("redeliver_last_compression_message", op, data=run.workers.compact(again))


def _again(one: ReceivedMessage) -> ReceivedMessage:
    return ReceivedMessage(
        message_id=one.message_id,
        group=one.group,
        deduplication_id=one.deduplication_id,
        body=one.body,
        receipt=f"{one.receipt}-again",
        receive_count=one.receive_count + 1,
        sequence_number=one.sequence_number,
        sent_at=one.sent_at,
    )


@operation("deliver_jobs")
def deliver_jobs(run: Run, op: Op, _scope: Scope) -> Result:
    """Doorbells of rounds, each delivered alone in the order that is asked for."""
    key = SessionKey(*run.name_of(op))
    failed = []
    for at, number in enumerate(op["order"]):
        message = doorbell_message(Ring(key, number + 1), f"job-{at}")
        failed += run.workers.compact([_received(run, f"job-{at}", message.group, message.body)])
    return Result("deliver_jobs", op, data=failed)


@operation("sqs_event")
def sqs_event(run: Run, op: Op, _scope: Scope) -> Result:
    """A batch as Lambda gets it. A session with a job that fails has a table that fails."""
    records, broken = op["records"], set()
    for one in records:
        name = (DEFAULT_TENANT, one["session"])
        if name not in run.known:
            run.known.add(name)
            for number in range(4):
                turn = [
                    {"role": "user", "content": f"question {number}"},
                    {"role": "assistant", "content": f"answer {number}"},
                ]
                answer = run.client.session(name, "POST", "/turns", {"messages": turn})
                run.ledger.note_turn(name, answer.ok(201)["turn"], turn)
        if one["job"] == "fails":
            broken.add(one["session"])
    batch = []
    for at, one in enumerate(records):
        message = doorbell_message(Ring(SessionKey(DEFAULT_TENANT, one["session"]), 4), f"j{at}")
        batch.append(_received(run, f"record-{at}", message.group, message.body))
    for session in broken:
        text = f"T#{DEFAULT_TENANT}#S#{session}"
        run.stack.gate.faults.append(Fault("dynamodb", "InternalServerError", 10**6, text=text))
    failed = run.workers.compact(batch)
    run.stack.gate.faults.clear()
    return Result("sqs_event", op, data=failed)


def _received(run: Run, message_id: str, group: str, body: str) -> ReceivedMessage:
    return ReceivedMessage(
        message_id=message_id,
        group=group,
        deduplication_id=message_id,
        body=body,
        receipt=f"receipt-{message_id}",
        receive_count=1,
        sequence_number=1,
        sent_at=run.stack.clock.now,
    )


@operation("poison_job")
def poison_job(run: Run, op: Op, _scope: Scope) -> None:
    """A message that no worker can read, in the session's own group."""
    key = SessionKey(*run.name_of(op))
    how = str(op.get("how", ""))
    body = json.dumps({"v": 99, "unknown": how}) if "version" in how else "{this is not json"
    run.stack.queue.send(doorbell_message(Ring(key, 1), "x").group, f"poison-{how}", body)


@operation("dlq")
def dlq(run: Run, op: Op, _scope: Scope) -> Result:
    return Result("dlq", op, data=run.stack.dead_letters.receive())


@operation("queue_peek")
def queue_peek(run: Run, op: Op, _scope: Scope) -> Result:
    """What was sent to the queues so far."""
    return Result("queue_peek", op, data=list(run.stack.sqs.sent))


@operation("clock")
def clock(run: Run, op: Op, _scope: Scope) -> None:
    """Let time pass; the sweeper passes, and the archivist does what it rings for."""
    run.clock_moved = True
    moment = op.get("set", op.get("now"))
    if moment is not None:
        run.stack.clock.now = datetime.fromisoformat(moment)
    seconds = sum(op.get(name, 0) * length for name, length in UNITS.items())
    run.stack.clock.advance(float(seconds))
    if run.workers.held is None:
        run.workers.sweep()
        while batch := run.stack.archive_queue.receive():
            failed = run.workers.tend(batch)
            for one in batch:
                if one.message_id not in failed:
                    run.stack.archive_queue.delete(one.receipt)


@operation("fault")
def fault(run: Run, op: Op, _scope: Scope) -> None:
    """Errors of a service of AWS, or of the model."""
    if op["service"] in MODEL_SERVICES:
        reply = {"http": op.get("http", 500), "error": op.get("error", "failed")}
        run.stack.model.replies += [reply] * int(op.get("times", 1))
        return
    run.stack.gate.faults.append(
        Fault(
            service=op["service"],
            error=str(op.get("error", op.get("http", "InternalServerError"))),
            times=int(op.get("times", 1)),
            reasons=tuple(op.get("reasons") or ()),
            operation=op.get("operation"),
        )
    )


@operation("reindex")
def reindex(run: Run, op: Op, _scope: Scope) -> Result:
    """The search index made anew: what there is of it is removed, and the bell rings."""
    stores = run.stack.stores
    for key, version in stores.objects():
        if "/turns/" not in key and "/segments/" not in key and "/memory/" not in key:
            stores.s3.delete_object(Bucket="transcripts", Key=key, VersionId=version)
    run.stack.turnfold.__dict__.pop("index_caches", None)
    run.client.session(run.name_of(op), "POST", "/compact").ok(202)
    drain(run)
    return Result("reindex", op)


@operation("restart_process", "cold_start")
def restart_process(run: Run, op: Op, _scope: Scope) -> None:
    """All functions begin anew; what only lived in memory is gone."""
    run.stack.restart()
