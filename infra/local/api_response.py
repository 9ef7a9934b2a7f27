"""What a proxy handler returned, as an HTTP response; or the gateway's own answer."""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from infra.local.environments import Pieces

# Written by the server, never by a handler.
HOP_BY_HOP = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding", "date"})
LOWEST_STATUS, HIGHEST_STATUS = 200, 599
WITHOUT_BODY = frozenset({204, 304})


class MalformedResponseError(Exception):
    """A handler returned what API Gateway would refuse; clients get a 502."""


@dataclass(frozen=True)
class Response:
    """An HTTP response; with `pieces`, its body comes in these."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    pieces: Pieces | None = None


def api_response(result: Any) -> Response:
    """Read the result of a proxy handler."""
    if not isinstance(result, dict):
        raise MalformedResponseError("the handler did not return an object")
    try:
        status = int(result["statusCode"])
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedResponseError("statusCode is missing or not a number") from error
    if not LOWEST_STATUS <= status <= HIGHEST_STATUS:
        raise MalformedResponseError(f"statusCode {status} is out of range")
    pieces = result.get("body")
    if isinstance(pieces, Pieces):
        try:
            return Response(status, _headers(result), pieces=pieces)
        except MalformedResponseError:
            pieces.close()
            raise
    headers, body = _headers(result), _body(result)
    if body and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", "application/json"))  # as API Gateway does
    return Response(status, headers, body)


def problem(status: int, code: str, title: str, detail: str) -> Response:
    """An error that API Gateway itself answers, in the form of the contract."""
    request_id = str(uuid.uuid4())
    document = {
        "type": f"/problems/{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id,
    }
    headers = [("Content-Type", "application/problem+json"), ("X-Request-Id", request_id)]
    return Response(status, headers, json.dumps(document).encode("utf-8"))


def _headers(result: dict[str, Any]) -> list[tuple[str, str]]:
    single = result.get("headers") or {}
    multiple = result.get("multiValueHeaders") or {}
    named = {name.lower() for name in multiple}
    pairs = [(name, value) for name, values in multiple.items() for value in values]
    pairs += [(name, value) for name, value in single.items() if name.lower() not in named]
    headers = []
    for name, value in pairs:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if any(c in "\r\n\0" for c in name + text):
            raise MalformedResponseError(f"the header {name!r} holds a line break")
        if name.lower() not in HOP_BY_HOP:
            headers.append((name, text))
    return headers


def _body(result: dict[str, Any]) -> bytes:
    body = result.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise MalformedResponseError("the body is not text")
    if not result.get("isBase64Encoded"):
        return body.encode("utf-8", "replace")
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise MalformedResponseError("the body is not base64") from error
