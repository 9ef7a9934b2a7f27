"""The HTTP API: a proxy event of a REST API in, a use case, an answer out."""

import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.typing import LambdaContext

from api import (
    routes_chat,
    routes_completions,
    routes_context,
    routes_copies,
    routes_erasure,
    routes_open_turn,
    routes_operations,
    routes_pins,
    routes_search,
    routes_sessions,
    routes_transcript,
    routes_turns,
)
from api.callers import identify, require_scope
from api.paths import canonical_path, decoded
from api.problems import RefusedError
from api.replies import Reply
from api.requests import Request
from api.routes import Refuse, Route, refused
from turnfold.application.ports.callers import Caller
from turnfold.bootstrap import Turnfold
from turnfold.domain.errors import InvalidIdError, StoreError

ROUTES: tuple[Route, ...] = (
    *routes_turns.ROUTES,
    *routes_context.ROUTES,
    *routes_sessions.ROUTES,
    *routes_pins.ROUTES,
    *routes_search.ROUTES,
    *routes_chat.ROUTES,
    *routes_transcript.ROUTES,
    *routes_erasure.ROUTES,
    *routes_copies.ROUTES,
    *routes_operations.ROUTES,
    *routes_completions.ROUTES,
    *routes_open_turn.ROUTES,
)
NOBODY = Caller("", frozenset())
SERVER_ERROR = 500

logger = logging.getLogger("turnfold")
app = APIGatewayRestResolver()


@cache
def service() -> Turnfold:
    """The service, made at the first request."""
    made = Turnfold()
    made.configure_logs()
    return made


def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request."""
    head = event["httpMethod"] == "HEAD"
    method = "GET" if head else event["httpMethod"]
    routed = {**event, "httpMethod": method, "path": canonical_path(event["path"])}
    answer = app.resolve(routed, context)
    return {**answer, "body": ""} if head else answer


def _run(
    name: str, act: Callable[[str, Mapping[str, Any]], Reply], refuse: Refuse = refused
) -> Response[Any]:
    """Act, and answer what comes of it: the one place where errors become answers and logs."""
    started = time.perf_counter()
    event = app.current_event.raw_event
    request_id = (event.get("requestContext") or {}).get("requestId") or "unknown"
    try:
        reply = act(request_id, event)
        payload = reply.payload
    except Exception as error:  # noqa: BLE001 - whatever happens, the client gets an answer
        reply = refuse(error, request_id)
        payload = reply.payload
        _log_failure(error, reply.status, request_id)
    milliseconds = round((time.perf_counter() - started) * 1000, 1)
    logger.info(
        "request",
        extra={
            "code": "REQUEST",
            "route": name,
            "status": reply.status,
            "milliseconds": milliseconds,
            "request_id": request_id,
        },
    )
    return Response(
        status_code=reply.status,
        content_type=reply.content_type if payload or reply.pieces else None,
        # The host takes the pieces from here (infra/local/environment.py); Lambda never sees any.
        body=payload if reply.pieces is None else reply.pieces,
        headers={**reply.headers, "X-Request-Id": request_id},
    )


def _log_failure(error: Exception, status: int, request_id: str) -> None:
    if isinstance(error, StoreError):
        # Its text names operations and codes of AWS, nothing that a user wrote.
        extra = {"code": "STORE_FAILED", "reason": str(error), "request_id": request_id}
        logger.warning("store failed", extra=extra)
    elif status == SERVER_ERROR:
        extra = {"code": "INTERNAL_ERROR", "request_id": request_id}
        logger.error("internal error", extra=extra, exc_info=error)


def _endpoint(route: Route) -> Callable[..., Response[Any]]:
    """The function that Powertools calls for a route."""

    def act(request_id: str, event: Mapping[str, Any], values: Mapping[str, str]) -> Reply:
        caller, served = NOBODY, service()
        if route.scope:
            caller = identify(event, served.keys)
            require_scope(caller, route.scope)
            served = served.for_tenant(caller.tenant)
        streams = getattr(app.lambda_context, "streams_bodies", False) is True
        request = Request(event, request_id, caller, _decoded(values), host_streams=streams)
        return route.action(request, served)

    def endpoint(**values: str) -> Response[Any]:
        return _run(
            route.name, lambda request_id, event: act(request_id, event, values), route.refuse
        )

    return endpoint


def _decoded(values: Mapping[str, str]) -> dict[str, str]:
    found = {name: decoded(value) for name, value in values.items()}
    if None in found.values():
        raise InvalidIdError("ids in a path must be UTF-8, percent-encoded")
    return {name: value for name, value in found.items() if value is not None}


@app.not_found
def no_route(_error: NotFoundError) -> Response[Any]:
    """404, or 405 where the path has other methods; 401 first, so strangers learn nothing."""

    def act(_request_id: str, event: Mapping[str, Any]) -> Reply:
        identify(event, service().keys)
        allowed = _methods_of(event["path"])
        if not allowed:
            raise RefusedError(404, "not_found", "see /openapi.json for the routes there are")
        listed = ", ".join(allowed)
        raise RefusedError(405, "method_not_allowed", f"use {listed}", {"Allow": listed})

    return _run("none", act)


def _methods_of(path: str) -> list[str]:
    return sorted({route.method for route in ROUTES if route.matches(path)})


for one in ROUTES:
    app.route(one.rule, method=one.method)(_endpoint(one))

if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start":
    # This runs once for each release; every cold start begins with what is loaded by now.
    service().prepare()
