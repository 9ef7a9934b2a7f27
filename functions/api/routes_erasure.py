"""Erasing sessions and users, and the receipts."""

from api.deadlines import seconds_left
from api.replies import Reply
from api.requests import Request, user_id
from api.routes import read, write
from turnfold.bootstrap import Turnfold

SESSION = "/v1/sessions/{session_id}"
USER = "/v1/users/{user_id}"
ERASURE = "/v1/erasures/{erasure_id}"

MARK_SECONDS = 10.0
"""Time for the tombstones of a user's sessions; the archivist sets those that are left."""


def delete_session(request: Request, service: Turnfold) -> Reply:
    """Start to erase a session."""
    return Reply(202, service.delete.session(request.session_key).receipt())


def delete_user(request: Request, service: Turnfold) -> Reply:
    """Start to erase all sessions of a user."""
    user = user_id(request.values["user_id"]) or ""
    erasure = service.delete.user(request.caller.tenant, user, seconds_left(MARK_SECONDS))
    return Reply(202, erasure.receipt())


def get_erasure(request: Request, service: Turnfold) -> Reply:
    """The receipt of an erasure."""
    erasure = service.delete.receipt(request.caller.tenant, request.values["erasure_id"])
    return Reply(body=erasure.receipt())


ROUTES = (
    write("DELETE", SESSION, delete_session),
    write("DELETE", USER, delete_user),
    read("GET", ERASURE, get_erasure),
)
