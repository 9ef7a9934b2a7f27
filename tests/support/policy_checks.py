"""Conversations for the policies' tests, and what must hold of any result."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from turnfold.domain.messages import MEMORY_NAME
from turnfold.domain.policies.policy import PolicyInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnfold.domain.policies.policy import Policy, PolicyResult

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LEADING = ("system", "developer")


def system(text: str = "rules") -> dict[str, Any]:
    return {"role": "system", "content": text}


def user(text: str = "question") -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str = "answer") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def asks(*ids: str, text: str | None = None, arguments: str = "{}") -> dict[str, Any]:
    function = {"name": "lookup", "arguments": arguments}
    calls = [{"id": one, "type": "function", "function": function} for one in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result_of(call_id: str, text: str = "result") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


texts = st.text(alphabet="abc 漢字", min_size=1, max_size=30)


@st.composite
def turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    """One turn, sound or broken: results may be missing, and so may the answer."""
    messages: list[dict[str, Any]] = [user(draw(texts)) for _ in range(draw(st.integers(0, 2)))]
    for _ in range(draw(st.integers(0, 2))):
        ids = draw(st.lists(st.sampled_from(["c1", "c2", "c3"]), min_size=1, unique=True))
        answered = draw(st.lists(st.sampled_from([*ids, "c9"]), unique=True))
        answered = ids if draw(st.booleans()) else answered
        messages.append(asks(*ids, text=draw(st.none() | texts)))
        messages += [result_of(one, draw(texts)) for one in answered]
    if draw(st.booleans()):
        messages.append(assistant(draw(texts)))
    return messages


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A conversation with system messages before it, with times for some messages."""
    leading = [system(draw(texts)) for _ in range(draw(st.integers(0, 2)))]
    spoken = [one for turn in draw(st.lists(turns(), max_size=6)) for one in turn]
    ages = draw(st.lists(st.none() | st.integers(0, 120), min_size=len(spoken)))
    for message, age in zip(spoken, ages, strict=False):
        if age is not None:
            message["created_at"] = (NOW - timedelta(minutes=age)).isoformat()
    return leading + spoken


@st.composite
def inputs(draw: st.DrawFn) -> PolicyInput:
    """A conversation as a policy gets it."""
    return PolicyInput(
        draw(conversations()),
        now=NOW,
        query=draw(st.none() | texts),
        strict=draw(st.booleans()),
    )


def spoken(messages: Sequence[Any]) -> list[Any]:
    """The messages without system messages and memory."""
    return [
        one for one in messages if one["role"] not in LEADING and one.get("name") != MEMORY_NAME
    ]


def check_valid(messages: Sequence[Any], *, begins_with_user: bool) -> None:
    """P1 of the cases: no provider refuses this."""
    conversation = spoken(messages)
    waiting: list[str] = []
    for message in conversation:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if begins_with_user and message["role"] == "assistant" and not waiting:
            assert message["content"].strip()
    if begins_with_user and any(one["role"] == "user" for one in conversation):
        assert conversation[0]["role"] == "user"


def check_result(policy: Policy, given: PolicyInput) -> PolicyResult:
    """Everything that holds for every policy; its result."""
    before = copy.deepcopy(given)
    result = policy.apply(given)
    assert given == before, "the input was changed"
    check_valid(result.messages, begins_with_user=given.strict)
    origins = [one for one in result.origins if one is not None]
    assert origins == sorted(set(origins)), "the order was changed"
    for message, origin in zip(result.messages, result.origins, strict=True):
        assert origin is None or message is given.messages[origin]
    assert sorted([*origins, *result.dropped]) == list(range(len(given.messages)))
    kept = [given.messages[one] for one in origins]
    assert _rules(kept) == _rules(given.messages)
    check_again(policy, given, result)
    return result


def _rules(messages: Sequence[Any]) -> list[Any]:
    """The system messages; an earlier summary may be taken up in another."""
    return [one for one in messages if one["role"] in LEADING and one.get("name") != MEMORY_NAME]


def check_again(policy: Policy, given: PolicyInput, result: PolicyResult) -> None:
    """Applying a policy to its own result changes nothing."""
    protected = given.protected_from
    if protected is not None:
        protected = sum(one is None or one < protected for one in result.origins)
    times = given.times and [None if one is None else given.times[one] for one in result.origins]
    again = policy.apply(
        replace(given, messages=result.messages, times=times, protected_from=protected)
    )
    assert again.messages == result.messages
    assert not again.reduced


def newest_question(given: PolicyInput) -> Any:
    """The newest user message; None without one."""
    users = [one for one in given.messages if one["role"] == "user"]
    return users[-1] if users else None
