"""Operations that copy sessions or make them anew, and other routes of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.reports.registry import operation
from support.reports.run import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.reports.run import Run

type Op = dict[str, Any]
type Scope = Mapping[str, Any]

READS = {
    "export": "/export",
    "usage": "/usage",
    "working_memory": "/working-memory",
    "verify": "/transcript/verify",
    "open_turn": "/open-turn",
}


@operation(*READS)
def read(run: Run, op: Op, _scope: Scope) -> Result:
    """A plain GET about the session."""
    answer = run.client.session(run.name_of(op), "GET", READS[op["op"]])
    return Result(op["op"], op, [answer])


@operation("compact", "rebuild")
def ask_for_work(run: Run, op: Op, _scope: Scope) -> Result:
    run.stale = True
    answer = run.client.session(run.name_of(op), "POST", f"/{op['op']}")
    return Result(op["op"], op, [answer])


@operation("import")
def import_session(run: Run, op: Op, _scope: Scope) -> Result:
    """Messages, or the lines of an export."""
    name = run.name_of(op)
    run.stale = True
    run.ledger.of(name).foreign = True
    run.known.add(name)
    lines = op.get("lines", op.get("body"))
    if lines is None:
        answer = run.client.session(name, "POST", "/import", {"messages": op.get("messages")})
    else:
        text = lines if isinstance(lines, str) else "\n".join(map(str, lines))
        answer = run.client.session(name, "POST", "/import", raw=text.encode())
    return Result("import", op, [answer])


@operation("fork")
def fork(run: Run, op: Op, _scope: Scope) -> Result:
    """A copy up to a turn."""
    name, target = run.name_of(op), op.get("to", op.get("new_session_id", "fork"))
    body: Op = {"session_id": target} | ({"at_turn": op["at_turn"]} if "at_turn" in op else {})
    answer = run.client.session(name, "POST", "/fork", body)
    if answer.status == 201:
        copy = name[0], str(target)
        run.known.add(copy)
        run.ledger.of(copy).foreign = True
    return Result("fork", op, [answer])
