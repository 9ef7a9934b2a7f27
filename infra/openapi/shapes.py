"""The shapes that schemas are made of: values, lists, objects, references."""

from __future__ import annotations

from typing import Any

from turnfold.domain.layouts import DEFAULT_LAYOUT, LAYOUTS
from turnfold.domain.limits import MAX_TURN_MESSAGES
from turnfold.domain.settings import MAX_MODEL_NAME

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


MESSAGES = listed(ref("Message"), minItems=1, maxItems=MAX_TURN_MESSAGES)
