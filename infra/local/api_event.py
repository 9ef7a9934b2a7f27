"""An HTTP request as the event that a REST API of API Gateway hands to a Lambda proxy.

What a REST API does with the path was checked against events captured on AWS: `path`, the proxy
path parameter and `requestContext.path` are the bytes that the client sent, still
percent-encoded, while query parameters are decoded once. So `a%2Fb` and `a%252Fb` and `a/b` reach
the handler as three different paths, and the handler decodes each path segment exactly once.
"""

from __future__ import annotations

import base64
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, quote

from infra.local.settings import ACCOUNT, LOOPBACK

STAGE = "local"
RESOURCE = "/{proxy+}"
API_ID = "local"
# Everything that may stand in a request target as it is; a raw byte beyond ASCII is encoded.
TARGET_CHARACTERS = "".join(chr(c) for c in range(0x21, 0x7F))


@dataclass(frozen=True)
class Request:
    """An HTTP request as it was received."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    client: str = LOOPBACK


def api_event(request: Request) -> dict[str, Any]:
    """Build the proxy event, payload version 1."""
    path, query = _split(request.target)
    multi_headers: dict[str, list[str]] = {}
    spelling: dict[str, str] = {}
    for name, value in request.headers:
        first = spelling.setdefault(name.lower(), name)
        multi_headers.setdefault(first, []).append(value)
    multi_query: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True, errors="replace"):
        multi_query.setdefault(name, []).append(value)
    body, is_base64 = _body(request.body)
    proxy = path.removeprefix("/")
    return {
        "resource": RESOURCE if proxy else "/",
        "path": path,
        "httpMethod": request.method,
        "headers": {name: values[-1] for name, values in multi_headers.items()} or None,
        "multiValueHeaders": multi_headers or None,
        "queryStringParameters": {k: v[-1] for k, v in multi_query.items()} or None,
        "multiValueQueryStringParameters": multi_query or None,
        "pathParameters": {"proxy": proxy} if proxy else None,
        "stageVariables": None,
        "requestContext": _context(request, path, multi_headers),
        "body": body,
        "isBase64Encoded": is_base64,
    }


def _split(target: str) -> tuple[str, str]:
    if target.startswith(("http://", "https://")):
        _, slash, rest = target.partition("://")[2].partition("/")
        target = slash + rest or "/"
    path, _, query = target.partition("?")
    path = quote(path, safe=TARGET_CHARACTERS, encoding="latin-1")
    return path or "/", query


def _body(body: bytes) -> tuple[str | None, bool]:
    if not body:
        return None, False
    try:
        return body.decode("utf-8"), False
    except UnicodeDecodeError:
        return base64.b64encode(body).decode("ascii"), True


def _context(request: Request, path: str, multi_headers: dict[str, list[str]]) -> dict[str, Any]:
    now = datetime.now(UTC)
    headers = {name.lower(): values[-1] for name, values in multi_headers.items()}
    host = headers.get("host", "localhost")
    return {
        "accountId": ACCOUNT,
        "apiId": API_ID,
        "authorizer": None,
        "domainName": host,
        "domainPrefix": host.split(".", maxsplit=1)[0],
        "extendedRequestId": uuid.uuid4().hex[:15] + "=",
        "httpMethod": request.method,
        "identity": {
            "accessKey": None,
            "accountId": None,
            "caller": None,
            "cognitoAuthenticationProvider": None,
            "cognitoAuthenticationType": None,
            "cognitoIdentityId": None,
            "cognitoIdentityPoolId": None,
            "principalOrgId": None,
            "sourceIp": request.client,
            "user": None,
            "userAgent": headers.get("user-agent"),
            "userArn": None,
        },
        "operationName": None,
        # As behind a custom domain name: without the stage in front.
        "path": path,
        "protocol": "HTTP/1.1",
        "requestId": str(uuid.uuid4()),
        "requestTime": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "requestTimeEpoch": int(now.timestamp() * 1000),
        "resourceId": "local",
        "resourcePath": RESOURCE,
        "stage": STAGE,
    }
