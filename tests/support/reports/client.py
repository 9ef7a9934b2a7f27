"""Requests to the API's handler, each of them kept for the checks."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from support.api import Answer, Api

if TYPE_CHECKING:
    from support.reports.ledger import Name
    from support.reports.stack import Stack

_LONE_ESCAPE = re.compile(
    r"(?<!\\)(?:\\\\)*(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)


@dataclass
class Call:
    """A request with its answer."""

    tenant: str
    method: str
    target: str
    body: Any
    answer: Answer
    seconds: float
    """Of computing in this thread: others' work on the same machine does not count."""


@dataclass
class Client:
    """Sends requests with the key of a tenant."""

    stack: Stack
    calls: list[Call] = field(default_factory=list)

    def __call__(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        tenant: str = "local",
        raw: bytes | None = None,
        **headers: str,
    ) -> Answer:
        from api import app

        api = Api(app.handler, key=f"key-{tenant}")
        started = time.thread_time()
        answer = api(method, target, body, raw=raw, **headers)
        seconds = time.thread_time() - started
        self.calls.append(Call(tenant, method, target, body, answer, seconds))
        check_answer(answer)
        return answer

    def session(
        self, name: Name, method: str, path: str = "", body: object = None, **options: Any
    ) -> Answer:
        """A request about a session."""
        target = f"/v1/sessions/{quote(name[1], safe='')}{path}"
        return self(method, target, body, tenant=name[0], **options)

    def pages(self, name: Name, what: str, limit: int | None = None) -> list[dict[str, Any]]:
        """All items of a list of a session; a page may be empty and still have a cursor."""
        items: list[dict[str, Any]] = []
        cursor, size = "", f"limit={limit}" if limit else ""
        while True:
            page = self.session(name, "GET", f"/{what}?{size}{cursor}").ok()
            items += page["items"]
            if page["next_cursor"] is None:
                return items
            cursor = f"&cursor={quote(page['next_cursor'], safe='')}"


def check_answer(answer: Answer) -> None:
    """What holds for every answer."""
    assert answer.status not in (500, 502), answer.text[:300]
    answer.text.encode("utf-8")
    assert not _LONE_ESCAPE.search(answer.text), "half of a surrogate pair in an answer"
    if answer.status >= 400:
        problem = json.loads(answer.text)
        assert problem["status"] == answer.status
        assert problem["code"]
        assert problem["detail"]
