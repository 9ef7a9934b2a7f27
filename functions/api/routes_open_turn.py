"""Open turns: built over several requests, then committed."""

from typing import TYPE_CHECKING, Any

from api.replies import Reply, answered
from api.requests import Request, metadata, user_id
from api.routes import read, write
from api.routes_turns import judged
from turnfold.bootstrap import Turnfold
from turnfold.domain.transcript import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

OPEN_TURN = "/v1/sessions/{session_id}/open-turn"
MESSAGES = f"{OPEN_TURN}/messages"
COMMIT = f"{OPEN_TURN}/commit"


def get_open_turn(request: Request, service: Turnfold) -> Reply:
    """The messages of the open turn so far."""
    key = request.session_key
    found = service.open_turns.get(key)
    return Reply(
        body={
            "session_id": key.session_id,
            "messages": list(found.messages),
            "updated_at": format_time(found.updated_at),
            "expires_at": format_time(found.expires_at),
        }
    )


def post_messages(request: Request, service: Turnfold) -> Reply:
    """Add messages to the open turn, and begin one if there is none."""
    key = request.session_key
    answer = service.open_turns.append(
        key, request.body.get("messages"), request.idempotent(f"POST {MESSAGES}")
    )
    return answered(request, answer)


def post_commit(request: Request, service: Turnfold) -> Reply:
    """Commit the open turn, with some last messages if there are any."""
    key, body = request.session_key, request.optional_body
    last: Sequence[Any] = body.get("messages") or ()
    idempotent = request.idempotent(f"POST {COMMIT}", body)
    committed = service.open_turns.commit(
        key,
        last,
        idempotent,
        user_id=user_id(body.get("user_id")),
        metadata=metadata(body.get("metadata")),
        judged_next=True,
    )
    return answered(request, judged(service, committed, idempotent))


def delete_open_turn(request: Request, service: Turnfold) -> Reply:
    """Drop the open turn."""
    service.open_turns.drop(request.session_key)
    return Reply(204)


ROUTES = (
    read("GET", OPEN_TURN, get_open_turn),
    write("POST", MESSAGES, post_messages),
    write("POST", COMMIT, post_commit),
    write("DELETE", OPEN_TURN, delete_open_turn),
)
