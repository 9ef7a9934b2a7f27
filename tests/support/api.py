"""The API's handler, called in this process with the events that a REST API makes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from infra.local.api_event import Request, api_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

type Json = Any

KEYS = {
    "keys": [
        {"key": "local", "tenant": "local", "scopes": ["read", "write", "admin"]},
        {"key": "local-2", "tenant": "local-2", "scopes": ["read", "write", "admin"]},
        {"key": "reader", "tenant": "local", "scopes": ["read"]},
        {"key": "writer", "tenant": "local", "scopes": ["write"]},
    ]
}
OPENAI_ROUTES = {"/v1/chat/completions", "/v1/models"}
PROBLEM_MEMBERS = {"type", "title", "status", "detail", "code", "request_id"}


def question(text: str = "How far is it?") -> dict[str, Any]:
    return {"role": "user", "content": text}


def reply(text: str = "Two hours.") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def turn(number: int = 1, text: str = "") -> list[dict[str, Any]]:
    return [question(f"Question {number}? {text}"), reply(f"Answer {number}. {text}")]


@dataclass(frozen=True)
class Answer:
    """What a client sees."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Json:
        return json.loads(self.text)

    def ok(self, status: int = 200) -> Json:
        """The body of an answer with that status."""
        assert self.status == status, self.text[:500]
        assert self.headers["content-type"] == "application/json"
        assert self.headers["x-request-id"]
        return self.body

    def problem(self, status: int, code: str) -> Json:
        """The body of a refusal with that status and code."""
        assert (self.status, self.body.get("code")) == (status, code), self.text[:500]
        assert self.headers["content-type"] == "application/problem+json"
        body = self.body
        assert body.keys() >= PROBLEM_MEMBERS
        assert body["status"] == status
        assert body["type"] == f"/problems/{code}"
        assert body["request_id"] == self.headers["x-request-id"]
        assert body["detail"]
        return body

    def openai_error(self, status: int, code: str) -> Json:
        """The error of a refusal with that status and code, in OpenAI's shape."""
        assert self.status == status, self.text[:500]
        assert self.headers["content-type"] == "application/json"
        error = self.body["error"]
        assert error.keys() >= {"message", "type", "code", "param"}
        assert error["code"] == code, self.text[:500]
        assert error["message"]
        assert error["type"]
        return error

    def refusal(self, status: int, code: str, template: str) -> Json:
        """The refusal in the shape of the route."""
        openai = template in OPENAI_ROUTES
        return self.openai_error(status, code) if openai else self.problem(status, code)


@dataclass
class Api:
    """A client of the handler, with one key."""

    handler: Callable[[dict[str, Any], Any], dict[str, Any]]
    key: str | None = "local"
    changes: dict[str, Any] = field(default_factory=dict)

    def __call__(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        raw: bytes | None = None,
        **headers: str,
    ) -> Answer:
        """One request; names of headers are written with underscores."""
        sent = [(name.replace("_", "-"), value) for name, value in headers.items()]
        if self.key is not None and "authorization" not in headers:
            sent.append(("Authorization", f"Bearer {self.key}"))
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        event = api_event(Request(method, target, sent, content)) | self.changes
        result = self.handler(event, None)
        found = {name.lower(): values[-1] for name, values in result["multiValueHeaders"].items()}
        assert all("\n" not in value for value in found.values())
        return Answer(result["statusCode"], found, result["body"])

    def session(self, session_id: str) -> Session:
        return Session(self, session_id)


@dataclass(frozen=True)
class Session:
    """One session of a client."""

    api: Api
    id: str

    def __call__(self, method: str, path: str = "", body: object = None, **options: Json) -> Answer:
        return self.api(method, f"/v1/sessions/{quote(self.id, safe='')}{path}", body, **options)

    def commit(self, number: int = 1, text: str = "", **options: Json) -> Json:
        body = {"messages": turn(number, text)}
        return self("POST", "/turns", body, **options).ok(201)

    def pin(self, text: str = "Likes tea.") -> Json:
        return self("POST", "/pins", {"text": text}).ok(201)
