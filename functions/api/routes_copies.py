"""Taking sessions out, bringing them in, branching them, and making their memory anew."""

import hashlib
from typing import Any

from api.cursors import list_name, read_cursor, write_cursor
from api.deadlines import seconds_left
from api.problems import RefusedError
from api.replies import Reply, answered
from api.requests import Request, number
from api.routes import read, write
from turnfold.application.answer import IdempotentRequest
from turnfold.application.due_work import pending_bound
from turnfold.application.views import watermark_view
from turnfold.bootstrap import Turnfold
from turnfold.domain.sessions import SessionKey, SessionStatus, check_id
from turnfold.domain.transcript import format_time

EXPORT = "/v1/sessions/{session_id}/export"
IMPORT = "/v1/sessions/{session_id}/import"
FORK = "/v1/sessions/{session_id}/fork"
REBUILD = "/v1/sessions/{session_id}/rebuild"
USAGE = "/v1/sessions/{session_id}/usage"

NDJSON = "application/x-ndjson"
MAX_TURN_NUMBER = 999_999_999_999

EXPORT_SECONDS = 20.0
"""After that the answer leads to where the export goes on; API Gateway gives up after 29 seconds,
and what is read until then has to be stored."""

FORK_SECONDS = 15.0
"""After that the client is asked to come again; a copy goes on where it was cut off."""

IMPORT_SECONDS = 20.0
"""After that the answer says how much went in, and the same request goes on."""


def get_export(request: Request, service: Turnfold) -> Reply:
    """Everything of a session as JSON Lines; where it is large, a link to it (303).

    Where that takes long, the 303 leads to the same route with a cursor, and goes on there: whoever
    follows it arrives at the link.
    """
    key = request.session_key
    name = list_name("export", key.tenant, key.session_id)
    position = read_cursor(name, request.query("cursor"))
    exported = service.export(key, position, seconds_left(EXPORT_SECONDS))
    if exported.text is not None:
        return Reply(text=exported.text, content_type=NDJSON)
    cursor = write_cursor(name, exported.position)
    expires_at = exported.expires_at
    body = {
        "url": exported.url,
        "expires_at": None if expires_at is None else format_time(expires_at),
        "next_cursor": cursor,
    }
    # Without a path: what stands before it, such as the name of a stage, only the client knows.
    return Reply(303, body, {"Location": exported.url or f"?cursor={cursor}"})


def post_import(request: Request, service: Turnfold) -> Reply:
    """Bring in an export, or messages that are cut into turns."""
    from turnfold.application.import_content import read_import

    text = request.text_body
    content = read_import(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    idempotent = IdempotentRequest.of(f"POST {IMPORT}", request.idempotency_key, digest)
    answer = service.import_session(
        request.session_key, content, idempotent, seconds_left(IMPORT_SECONDS)
    )
    return answered(request, answer)


def post_fork(request: Request, service: Turnfold) -> Reply:
    """Copy a session up to a turn."""
    source, body = request.session_key, request.body
    target_id = body.get("session_id")
    if not isinstance(target_id, str):
        raise RefusedError(422, "invalid_parameter", "session_id must name the copy")
    target = SessionKey(source.tenant, check_id(target_id, "the session id of the copy"))
    at_turn = number("at_turn", body.get("at_turn"), 1, MAX_TURN_NUMBER)
    route = f"POST {FORK} {source.session_id}"
    answer = service.fork(
        source, target, at_turn, request.idempotent(route), seconds_left(FORK_SECONDS)
    )
    return answered(request, answer)


def post_rebuild(request: Request, service: Turnfold) -> Reply:
    """Have working memory made anew from the transcript."""
    session = service.rebuild(request.session_key)
    body: dict[str, Any] = {"session_id": session.key.session_id, "status": "rebuilding"}
    if session.status is SessionStatus.LIVE:
        body["watermark"] = watermark_view(session, max(1, pending_bound(session)))
    return Reply(202, body, {"Idempotency-Key": request.idempotency_key})


def get_usage(request: Request, service: Turnfold) -> Reply:
    """Model calls, tokens and cost of a session, by step and model."""
    from turnfold.domain.usage import usage_view

    key = request.session_key
    service.sessions.require(key)
    entries = service.table.read_usage(key)
    return Reply(body={"session_id": key.session_id, **usage_view(entries, service.prices)})


ROUTES = (
    read("GET", EXPORT, get_export),
    write("POST", IMPORT, post_import),
    write("POST", FORK, post_fork),
    write("POST", REBUILD, post_rebuild),
    read("GET", USAGE, get_usage),
)
