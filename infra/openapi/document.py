"""The OpenAPI document, made of the API's route table and of what is said about each route."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.app import ROUTES
from api.problems import JSON_PROBLEM, KINDS, TITLES
from infra.openapi.operations import OPERATIONS, Operation
from infra.openapi.schemas import SCHEMAS
from infra.openapi.shapes import ref
from turnfold.bootstrap import Turnfold

if TYPE_CHECKING:
    from api.routes import Route

FILE = Path(__file__).resolve().parents[2] / "functions" / "api" / "openapi.json"

PATH_VALUES = {
    "session_id": "1 to 256 characters without controls, percent-encoded",
    "user_id": "1 to 256 characters without controls, percent-encoded",
    "turn": "The turn's number, from 1",
    "pin_id": "The pin's id",
    "erasure_id": "The erasure's id",
}
HEADERS = {
    "Idempotency-Key": "1 to 255 printable ASCII characters; a repetition answers the same",
    "X-Session-Id": "The session whose memory is added, and which remembers the turn",
    "If-Match": "ETags of the states that may be changed",
    "If-None-Match": "ETags of the states that the client knows",
}
STATUS_TEXTS = {
    200: "Done",
    201: "Created",
    202: "Accepted",
    204: "Done, nothing to say",
    303: "Large: follow the link",
    304: "The client knows this state",
    400: "The body is not usable JSON",
    401: "No good API key",
    403: "The API key lacks the scope",
    404: "Unknown in this tenant",
    409: "Try again, or wait",
    412: "If-Match does not hold",
    413: "Too large",
    415: "The model takes no such request",
    422: "Understood, but wrong",
    424: "The model failed, or none is set up",
    429: "Too many requests; see Retry-After",
    503: "A store does not answer; see Retry-After",
}
ALWAYS = (401, 403, 429, 503)


def document() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in sorted(ROUTES, key=lambda one: list(OPERATIONS).index(one.name)):
        paths.setdefault(route.template, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Turnfold",
            "version": Turnfold({}).version,
            "description": "Conversation memory: commit finished turns, read back a context that"
            " fits a token budget.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"apiKey": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(one.tag for one in OPERATIONS.values())],
        "paths": paths,
        "components": {
            "securitySchemes": {"apiKey": {"type": "http", "scheme": "bearer"}},
            "schemas": SCHEMAS | {"Problem": _problem_schema()},
        },
    }


def written() -> str:
    """The document as its file holds it."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def _operation(route: Route) -> dict[str, Any]:
    about = OPERATIONS[route.name]
    summary = about.summary or (route.action.__doc__ or "").split("\n")[0]
    operation: dict[str, Any] = {
        "operationId": route.action.__name__,
        "tags": [about.tag],
        "summary": summary.rstrip("."),
        "responses": _responses(route, about),
    }
    parameters = [*_path_parameters(route), *about.query, *map(_header, about.headers)]
    if parameters:
        operation["parameters"] = parameters
    if about.body:
        operation["requestBody"] = {
            "required": about.body_required,
            "content": {"application/json": {"schema": ref(about.body)}},
        }
    if route.scope is None:
        operation["security"] = []
    return operation


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    found = []
    for name in re.findall(r"\{(\w+)\}", route.template):
        schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 256}
        found.append(
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": PATH_VALUES[name],
                "schema": schema,
            }
        )
    return found


def _header(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if name == "Idempotency-Key":
        schema |= {"pattern": "^[ -~]{1,255}$"}
    return {"name": name, "in": "header", "description": HEADERS[name], "schema": schema}


def _responses(route: Route, about: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, schema in about.answers.items():
        kind = "application/x-ndjson" if schema == "ExportLines" else "application/json"
        content: dict[str, Any] = {kind: {"schema": ref(schema)}} if schema else {}
        if schema == "Completion":
            content["text/event-stream"] = {}
        if route.template == "/docs":
            content = {"text/html": {"schema": {"type": "string"}}}
        responses[str(status)] = {"description": STATUS_TEXTS[status]} | (
            {"content": content} if content else {}
        )
    for status in sorted(_problems(route, about)):
        responses[str(status)] = {
            "description": STATUS_TEXTS[status],
            "content": {_problem_type(about): {"schema": ref(about.problem)}},
        }
    return responses


def _problem_type(about: Operation) -> str:
    return JSON_PROBLEM if about.problem == "Problem" else "application/json"


def _problems(route: Route, about: Operation) -> set[int]:
    if route.scope is None:
        return set()
    own = {422} if "{session_id}" in route.template else set()
    body = {400} if about.body else set()
    return {*ALWAYS, *own, *body, *about.problems}


def _problem_schema() -> dict[str, Any]:
    codes = sorted({kind.code for kind in KINDS.values()} | set(TITLES) | {"internal_error"})
    schema = SCHEMAS["Problem"]
    code = {"type": "string", "description": "A stable word", "examples": codes}
    return schema | {"properties": schema["properties"] | {"code": code}}
