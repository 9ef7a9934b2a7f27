"""The schemas of bodies and answers, as api.md states them (JSON Schema 2020-12)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from turnfold.domain.layouts import DEFAULT_LAYOUT, LAYOUTS
from turnfold.domain.limits import MAX_PIN_CHARACTERS, MAX_TURN_MESSAGES
from turnfold.domain.messages import ROLES
from turnfold.domain.pins import PinStatus, Trust
from turnfold.domain.policies.registry import policy_names
from turnfold.domain.settings import BOUNDS, CHOICES, MAX_MODEL_NAME, STRATEGIES, Settings

type Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TURN_NUMBER: Schema = {"type": "integer", "minimum": 1}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
MODEL: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_MODEL_NAME}
FORMAT: Schema = {"enum": list(LAYOUTS), "default": DEFAULT_LAYOUT}
USER_ID: Schema = {"type": "string", "minLength": 1, "maxLength": 256}
METADATA: Schema = {"type": "object", "description": "Any members; kept and returned as they are"}
SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def ref(name: str) -> Schema:
    """A reference to a schema of this document."""
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(schema: Schema) -> Schema:
    """The schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def listed(schema: Schema, **limits: int) -> Schema:
    """A list of that."""
    return {"type": "array", "items": schema, **limits}


def record(members: Schema, *optional: str, description: str = "") -> Schema:
    """An object of these members; all are required but the optional ones. More may come."""
    schema: Schema = {"type": "object", "properties": members}
    required = [name for name in members if name not in optional]
    if required:
        schema["required"] = required
    return schema | ({"description": description} if description else {})


def page(name: str) -> Schema:
    """A page of a list."""
    return record({"items": listed(ref(name)), "next_cursor": nullable(TEXT)})


def settings() -> Schema:
    """The settings, with their bounds and defaults as the domain has them."""
    defaults = Settings().to_json()
    members: Schema = {}
    for one in fields(Settings):
        name = one.name
        if name in BOUNDS:
            low, high = BOUNDS[name]
            members[name] = {"type": "integer", "minimum": low, "maximum": high}
        elif name in CHOICES:
            members[name] = {"enum": list(CHOICES[name])}
    members["policy"] = ref("Policy")
    members["auto_compression"] = dict(FLAG)
    members["strategies"] = listed({"enum": list(STRATEGIES)})
    members["model"] = nullable(MODEL)
    for name, member in members.items():
        if name != "policy":
            member["default"] = defaults[name]
    schema = record(members, *members, description="How a session is kept")
    return schema | {"additionalProperties": False}


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
MESSAGES = listed(ref("Message"), minItems=1, maxItems=MAX_TURN_MESSAGES)

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
_COSTS: Schema = {
    "calls": COUNT,
    "prompt_tokens": COUNT,
    "completion_tokens": COUNT,
    "cost": nullable({"type": "number", "minimum": 0}),
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

SCHEMAS: dict[str, Schema] = {
    "Problem": record(
        {
            "type": TEXT,
            "title": TEXT,
            "status": {"type": "integer"},
            "detail": {"type": "string", "description": "What to change"},
            "code": {"type": "string", "description": "A stable word"},
            "request_id": TEXT,
            "errors": listed(record({"loc": TEXT, "msg": TEXT})),
            "needed": COUNT,
            "budget": COUNT,
            "upstream_status": nullable({"type": "integer"}),
        },
        "errors",
        "needed",
        "budget",
        "upstream_status",
        description="Why a request was refused (RFC 9457)",
    ),
    "ToolCall": {"type": "object", "properties": {"id": TEXT}, "required": ["id"]},
    "Message": MESSAGE,
    "Policy": {
        "type": "object",
        "properties": {"name": {"enum": list(policy_names())}},
        "required": ["name"],
        "default": {"name": policy_names()[0]},
    },
    "Settings": settings(),
    "Watermark": record(
        {
            "committed_through": COUNT,
            "judged_through": COUNT,
            "compacted_through": COUNT,
            "pending_turns": COUNT,
            "degraded": FLAG,
        },
        description="How far commits and background work have come",
    ),
    "SessionInput": record(
        {
            "system": listed({"anyOf": [TEXT, ref("Message")]}),
            "user_id": USER_ID,
            "metadata": METADATA,
            "settings": ref("Settings"),
            "legal_hold": {"type": "boolean", "description": "Refuse to erase the session"},
        },
        "system",
        "user_id",
        "metadata",
        "settings",
        "legal_hold",
    ),
    "Erasure": record(
        {
            "erasure_id": TEXT,
            "status": {"enum": ["erasing", "erased"]},
            "requested_at": TIME,
            "finished_at": nullable(TIME),
            "removed": record(dict.fromkeys(("items", "objects", "versions", "vectors"), COUNT)),
            "sha256": SHA256,
        },
        description="A receipt; sha256 is that of its other members as canonical JSON",
    ),
    "Usage": record(
        {
            "session_id": TEXT,
            "steps": listed(
                record({"step": TEXT, "model": TEXT, **_COSTS}),
            ),
            "total": record(_COSTS),
        },
        description="cost is null where a model has no price",
    ),
    "Forked": record({"session_id": TEXT, "forked_from": TEXT, "at_turn": COUNT, "turns": COUNT}),
    "ExportLines": {
        "type": "string",
        "description": "JSON Lines: objects of the types session, pin, summary and turn",
    },
    "ExportLink": record(
        {"url": nullable(TEXT), "expires_at": nullable(TIME), "next_cursor": nullable(TEXT)}
    ),
    "ImportInput": {
        "description": "An export (JSON Lines), or messages of OpenAI, LangChain or mm-memory",
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "object"}},
            record({"messages": listed({"type": "object"})}),
        ],
    },
    "Imported": record(
        {
            "session_id": TEXT,
            "turns_imported": COUNT,
            "pins_imported": COUNT,
            "turns": COUNT,
            "complete": {"type": "boolean", "description": "If not, send the same again"},
            "errors": listed(record({"line": COUNT, "msg": TEXT})),
            "error_count": COUNT,
        }
    ),
    "Rebuilding": record(
        {"session_id": TEXT, "status": {"enum": ["rebuilding"]}, "watermark": ref("Watermark")},
        "watermark",
    ),
    "Verification": record(
        {
            "ok": {
                "type": ["boolean", "null"],
                "description": "null if time ran out: go on with the cursor",
            },
            "turns": COUNT,
            "first_bad_turn": nullable(TURN_NUMBER),
            "checked_through": COUNT,
            "next_cursor": nullable(TEXT),
        }
    ),
    "ListedSession": record(
        {
            "session_id": TEXT,
            "user_id": nullable(TEXT),
            "status": {"enum": ["live", "expired", "erasing"]},
            "turns": COUNT,
            "created_at": TIME,
            "updated_at": TIME,
            "expires_at": TIME,
        }
    ),
    "Session": {
        "allOf": [
            ref("ListedSession"),
            record(
                {
                    "metadata": METADATA,
                    "legal_hold": FLAG,
                    "system": listed(ref("Message")),
                    "settings": ref("Settings"),
                    "watermark": ref("Watermark"),
                    "tokens": {"type": "object", "additionalProperties": COUNT},
                }
            ),
        ]
    },
    "SessionPage": page("ListedSession"),
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
    "ChatInput": record(
        {
            "message": {"anyOf": [{"type": "string", "minLength": 1}, ref("Message")]},
            "messages": MESSAGES,
            "model": MODEL,
            "max_tokens": {"type": "integer", "minimum": 1, "maximum": 10_000_000},
            "max_context_tokens": {"type": "integer", "minimum": 1, "maximum": 10_000_000},
            "temperature": {"type": "number", "minimum": 0, "maximum": 2},
            "query": TEXT,
            "format": FORMAT,
        },
        "message",
        "messages",
        "model",
        "max_tokens",
        "max_context_tokens",
        "temperature",
        "query",
        "format",
        description="Either message or messages",
    ),
    "Chatted": record(
        {
            "reply": ref("Message"),
            "messages": listed(ref("Message")),
            "turn": nullable(TURN_NUMBER),
            "usage": {"type": "object"},
            "context_tokens": COUNT,
            "watermark": nullable(ref("Watermark")),
        }
    ),
    "CompletionInput": record(
        {
            "messages": listed({"type": "object"}, minItems=1),
            "model": TEXT,
            "session_id": {**TEXT, "description": "The session, as in X-Session-Id"},
            "max_context_tokens": {"type": "integer", "minimum": 1, "maximum": 10_000_000},
            "stream": {"type": ["boolean", "null"]},
        },
        "model",
        "session_id",
        "max_context_tokens",
        "stream",
        description="OpenAI's chat completions; every other member goes to the model as it is",
    ),
    "Completion": {"type": "object", "description": "As the provider answers"},
    "OpenAIError": record(
        {
            "error": record(
                {
                    "message": TEXT,
                    "type": TEXT,
                    "code": nullable(TEXT),
                    "param": nullable(TEXT),
                    "request_id": TEXT,
                    "upstream_status": nullable({"type": "integer"}),
                },
                "upstream_status",
            )
        },
        description="Why a request was refused, in the form of OpenAI",
    ),
    "Rung": record({"session_id": TEXT, "watermark": ref("Watermark")}),
    "Health": record({"status": TEXT, "version": TEXT}),
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
    "ForkInput": record({"session_id": TEXT, "at_turn": TURN_NUMBER}, "at_turn"),
    "Anything": {"type": "object"},
}
