"""Searches: in one session, and across a tenant's or a user's sessions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from api.cursors import list_name, read_cursor, write_cursor
from api.problems import RefusedError
from api.replies import Reply
from api.requests import MAX_QUERY_CHARACTERS, Request, number, text, user_id
from api.routes import read
from turnfold.bootstrap import Turnfold

if TYPE_CHECKING:
    from turnfold.application.recall import Mode

SEARCH = "/v1/sessions/{session_id}/search"
SEARCH_ALL = "/v1/search"


def search_session(request: Request, service: Turnfold) -> Reply:
    """The turns of a session that answer a query, best first."""
    query, hits, mode = _asked(request.body)
    return Reply(body=service.search(request.session_key, query, hits, mode))


def search_tenant(request: Request, service: Turnfold) -> Reply:
    """The same over all sessions, newest first; a cursor leads to older sessions."""
    query, hits, mode = _asked(request.body)
    tenant = request.caller.tenant
    user = user_id(request.body.get("user_id"))
    name = list_name("search", tenant, user)
    position = read_cursor(name, text("cursor", request.body.get("cursor"), MAX_QUERY_CHARACTERS))
    answer, following = service.search_tenant(tenant, user, query, hits, mode, position)
    return Reply(body={**answer, "next_cursor": write_cursor(name, following)})


def _asked(body: Mapping[str, Any]) -> "tuple[str, int, Mode | None]":
    """Query, number of hits and mode. Raises `RefusedError`."""
    from turnfold.application.recall import Mode
    from turnfold.application.search_session import DEFAULT_HITS, MAX_HITS

    query = text("query", body.get("query"), MAX_QUERY_CHARACTERS)
    if query is None:
        raise RefusedError(422, "invalid_parameter", "query is needed: what to search for")
    hits = number("k", body.get("k"), 1, MAX_HITS)
    mode = body.get("mode")
    if mode is not None and mode not in tuple(Mode):
        raise RefusedError(422, "invalid_parameter", f"mode may be {', '.join(Mode)}")
    return query, DEFAULT_HITS if hits is None else hits, None if mode is None else Mode(mode)


ROUTES = (
    read("POST", SEARCH, search_session),
    read("POST", SEARCH_ALL, search_tenant),
)
