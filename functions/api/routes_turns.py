"""Turns: commit one, read one, page through the transcript."""

import logging
import re
from typing import Any

from api.context_parameters import ContextParameters
from api.cursors import list_name, read_cursor, write_cursor
from api.problems import RefusedError, problem_of
from api.replies import Reply, answered
from api.requests import MAX_TOKENS, Request, layout_name, metadata, model_name, user_id
from api.routes import read, write
from api.routes_context import context_of
from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.commit_turn import Committed, TurnToCommit
from turnfold.application.views import turn_view
from turnfold.bootstrap import Turnfold
from turnfold.domain.errors import InvalidCursorError, TurnfoldError, TurnNotFoundError
from turnfold.domain.sessions import SessionKey

TURNS = "/v1/sessions/{session_id}/turns"
TURN = "/v1/sessions/{session_id}/turns/{turn}"
TRANSCRIPT = "/v1/sessions/{session_id}/transcript"

MAX_TURN_NUMBER = 999_999_999_999
"""Twelve digits, as turn numbers are stored (design, section 5)."""

_TURN_NUMBER = re.compile(r"[1-9][0-9]{0,11}")

logger = logging.getLogger("turnfold")


def post_turn(request: Request, service: Turnfold) -> Reply:
    """Commit a turn; judge it at once if the session says so; add the context if asked for."""
    key, body, wanted = request.session_key, request.body, _included(request)
    turn = TurnToCommit(
        messages=body.get("messages") or (),
        user_id=user_id(body.get("user_id")),
        metadata=metadata(body.get("metadata")),
    )
    idempotent = request.idempotent(f"POST {TURNS}")
    committed = service.commit(key, turn, idempotent, judged_next=True)
    answer = judged(service, committed, idempotent)
    if wanted is None:
        return answered(request, answer)
    return answered(request, answer, **_context(request, service, key, wanted))


def judged(service: Turnfold, committed: Committed, idempotent: IdempotentRequest) -> Answer:
    """The answer to a commit with `judged_next`, after the turn was judged if that is to be now."""
    session = committed.session
    if session is None or not session.settings.judges_at_once:
        return committed.answer
    try:
        return service.judge_now(session.key, committed.answer, idempotent)
    finally:
        service.commit.ring(committed)


def get_turn(request: Request, service: Turnfold) -> Reply:
    """A turn word for word."""
    key, number = request.session_key, request.values["turn"]
    if not _TURN_NUMBER.fullmatch(number):
        raise TurnNotFoundError("turns are numbered 1, 2, 3 and so on")
    return Reply(
        body={"session_id": key.session_id, **turn_view(service.turns.one(key, int(number)))}
    )


def get_transcript(request: Request, service: Turnfold) -> Reply:
    """A page of the archived turns."""
    key = request.session_key
    first = request.query_number("from", 1, MAX_TURN_NUMBER) or 1
    last = request.query_number("to", 1, MAX_TURN_NUMBER)
    name = list_name("transcript", key.tenant, key.session_id)
    position = read_cursor(name, request.query("cursor"))
    if position is not None:
        if not _TURN_NUMBER.fullmatch(position):
            raise InvalidCursorError("send next_cursor as it was answered")
        first = int(position)
    page = service.turns.page(key, first, last, request.limit)
    items = [turn_view(turn) for turn in page.items]
    return Reply(body={"items": items, "next_cursor": write_cursor(name, page.next_position)})


def _included(request: Request) -> ContextParameters | None:
    """What context the answer of a commit is to include; checked before anything is committed."""
    include = request.query("include")
    if include is None:
        return None
    if include != "context":
        raise RefusedError(422, "invalid_parameter", "include may be context")
    return ContextParameters(
        max_tokens=request.query_number("max_tokens", 1, MAX_TOKENS),
        model=model_name(request.query("model")),
        layout=layout_name(request.query("format")),
    )


def _context(
    request: Request, service: Turnfold, key: SessionKey, wanted: ContextParameters
) -> dict[str, Any]:
    """The context after the commit, as members of its answer.

    The turn is committed, so a failure here must not look as if it were not: it stands beside.
    """
    try:
        memory = service.context.memory(key)
        return {"context": context_of(service, memory, wanted)}
    except TurnfoldError as error:
        logger.warning(
            "context not included",
            extra={"code": "CONTEXT_NOT_INCLUDED", "error": type(error).__name__},
        )
        problem = problem_of(error, request.request_id)
        return {"context": None, "context_problem": problem.document}


ROUTES = (
    write("POST", TURNS, post_turn),
    read("GET", TURN, get_turn),
    read("GET", TRANSCRIPT, get_transcript),
)
