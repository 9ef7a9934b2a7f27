"""Answers: JSON with its headers, and 304 where the client knows the state already."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from api.requests import Request
from turnfold.application.answer import Answer
from turnfold.domain.errors import ContextTooLargeError

JSON = "application/json"

MAX_PAYLOAD_BYTES = 6_200_000
"""A Lambda answer may have 6 MiB, in which the body is a JSON text: quotes and backslashes of the
body count twice."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a route answers. A `text` is sent as it is, a `body` as JSON.

    `pieces` are sent one by one as they come, by a host that can do so (`Request.host_streams`).
    """

    status: int = 200
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    content_type: str = JSON
    pieces: Iterator[str] | None = None

    @property
    def payload(self) -> str:
        """The body as it goes out. Raises `ContextTooLargeError` if no answer can carry it."""
        if self.body is None:
            return self.text or ""
        written = json.dumps(self.body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        # Most answers are far too small to need an exact look: a character has 4 bytes at most.
        if len(written) * 4 > MAX_PAYLOAD_BYTES:
            size = len(json.dumps(written, ensure_ascii=False).encode())
            if size > MAX_PAYLOAD_BYTES:
                raise ContextTooLargeError(
                    f"the answer has {size} bytes, it may have {MAX_PAYLOAD_BYTES};"
                    " ask for less, with max_tokens or limit"
                )
        return written


def with_etag(request: Request, etag: str, reply: Reply) -> Reply:
    """The reply under its ETag; 304 without a body if the client has that state."""
    headers = {**reply.headers, "ETag": f'"{etag}"'}
    if knows(request, etag):
        return Reply(304, None, headers)
    return Reply(reply.status, reply.body, headers)


def knows(request: Request, etag: str) -> bool:
    """Whether If-None-Match names the state. Weak comparison, as RFC 9110 asks for."""
    wanted = request.header("if-none-match")
    if wanted is None:
        return False
    tags = [one.strip().removeprefix("W/") for one in wanted.split(",")]
    return "*" in tags or f'"{etag}"' in tags


def if_match(request: Request) -> frozenset[str] | None:
    """The states that If-Match names, None without it. Weak tags never match."""
    wanted = request.header("if-match")
    if wanted is None:
        return None
    tags = (one.strip() for one in wanted.split(","))
    return frozenset(tag if tag == "*" else tag.strip('"') for tag in tags if tag[:2] != "W/")


def answered(request: Request, answer: Answer, **members: object) -> Reply:
    """The answer of a use case that can be repeated, with its key."""
    headers = {"Idempotency-Key": request.idempotency_key}
    if answer.replayed:
        headers["Idempotency-Replayed"] = "true"
    return Reply(answer.status, {**answer.body, **members}, headers)
