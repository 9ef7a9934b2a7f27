"""Operations that hold operations: loops, races, time limits, and a client at work."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from support.reports.ops.turns import commit_messages
from support.reports.registry import operation
from support.reports.run import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.reports.run import Run

type Op = dict[str, Any]
type Scope = Mapping[str, Any]

SECONDS = 120


def _operations(run: Run, ops: Any, scope: Scope) -> None:
    from support.reports.interpreter import run_operations

    run_operations(run, ops, scope)


@operation("repeat")
def repeat(run: Run, op: Op, scope: Scope) -> None:
    for number in range(op["n"]):
        _operations(run, op["do"], {**scope, "i": number})


@operation("for")
def for_each(run: Run, op: Op, scope: Scope) -> None:
    for value in op["in"]:
        _operations(run, op["do"], {**scope, op["var"]: value})


@operation("timed")
def timed(run: Run, op: Op, scope: Scope) -> Result:
    """Within a number of seconds of this process, without what the emulator takes of them."""
    gate = run.stack.gate
    started = time.process_time() - gate.emulator_seconds
    _operations(run, op["do"], scope)
    seconds = time.process_time() - gate.emulator_seconds - started
    assert seconds <= op["max_seconds"], f"took {seconds:.1f} s"
    return Result("timed", op, data=seconds)


@operation("parallel")
def parallel(run: Run, op: Op, scope: Scope) -> None:
    """At the same time: the requests meet between any two calls of AWS."""
    if "ops" in op:
        jobs = [(one, {**scope, "i": at}) for at, one in enumerate(op["ops"])]
    else:
        jobs = [(op["do"], {**scope, "i": at}) for at in range(op["n"])]
    gate, start = run.stack.gate, threading.Barrier(len(jobs))

    def act(job: tuple[Any, Scope]) -> None:
        start.wait(SECONDS)
        gate.with_baton(lambda: _operations(run, *job))

    with ThreadPoolExecutor(len(jobs)) as pool:
        for future in [pool.submit(act, job) for job in jobs]:
            future.result(SECONDS)


@operation("client_loop")
def client_loop(run: Run, op: Op, _scope: Scope) -> None:
    """A client that reads a context, asks a model and commits: what is new, or all by mistake."""
    name, by_mistake = run.name_of(op), "whole context" in str(op.get("do", ""))
    run.ensure(name)
    for number in range(op.get("n", 1)):
        context = run.client.session(name, "POST", "/context", {}).ok()["messages"]
        question = {"role": "user", "content": f"client question {number}"}
        reply = {"role": "assistant", "content": f"client answer {number}"}
        messages = [*context, question, reply] if by_mistake else [question, reply]
        answer = commit_messages(run, name, messages, op)
        run.results.append(Result("commit", {**op, "messages": messages}, [answer]))
