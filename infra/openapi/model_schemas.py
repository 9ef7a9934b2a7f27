"""Schemas of chat, and of OpenAI's chat completions."""

from __future__ import annotations

from infra.openapi.shapes import (
    COUNT,
    FORMAT,
    MESSAGES,
    MODEL,
    TEXT,
    TURN_NUMBER,
    Schema,
    listed,
    nullable,
    record,
    ref,
)

MODEL_SCHEMAS: dict[str, Schema] = {
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
}
