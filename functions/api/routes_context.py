"""Contexts for a model, and the working memory for people."""

from dataclasses import replace
from typing import Any

from api.context_parameters import ContextParameters, from_body, from_query
from api.replies import Reply, knows, with_etag
from api.requests import Request
from api.routes import read
from turnfold.bootstrap import Turnfold
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.message_rules import check_begun, check_question

CONTEXT = "/v1/sessions/{session_id}/context"
WORKING_MEMORY = "/v1/sessions/{session_id}/working-memory"


def get_context(request: Request, service: Turnfold) -> Reply:
    """A context by query parameters."""
    return _context(request, service, from_query(request))


def post_context(request: Request, service: Turnfold) -> Reply:
    """A context by a body, which may carry the messages about to be sent."""
    return _context(request, service, from_body(request))


def get_working_memory(request: Request, service: Turnfold) -> Reply:
    """All of working memory, with full texts."""
    memory, view = service.context.working_memory(request.session_key)
    return with_etag(request, memory.session.etag, Reply(body=view))


def _context(request: Request, service: Turnfold, asked: ContextParameters) -> Reply:
    asked = _with_open_turn(request, service, asked)
    memory = service.context.memory(request.session_key)
    etag = asked.etag(memory.session.etag)
    # Assembling and counting is what a client that knows the state does not need.
    body = None if knows(request, etag) else context_of(service, memory, asked)
    return with_etag(request, etag, Reply(body=body))


def context_of(
    service: Turnfold, memory: WorkingMemory, asked: ContextParameters
) -> dict[str, Any]:
    """The context of the contract, with the name of the encoding that its tokens are counted by."""
    encoding = service.counter.encoding(asked.model or memory.session.settings.model)
    return service.context.view(memory, asked.request) | {"encoding": encoding}


def _with_open_turn(
    request: Request, service: Turnfold, asked: ContextParameters
) -> ContextParameters:
    """The parameters with the open turn's messages before those about to be sent, if asked for."""
    found = service.open_turns.find(request.session_key) if asked.include_open else None
    if found:
        # An agent's turn under way may end with calls that wait for their answers.
        messages = check_begun((*found.messages, *asked.incoming))
        return replace(asked, incoming=messages, begun=len(found.messages))
    return replace(asked, incoming=check_question(asked.incoming) if asked.incoming else ())


ROUTES = (
    read("GET", CONTEXT, get_context),
    read("POST", CONTEXT, post_context),
    read("GET", WORKING_MEMORY, get_working_memory),
)
