"""The policies that decide what a context holds, by name."""

from collections.abc import Mapping
from typing import Any

from turnfold.domain.errors import InvalidPolicyError, NotAvailableError

PROGRESSIVE = "progressive"
POLICIES = (
    PROGRESSIVE,
    "message_window",
    "token_window",
    "token_limit",
    "limit_count",
    "time_window",
    "relevancy",
    "summarization",
    "composite",
)


def check_policy(value: object) -> Mapping[str, Any]:
    """The policy, if it is an object with a name that is known and available.

    Raises `InvalidPolicyError`, or `NotAvailableError` for one that this version lacks.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        raise InvalidPolicyError('a policy is an object such as {"name": "progressive"}')
    if value["name"] not in POLICIES:
        raise InvalidPolicyError(f"unknown policy; the policies are {', '.join(POLICIES)}")
    if value["name"] != PROGRESSIVE:
        raise NotAvailableError(f"of the policies, only {PROGRESSIVE} is available yet")
    if len(value) > 1:
        raise InvalidPolicyError(f"the policy {PROGRESSIVE} has no options")
    return value
