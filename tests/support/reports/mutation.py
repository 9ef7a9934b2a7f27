"""That policies, counter and assembler leave their input alone, and answer twice the same."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from support.reports.config import BY_POLICY, policy_of
from turnfold.domain.policies.policy import PolicyInput
from turnfold.domain.policies.registry import parse_policy
from turnfold.domain.tokens import count_messages

if TYPE_CHECKING:
    from collections.abc import Mapping

OPTIONS: dict[str, dict[str, Any]] = {
    "message_window": {"max_messages": 3},
    "token_window": {"max_tokens": 50},
    "token_limit": {"max_tokens": 50},
    "limit_count": {"max_count": 3},
    "summarization": {"threshold": 3, "keep_recent": 2},
    "composite": {"policies": [{"name": "limit_count", "max_count": 3}, "token_limit"]},
}


def six_messages() -> list[dict[str, Any]]:
    """With nested lists and objects."""
    function = {"name": "f", "arguments": '{"a": [1, {"b": 2}]}'}
    call = {"id": "c1", "type": "function", "function": function}
    return [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": [{"type": "text", "text": "look " * 10}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "result " * 30},
        {"role": "assistant", "content": "done", "extra": {"deep": [{"er": 1}]}},
        {"role": "user", "content": "and now?"},
    ]


def check_mutations(config: Mapping[str, Any]) -> None:
    """Every policy, and the one of the config."""
    specs = [{"name": name, **OPTIONS.get(name, {})} for name in BY_POLICY]
    asked = policy_of(config, {})
    for spec in [*specs, *([asked] if asked else [])]:
        policy, messages = parse_policy(spec), six_messages()
        given = PolicyInput(messages, now=datetime(2026, 1, 1, tzinfo=UTC), strict=True)
        before = copy.deepcopy(messages)
        first = policy.apply(given)
        assert messages == before, f"{spec['name']} changed its input"
        assert policy.apply(given) == first, f"{spec['name']} gave another answer"
        assert messages == before
    messages = six_messages()
    total = count_messages(messages, len)
    assert count_messages(messages, len) == total
    assert messages == six_messages()
