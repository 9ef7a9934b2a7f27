"""The schemas of bodies and answers, as api.md states them (JSON Schema 2020-12)."""

from __future__ import annotations

from infra.openapi.memory_schemas import MEMORY_SCHEMAS
from infra.openapi.model_schemas import MODEL_SCHEMAS
from infra.openapi.session_schemas import SESSION_SCHEMAS
from infra.openapi.shapes import (
    COUNT,
    TEXT,
    Schema,
    listed,
    nullable,
    record,
)

SCHEMAS: dict[str, Schema] = {
    **SESSION_SCHEMAS,
    **MEMORY_SCHEMAS,
    **MODEL_SCHEMAS,
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
    "Health": record({"status": TEXT, "version": TEXT}),
    "Anything": {"type": "object"},
}
