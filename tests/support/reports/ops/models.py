"""Operations on the fake model, and what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.reports.model import SHORT_PATIENCE_SECONDS
from support.reports.ops.working import catch_up
from support.reports.registry import operation
from support.reports.run import DEFAULT_SESSION, DEFAULT_TENANT, Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.reports.run import Run

type Op = dict[str, Any]
type Scope = Mapping[str, Any]


@operation("llm")
def llm(run: Run, op: Op, _scope: Scope) -> None:
    """Replies for the next requests."""
    model = run.stack.model
    model.replies += op["replies"]
    if any(isinstance(one, dict) and one.get("timeout") for one in op["replies"]):
        run.stack.shorten_patience(SHORT_PATIENCE_SECONDS)

    def texts(round_number: int) -> list[str]:
        """What was said in a round; rounds are numbered from 0, turns from 1."""
        turns = run.ledger.of((DEFAULT_TENANT, DEFAULT_SESSION)).turns
        messages = turns.get(round_number + 1, [])
        return [one["content"] for one in messages if isinstance(one.get("content"), str)]

    model.texts_of_rounds = texts


@operation("llm_echo")
def llm_echo(run: Run, op: Op, _scope: Scope) -> None:
    """A model that makes its summaries by a rule."""
    run.stack.model.echo = op.get("mode", "echo")


@operation("llm_facts")
def llm_facts(run: Run, op: Op, _scope: Scope) -> None:
    """What the model takes for facts: a list for each turn that is judged, or all that was said."""
    run.stack.model.facts += op.get("script") or []
    run.stack.model.facts_mode = op.get("mode")


@operation("llm_requests")
def llm_requests(run: Run, op: Op, _scope: Scope) -> Result:
    """What the model was asked, once the workers have seen every turn."""
    catch_up(run)
    return Result("llm_requests", op, data=run.stack.model.chat_requests())


@operation("metrics")
def metrics(run: Run, op: Op, _scope: Scope) -> Result:
    return Result("metrics", op, data=dict(run.stack.metrics.sums))


@operation("health")
def health(run: Run, op: Op, _scope: Scope) -> Result:
    answer = run.client("GET", "/healthz")
    answer.ok()
    return Result("health", op, [answer])
