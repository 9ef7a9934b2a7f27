"""MiniStack whose IAM knows `dynamodb:LeadingKeys`: runs under MiniStack's own interpreter.

MiniStack 1.5.33 evaluates policies with conditions, session policies and the actions inside of
transactions, but does not tell its evaluator the partition keys of a call. This adds them, as AWS
describes them, and nothing else: what is allowed is still decided by MiniStack.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from typing import Any

HASH_KEYS = frozenset({"PK", "due_shard", "tenant_key", "user_key", "key_id"})
_EQUALS = re.compile(r"^\s*(#?\w+)\s*=\s*(:\w+)")


def leading_keys(body: bytes) -> list[str]:
    """The partition keys that a call names, of the table or of the index that it queries."""
    request = json.loads(body or b"{}")
    found = [key for part in _parts(request) for key in _of_item(part)]
    for tables in (request.get("RequestItems") or {}).values():
        for entry in tables.get("Keys", []) if isinstance(tables, dict) else tables:
            found += _of_item({"Key": entry} if "PK" in entry else next(iter(entry.values())))
    match = _EQUALS.match(request.get("KeyConditionExpression") or "")
    if match:
        name = (request.get("ExpressionAttributeNames") or {}).get(match[1], match[1])
        if name in HASH_KEYS:
            found.append(request["ExpressionAttributeValues"][match[2]]["S"])
    return found


def _parts(request: dict[str, Any]) -> list[dict[str, Any]]:
    inside = [part for one in request.get("TransactItems") or [] for part in one.values()]
    return [request, *inside]


def _of_item(part: dict[str, Any]) -> list[str]:
    attributes = part.get("Key") or part.get("Item") or {}
    return [value["S"] for name, value in attributes.items() if name in HASH_KEYS and "S" in value][
        :1
    ]


def main() -> int:
    """Serve, until the process is ended."""
    actions = importlib.import_module("ministack.core.iam_actions")
    known = actions.dynamodb_service_context

    def context(body: bytes) -> dict[str, Any]:
        keys = leading_keys(body)
        return known(body) | ({"dynamodb:LeadingKeys": keys} if keys else {})

    actions.dynamodb_service_context = context  # type: ignore[attr-defined]  # the emulator is taught a condition
    importlib.import_module("ministack.app").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
