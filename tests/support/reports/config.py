"""A case's `config`, in the seed's words, as settings and policy of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS = {
    "head_rounds": "head_size",
    "tail_rounds": "tail_size",
    "window_max_items": "window_max_size",
    "window_max_tokens": "window_token_threshold",
    "current_round_tokens": "round_token_threshold",
    "pin_max": "max_pin_count",
    "pin_tokens": "max_pin_tokens",
    "ttl_days": "expire_days",
    "pin_mode": "pin_mode",
    "schedule": "schedule",
    "auto_compression": "auto_compression",
    "memory_role": "memory_role",
    "model": "model",
    "strategies": "strategies",
}
AT_LEAST_ONE = ("head_rounds", "tail_rounds")
"""The contract knows no empty head and no empty tail (clarification 1), so 0 becomes 1."""

BY_POLICY = {
    "message_window": ("max_messages",),
    "token_window": ("max_tokens",),
    "token_limit": ("max_tokens", "token_ratio"),
    "limit_count": ("max_count", "keep_first_user_message", "priority_removal"),
    "time_window": ("window_minutes",),
    "relevancy": ("min_relevance_score", "max_messages"),
    "summarization": ("summarize_threshold", "threshold", "keep_recent"),
    "composite": ("policies",),
}


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a config names; `policy` with its options among them."""
    settings: dict[str, Any] = {}
    for word, name in SETTINGS.items():
        if word in config:
            value = config[word]
            settings[name] = max(1, value) if word in AT_LEAST_ONE else value
    policy = policy_of(config, {})
    if policy:
        settings["policy"] = policy
    return settings


def policy_of(config: Mapping[str, Any], op: Mapping[str, Any]) -> dict[str, Any] | None:
    """The policy of an operation: its own name and options over those of the config.

    `max_tokens` of an operation that names no policy is the caller's budget, not an option.
    """
    own = dict(op) if "policy" in op else {k: v for k, v in op.items() if k != "max_tokens"}
    given = {**config, **own}
    policy = given.get("policy")
    if policy is None:
        return None
    if isinstance(policy, dict):
        return policy_of(policy, {}) if "policy" in policy else policy
    if "window_s" in given:
        given["window_minutes"] = max(1, round(given["window_s"] / 60))
    if "policies" in given:
        given["policies"] = [_part(one) for one in given["policies"]]
    names = BY_POLICY.get(policy, ())
    return {"name": policy} | {name: given[name] for name in names if name in given}


def _part(spec: Any) -> Any:
    """A policy inside a composite one, in the notation's words or the contract's."""
    return policy_of(spec, {}) if isinstance(spec, dict) and "policy" in spec else spec


def budget_of(config: Mapping[str, Any], op: Mapping[str, Any]) -> int | None:
    """The budget that a context is asked for: what is left after the reserves; None without one."""
    budget = op.get("max_tokens")
    policy = policy_of(config, op)
    if budget is None or ("policy" in op and policy and "max_tokens" in policy):
        return None
    return int(budget - op.get("reserve_output_tokens", 0) - op.get("tools_tokens", 0))
