"""P1 and the first half of P2 for one context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.reports.checks.tokens import least_and_most
from support.reports.config import budget_of, policy_of
from support.reports.ledger import LEADING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.reports.ledger import Name
    from support.reports.run import Run

MEMORY = "turnfold_memory"
OVER = ("over_budget", "over_limit")
COMPARED = ("role", "content", "tool_calls", "tool_call_id", "name", "refusal")
ELIDED = "characters left out"


def check_context(run: Run, name: Name, op: dict[str, Any], body: dict[str, Any]) -> None:
    """What the README says of every context."""
    messages = body["messages"]
    assert messages or not run.ledger.of(name).conversation(), "an empty context"
    if run.has_invariant("P1"):
        check_valid(messages)
        if run.ledger.of(name).foreign:
            return
        check_order(messages, [*run.ledger.of(name).conversation(), *op.get("messages", ())])
    if run.has_invariant("P2"):
        check_budget(run, op, body)


def conversation_of(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages without system messages and without memory."""
    return [one for one in messages if one["role"] not in LEADING and one.get("name") != MEMORY]


def check_valid(messages: Sequence[dict[str, Any]]) -> None:
    """P1 but for the order: providers take it."""
    conversation = conversation_of(messages)
    if conversation:
        assert conversation[0]["role"] == "user", "P1: the conversation does not begin with a user"
    waiting: list[str] = []
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, "P1: a result without its call"
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, "P1: calls without results before the next message"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        assert len(set(waiting)) == len(waiting), "P1: a call's id twice"
        if message["role"] == "assistant" and not waiting and not message.get("refusal"):
            assert not is_blank(message.get("content")), f"P1: message {at} is blank"
    if waiting:
        newest = max(at for at, one in enumerate(messages) if one["role"] == "user")
        calling = max(at for at, one in enumerate(messages) if one.get("tool_calls"))
        assert newest < calling, "P1: open calls outside the newest turn"


def is_blank(content: Any) -> bool:
    if isinstance(content, list):
        return not any(part.get("text", "x").strip() for part in content)
    return not (content or "").strip()


def check_order(messages: Sequence[dict[str, Any]], committed: Sequence[dict[str, Any]]) -> None:
    """The conversation's messages stand in the order in which they were committed."""
    rest = iter(committed)
    for message in conversation_of(messages):
        assert any(_same(message, one) for one in rest), (
            f"P1: not in the committed order: {str(message)[:200]}"
        )


def _same(shown: dict[str, Any], committed: dict[str, Any]) -> bool:
    if shown["role"] != committed["role"]:
        return False
    if ELIDED in str(shown):
        return shown.get("tool_call_id") == committed.get("tool_call_id")
    return _form(shown) == _form(committed)


def _form(message: dict[str, Any]) -> dict[str, Any]:
    """The members that chat completions take; empty ones do not count (docs/decisions.md)."""
    return {name: message[name] for name in COMPARED if message.get(name)}


def check_budget(run: Run, op: dict[str, Any], body: dict[str, Any]) -> None:
    """P2: the count is right, and within what was asked, or a flag says so."""
    total = body["tokens"]["total"]
    least, most = least_and_most(body["messages"])
    if "model" in op or "model" in run.config:
        least = most = total  # by another encoding
    else:
        assert least <= total <= most, f"P2: {total} tokens by the service, {least} to {most}"
    budget = budget_of(run.config, op)
    if budget is not None:
        assert max(total, least) <= budget, "P2: more than was asked for"
    policy = policy_of(run.config, op)
    if policy and policy["name"] in ("token_limit", "token_window") and "max_tokens" in policy:
        flags = body.get("policy", {}).get("flags", [])
        within = max(total, least) <= policy["max_tokens"]
        assert within or any(flag in flags for flag in OVER), "P2: over the limit without a flag"
