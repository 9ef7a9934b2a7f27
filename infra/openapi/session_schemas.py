"""Schemas of sessions: their settings, costs, copies and erasure."""

from __future__ import annotations

from dataclasses import fields

from infra.openapi.shapes import (
    COUNT,
    FLAG,
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
from turnfold.domain.policies.registry import policy_names
from turnfold.domain.settings import BOUNDS, CHOICES, STRATEGIES, Settings


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


_COSTS: Schema = {
    "calls": COUNT,
    "prompt_tokens": COUNT,
    "completion_tokens": COUNT,
    "cost": nullable({"type": "number", "minimum": 0}),
}
SESSION_SCHEMAS: dict[str, Schema] = {
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
    "Rung": record({"session_id": TEXT, "watermark": ref("Watermark")}),
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
    "Rebuilding": record(
        {"session_id": TEXT, "status": {"enum": ["rebuilding"]}, "watermark": ref("Watermark")},
        "watermark",
    ),
    "ForkInput": record({"session_id": TEXT, "at_turn": TURN_NUMBER}, "at_turn"),
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
}
