"""What each route takes and answers. Its summary is the docstring of its function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from turnfold.domain.layouts import DEFAULT_LAYOUT, LAYOUTS
from turnfold.domain.limits import DEFAULT_PAGE, MAX_PAGE
from turnfold.domain.pins import PinStatus
from turnfold.domain.policies.registry import policy_names

type Parameter = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """One route. `body` and `answers` name schemas; `problems` are statuses of its own.

    `problem` names the schema of its refusals.
    """

    tag: str
    summary: str = ""
    query: tuple[Parameter, ...] = ()
    headers: tuple[str, ...] = ()
    body: str | None = None
    body_required: bool = True
    answers: dict[int, str | None] = field(default_factory=dict)
    problems: tuple[int, ...] = ()
    problem: str = "Problem"


def _query(name: str, schema: dict[str, Any], description: str = "") -> Parameter:
    parameter: Parameter = {"name": name, "in": "query", "schema": schema}
    return parameter | ({"description": description} if description else {})


MAX_TOKENS = _query("max_tokens", {"type": "integer", "minimum": 1, "maximum": 10_000_000})
MODEL = _query("model", {"type": "string", "minLength": 1, "maxLength": 200})
FORMAT = _query("format", {"enum": list(LAYOUTS), "default": DEFAULT_LAYOUT})
CURSOR = _query("cursor", {"type": "string"}, "next_cursor of the page before")
LIMIT = _query(
    "limit", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE}
)
PAGED = (LIMIT, CURSOR)
TURN_NUMBER = {"type": "integer", "minimum": 1, "maximum": 999_999_999_999}
SESSION = "/v1/sessions/{session_id}"


OPERATIONS: dict[str, Operation] = {
    "GET /v1/sessions": Operation(
        "Sessions",
        query=(_query("user_id", {"type": "string", "minLength": 1, "maxLength": 256}), *PAGED),
        answers={200: "SessionPage"},
        problems=(422,),
    ),
    f"PUT {SESSION}": Operation(
        "Sessions",
        headers=("If-Match",),
        body="SessionInput",
        body_required=False,
        answers={200: "Session", 201: "Session"},
        problems=(400, 409, 412),
    ),
    f"PATCH {SESSION}": Operation(
        "Sessions",
        headers=("If-Match",),
        body="SessionInput",
        body_required=False,
        answers={200: "Session"},
        problems=(400, 404, 409, 412),
    ),
    f"GET {SESSION}": Operation(
        "Sessions",
        headers=("If-None-Match",),
        answers={200: "Session", 304: None},
        problems=(404,),
    ),
    f"DELETE {SESSION}": Operation("Sessions", answers={202: "Erasure"}, problems=(404, 409)),
    "DELETE /v1/users/{user_id}": Operation(
        "Sessions", answers={202: "Erasure"}, problems=(404, 409, 422)
    ),
    "GET /v1/erasures/{erasure_id}": Operation(
        "Sessions", answers={200: "Erasure"}, problems=(404,)
    ),
    f"POST {SESSION}/turns": Operation(
        "Turns",
        query=(_query("include", {"enum": ["context"]}), MAX_TOKENS, MODEL, FORMAT),
        headers=("Idempotency-Key",),
        body="TurnInput",
        answers={201: "Committed"},
        problems=(400, 409, 413),
    ),
    f"GET {SESSION}/turns/{{turn}}": Operation("Turns", answers={200: "Turn"}, problems=(404,)),
    f"GET {SESSION}/transcript": Operation(
        "Turns",
        query=(
            _query("from", TURN_NUMBER, "The first turn"),
            _query("to", TURN_NUMBER, "The last turn, inclusive"),
            *PAGED,
        ),
        answers={200: "TurnPage"},
        problems=(404, 413),
    ),
    f"GET {SESSION}/transcript/verify": Operation(
        "Turns", query=(CURSOR,), answers={200: "Verification"}, problems=(404,)
    ),
    f"POST {SESSION}/open-turn/messages": Operation(
        "Turns",
        headers=("Idempotency-Key",),
        body="OpenMessages",
        answers={201: "Appended"},
        problems=(409, 413, 422),
    ),
    f"GET {SESSION}/open-turn": Operation("Turns", answers={200: "OpenTurn"}, problems=(404,)),
    f"POST {SESSION}/open-turn/commit": Operation(
        "Turns",
        headers=("Idempotency-Key",),
        body="OpenCommit",
        body_required=False,
        answers={201: "Committed"},
        problems=(404, 409, 413, 422),
    ),
    f"DELETE {SESSION}/open-turn": Operation("Turns", answers={204: None}, problems=(404, 409)),
    f"GET {SESSION}/context": Operation(
        "Context",
        query=(
            MAX_TOKENS,
            MODEL,
            _query("query", {"type": "string", "minLength": 1, "maxLength": 10_000}),
            _query("recall", {"type": "integer", "minimum": 0, "maximum": 100}),
            FORMAT,
            _query("policy", {"enum": list(policy_names())}),
            _query("include_open", {"type": "boolean"}, "With the open turn's messages"),
        ),
        headers=("If-None-Match",),
        answers={200: "Context", 304: None},
        problems=(404, 413),
    ),
    f"POST {SESSION}/context": Operation(
        "Context",
        headers=("If-None-Match",),
        body="ContextInput",
        body_required=False,
        answers={200: "Context", 304: None},
        problems=(400, 404, 413),
    ),
    f"GET {SESSION}/working-memory": Operation(
        "Context",
        headers=("If-None-Match",),
        answers={200: "WorkingMemory", 304: None},
        problems=(404, 413),
    ),
    f"GET {SESSION}/pins": Operation(
        "Pins",
        query=(_query("status", {"enum": [one.value for one in PinStatus]}), *PAGED),
        answers={200: "PinPage"},
        problems=(404,),
    ),
    f"POST {SESSION}/pins": Operation(
        "Pins",
        headers=("Idempotency-Key",),
        body="PinInput",
        answers={201: "Pin"},
        problems=(400, 404, 409),
    ),
    f"GET {SESSION}/pins/{{pin_id}}": Operation(
        "Pins", headers=("If-None-Match",), answers={200: "Pin", 304: None}, problems=(404,)
    ),
    f"PATCH {SESSION}/pins/{{pin_id}}": Operation(
        "Pins",
        headers=("If-Match",),
        body="PinEdit",
        answers={200: "Pin"},
        problems=(400, 404, 409, 412),
    ),
    f"DELETE {SESSION}/pins/{{pin_id}}": Operation(
        "Pins", answers={204: None}, problems=(404, 409)
    ),
    f"POST {SESSION}/chat": Operation(
        "Chat",
        headers=("Idempotency-Key",),
        body="ChatInput",
        answers={200: "Chatted"},
        problems=(400, 409, 413, 424),
    ),
    "POST /v1/chat/completions": Operation(
        "Chat",
        headers=("X-Session-Id", "Idempotency-Key"),
        body="CompletionInput",
        answers={200: "Completion"},
        problems=(400, 404, 409, 413, 415, 422, 424),
        problem="OpenAIError",
    ),
    "GET /v1/models": Operation(
        "Chat",
        answers={200: "Anything"},
        problems=(400, 404, 413, 415, 422, 424),
        problem="OpenAIError",
    ),
    "GET /healthz": Operation("Operations", answers={200: "Health"}),
    "GET /openapi.json": Operation("Operations", answers={200: "Anything"}),
    "GET /docs": Operation("Operations", answers={200: None}),
    f"POST {SESSION}/compact": Operation(
        "Operations", headers=("Idempotency-Key",), answers={202: "Rung"}, problems=(404,)
    ),
    f"GET {SESSION}/usage": Operation("Operations", answers={200: "Usage"}, problems=(404,)),
    f"POST {SESSION}/fork": Operation(
        "Operations",
        headers=("Idempotency-Key",),
        body="ForkInput",
        answers={201: "Forked"},
        problems=(400, 404, 409),
    ),
    f"GET {SESSION}/export": Operation(
        "Operations",
        query=(_query("cursor", {"type": "string"}, "next_cursor of an export that takes long"),),
        answers={200: "ExportLines", 303: "ExportLink"},
        problems=(404,),
    ),
    f"POST {SESSION}/import": Operation(
        "Operations",
        headers=("Idempotency-Key",),
        body="ImportInput",
        answers={201: "Imported", 202: "Imported"},
        problems=(400, 409),
    ),
    f"POST {SESSION}/rebuild": Operation(
        "Operations",
        headers=("Idempotency-Key",),
        answers={202: "Rebuilding"},
        problems=(404, 409),
    ),
    f"POST {SESSION}/search": Operation(
        "Recall", body="SearchInput", answers={200: "Found"}, problems=(404, 422, 424)
    ),
    "POST /v1/search": Operation(
        "Recall", body="TenantSearchInput", answers={200: "FoundInTenant"}, problems=(422, 424)
    ),
}
