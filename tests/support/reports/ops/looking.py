"""Operations that look behind the API: everything that is stored, and the policies in process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.reports.checks.stored import check_items, check_nothing_left
from support.reports.mutation import check_mutations
from support.reports.registry import operation
from support.reports.run import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.reports.run import Run

type Op = dict[str, Any]
type Scope = Mapping[str, Any]


@operation("raw_scan")
def raw_scan(run: Run, op: Op, _scope: Scope) -> Result:
    """Everything in table, bucket (all versions), queues and dead letters."""
    stack = run.stack
    found: dict[str, Any] = {
        "items": stack.stores.items(),
        "objects": stack.stores.objects(),
        "delete_markers": stack.stores.delete_markers(),
        "queues": [
            one.body
            for queue in (stack.queue, stack.archive_queue, stack.dead_letters)
            for one in queue._messages
        ],
    }
    check_items(found["items"])
    alive = run.ledger.living_texts()
    for name, session in run.ledger.sessions.items():
        for life in (*session.earlier, session):
            if life.deleted:
                check_nothing_left(name, life, alive, found)
    return Result("raw_scan", op, data=found)


@operation("python")
def python(run: Run, op: Op, _scope: Scope) -> Result:
    """What the notation asks of the policies in process: that nothing changes its input."""
    check_mutations(run.config)
    return Result("python", op)


def plain(item: Mapping[str, Any]) -> str:
    """An item as text."""
    return json.dumps(item, default=lambda value: value.decode("utf-8", "replace"))
