"""Sessions: make, change, read, list."""

from typing import Any

from api.cursors import list_name, read_cursor, write_cursor
from api.replies import Reply, if_match, with_etag
from api.requests import Request, metadata, user_id
from api.routes import read, write
from turnfold.application.sessions import SessionInput, session_input
from turnfold.application.views import listed_session_view, session_view
from turnfold.bootstrap import Turnfold
from turnfold.domain.memory import WorkingMemory

SESSIONS = "/v1/sessions"
SESSION = "/v1/sessions/{session_id}"


def put_session(request: Request, service: Turnfold) -> Reply:
    """Create a session, or replace what is said about it."""
    key, given = request.session_key, _given(request)
    memory, created = service.sessions.put(key, given, if_match(request))
    return Reply(201 if created else 200, _view(service, memory), _etag(memory))


def patch_session(request: Request, service: Turnfold) -> Reply:
    """Merge into what is said about a session."""
    key, given = request.session_key, _given(request)
    memory = service.sessions.patch(key, given, if_match(request))
    return Reply(200, _view(service, memory), _etag(memory))


def get_session(request: Request, service: Turnfold) -> Reply:
    """A session with its settings and watermark."""
    memory = service.sessions.get(request.session_key)
    return with_etag(request, memory.session.etag, Reply(body=_view(service, memory)))


def list_sessions(request: Request, service: Turnfold) -> Reply:
    """Sessions of the tenant, or of one of its users, newest first."""
    tenant, user = request.caller.tenant, user_id(request.query("user_id"))
    name = list_name("sessions", tenant, user)
    position = read_cursor(name, request.query("cursor"))
    page = service.sessions.list(tenant, user, request.limit, position)
    items = [listed_session_view(session) for session in page.items]
    return Reply(body={"items": items, "next_cursor": write_cursor(name, page.next_position)})


def _given(request: Request) -> SessionInput:
    body = request.optional_body
    return session_input(
        system=body.get("system"),
        user_id=user_id(body.get("user_id")),
        metadata=metadata(body.get("metadata")),
        settings=body.get("settings"),
        legal_hold=body.get("legal_hold"),
    )


def _view(service: Turnfold, memory: WorkingMemory) -> dict[str, Any]:
    return session_view(memory, service.context.measure(memory))


def _etag(memory: WorkingMemory) -> dict[str, str]:
    return {"ETag": f'"{memory.session.etag}"'}


ROUTES = (
    read("GET", SESSIONS, list_sessions),
    write("PUT", SESSION, put_session),
    write("PATCH", SESSION, patch_session),
    read("GET", SESSION, get_session),
)
