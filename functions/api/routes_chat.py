"""Chat: one call that reads the context, asks the model and commits the turn."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.problems import RefusedError
from api.replies import Reply, answered
from api.requests import (
    MAX_QUERY_CHARACTERS,
    Request,
    layout_name,
    max_tokens,
    model_name,
    text,
)
from api.routes import write
from turnfold.bootstrap import Turnfold
from turnfold.domain.errors import InvalidMessagesError
from turnfold.domain.layouts import LAYOUTS

if TYPE_CHECKING:
    from turnfold.domain.messages import Message

CHAT = "/v1/sessions/{session_id}/chat"
MAX_TEMPERATURE = 2


def post_chat(request: Request, service: Turnfold) -> Reply:
    """The model's reply. If it could not be committed, a header says so."""
    from turnfold.application.chat import ChatRequest

    key, body = request.session_key, request.body
    asked = ChatRequest(
        messages=_messages(body),
        model=model_name(body.get("model")),
        max_tokens=max_tokens(body.get("max_tokens")),
        max_context_tokens=max_tokens(body.get("max_context_tokens"), "max_context_tokens"),
        temperature=_temperature(body.get("temperature")),
        query=text("query", body.get("query"), MAX_QUERY_CHARACTERS),
        layout=LAYOUTS[layout_name(body.get("format"))],
    )
    said = service.chat(key, asked, request.idempotent(f"POST {CHAT}"))
    reply = answered(request, said.answer)
    if said.committed:
        return reply
    return Reply(reply.status, reply.body, {**reply.headers, "X-Commit-Status": "failed"})


def _messages(body: Mapping[str, Any]) -> "Sequence[Message]":
    message, messages = body.get("message"), body.get("messages")
    if message is None:
        if not isinstance(messages, list):
            raise InvalidMessagesError([("messages", "must be a list of messages")])
        return messages
    if messages is not None:
        raise InvalidMessagesError([("message", "send either message or messages")])
    if isinstance(message, str):
        return [{"role": "user", "content": message}]
    return [message]


def _temperature(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        value = -1
    if not 0 <= value <= MAX_TEMPERATURE:
        detail = f"temperature must be a number from 0 to {MAX_TEMPERATURE}"
        raise RefusedError(422, "invalid_parameter", detail)
    return float(value)


ROUTES = (write("POST", CHAT, post_chat),)
