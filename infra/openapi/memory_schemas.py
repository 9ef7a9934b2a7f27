"""Schemas of what a session holds: messages, turns, contexts, pins; and of searches in it."""

from __future__ import annotations

from infra.openapi.shapes import (
    COUNT,
    FLAG,
    FORMAT,
    MESSAGES,
    METADATA,
    MODEL,
    SHA256,
    TEXT,
    TIME,
    TURN_NUMBER,
    USER_ID,
    Schema,
    listed,
    nullable,
    page,
    record,
    ref,
)
from turnfold.domain.limits import MAX_PIN_CHARACTERS
from turnfold.domain.messages import ROLES
from turnfold.domain.pins import PinStatus, Trust
from turnfold.domain.policies.registry import policy_names

MESSAGE: Schema = {
    "type": "object",
    "description": "An OpenAI chat message. Members that are not named here are kept.",
    "properties": {
        "role": {"enum": list(ROLES)},
        "content": {"type": ["string", "array", "null"], "items": {"type": "object"}},
        "name": TEXT,
        "tool_calls": listed(ref("ToolCall")),
        "tool_call_id": TEXT,
        "refusal": {"type": ["string", "null"]},
        "created_at": TEXT,
    },
    "required": ["role"],
}

_TURN = {
    "turn": TURN_NUMBER,
    "turn_id": TEXT,
    "committed_at": TIME,
    "messages": listed(ref("Message")),
    "sha256": SHA256,
    "prev_sha256": SHA256,
}
_PIN_EDIT = {
    "text": {"type": "string", "minLength": 1, "maxLength": MAX_PIN_CHARACTERS},
    "status": {"enum": [PinStatus.ACTIVE.value, PinStatus.INVALIDATED.value]},
    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    "sources": listed(record({"turn": TURN_NUMBER})),
    "replaces": {"type": "string", "description": "The id of an active pin, which is invalidated"},
}
_TOKENS = {
    "total": COUNT,
    "budget": nullable(COUNT),
    **dict.fromkeys(("system", "head", "pins", "window", "recall", "tail"), COUNT),
}
_WINDOW_ENTRY = {
    "kind": {"enum": ["raw", "round_summary", "history_summary"]},
    "from_turn": TURN_NUMBER,
    "to_turn": TURN_NUMBER,
    "level": COUNT,
    "text": TEXT,
    "tokens": COUNT,
    "degraded": FLAG,
}

_MODE: Schema = {"enum": ["keyword", "semantic", "hybrid"]}
_SEARCH: Schema = {
    "query": {"type": "string", "minLength": 1, "maxLength": 10_000},
    "k": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
    "mode": _MODE,
}

MEMORY_SCHEMAS: dict[str, Schema] = {
    "ToolCall": {"type": "object", "properties": {"id": TEXT}, "required": ["id"]},
    "Message": MESSAGE,
    "OpenMessages": record({"messages": listed(ref("Message"))}),
    "Appended": record({"session_id": TEXT, "messages": {"type": "integer"}, "updated_at": TIME}),
    "OpenTurn": record(
        {
            "session_id": TEXT,
            "messages": listed(ref("Message")),
            "updated_at": TIME,
            "expires_at": TIME,
        }
    ),
    "OpenCommit": record(
        {"messages": listed(ref("Message")), "user_id": TEXT, "metadata": {"type": "object"}},
        "messages",
        "user_id",
        "metadata",
    ),
    "TurnInput": record(
        {"messages": MESSAGES, "user_id": USER_ID, "metadata": METADATA}, "user_id", "metadata"
    ),
    "Committed": record(
        {
            "session_id": TEXT,
            "turn": TURN_NUMBER,
            "turn_id": TEXT,
            "committed_at": TIME,
            "tokens": COUNT,
            "watermark": ref("Watermark"),
            "pins": listed(ref("Pin")),
            "pins_pending": FLAG,
            "context": nullable(ref("Context")),
            "context_problem": ref("Problem"),
        },
        "pins",
        "pins_pending",
        "context",
        "context_problem",
    ),
    "Turn": record(_TURN),
    "TurnPage": page("Turn"),
    "ContextInput": record(
        {
            "max_tokens": {"type": "integer", "minimum": 1, "maximum": 10_000_000},
            "model": MODEL,
            "query": {"type": "string", "minLength": 1, "maxLength": 10_000},
            "recall": {"type": "integer", "minimum": 0, "maximum": 100},
            "include_open": {"type": "boolean"},
            "format": FORMAT,
            "policy": {"anyOf": [{"enum": list(policy_names())}, ref("Policy")]},
            "messages": listed(ref("Message")),
        },
        "max_tokens",
        "model",
        "query",
        "recall",
        "include_open",
        "format",
        "policy",
        "messages",
    ),
    "WindowEntry": record(_WINDOW_ENTRY),
    "Context": record(
        {
            "session_id": TEXT,
            "generation": COUNT,
            "messages": {
                **listed(ref("Message")),
                "description": "Can be sent to a chat completions endpoint as they are",
            },
            "regions": record(
                {
                    "system": listed(ref("Message")),
                    "head": listed(record({"turn": TURN_NUMBER})),
                    "pins": listed(record({"pin_id": TEXT, "text": TEXT})),
                    "window": listed(ref("WindowEntry")),
                    "recall": listed(record({"turn": TURN_NUMBER, "score": {"type": "number"}})),
                    "tail": listed(record({"turn": TURN_NUMBER})),
                }
            ),
            "tokens": record(_TOKENS),
            "dropped": listed(
                record({"from_turn": TURN_NUMBER, "to_turn": TURN_NUMBER, "reason": TEXT})
            ),
            "elided": listed({"type": "object"}),
            "cache": record({"stable_messages": COUNT, "prefix_sha256": SHA256}),
            "watermark": ref("Watermark"),
            "encoding": {**TEXT, "description": "What the tokens were counted with"},
        }
    ),
    "WorkingMemory": record(
        {
            "head": listed(ref("Turn")),
            "window": listed(ref("WindowEntry")),
            "tail": listed(ref("Turn")),
            "pins": listed(ref("Pin")),
            "watermark": ref("Watermark"),
            "generation": COUNT,
        }
    ),
    "Pin": record(
        {
            "pin_id": TEXT,
            "text": TEXT,
            "status": {"enum": [status.value for status in PinStatus]},
            "confidence": {"type": "number"},
            "trust": {"enum": [trust.value for trust in Trust]},
            "sources": listed(record({"turn": TURN_NUMBER})),
            "created_at": TIME,
            "updated_at": TIME,
            "replaces": nullable(TEXT),
            "folded_from": listed(TEXT),
        }
    ),
    "PinPage": page("Pin"),
    "PinInput": record(_PIN_EDIT, "status", "confidence", "sources", "replaces"),
    "PinEdit": record(_PIN_EDIT, *_PIN_EDIT),
    "SearchInput": record(_SEARCH, "k", "mode"),
    "TenantSearchInput": record(
        {**_SEARCH, "user_id": USER_ID, "cursor": TEXT}, "k", "mode", "user_id", "cursor"
    ),
    "FoundTurn": record(
        {
            "session_id": TEXT,
            "turn": TURN_NUMBER,
            "score": {"type": "number", "exclusiveMinimum": 0},
            "messages": listed(ref("Message")),
            "matched_by": listed(TEXT),
        }
    ),
    "Found": record({"items": listed(ref("FoundTurn")), "mode": _MODE}),
    "FoundInTenant": record(
        {
            "items": listed(ref("FoundTurn")),
            "mode": _MODE,
            "sessions_searched": COUNT,
            "sessions_unread": COUNT,
            "next_cursor": nullable(TEXT),
        }
    ),
}
