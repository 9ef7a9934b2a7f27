"""Generated requests against every route: no crash, and answers as the OpenAPI document says.

TURNFOLD_FUZZ_EXAMPLES sets how many requests are made for each route.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from moto import mock_aws
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
    use_after_free,
)

from api import app
from infra.local.api_event import Request, api_event
from infra.openapi.document import document
from support.api import OPENAI_ROUTES, PROBLEM_MEMBERS, turn
from support.aws import Services, aws_environment, make_services
from support.fake_completions import FakeCompletions, calling, spoken
from turnfold.application.answer import IdempotentRequest
from turnfold.application.commit_turn import TurnToCommit
from turnfold.application.ports.callers import Caller
from turnfold.bootstrap import Turnfold
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

VOCABULARY = Path(__file__).resolve().parents[2] / "layers" / "vocab" / "vocabulary"
EXAMPLES = int(os.environ.get("TURNFOLD_FUZZ_EXAMPLES", "20"))
FIRST_REFUSAL = 400
WRONG_METHOD = 405
SESSION = "s1"
BODIES: dict[str, Any] = {
    "PUT /v1/sessions/{session_id}": {"metadata": {"a": 1}, "system": ["Be brief."]},
    "PATCH /v1/sessions/{session_id}": {"settings": {"tail_size": 3}},
    "POST /v1/sessions/{session_id}/turns": {"messages": turn(7), "metadata": {"a": 1}},
    "POST /v1/sessions/{session_id}/context": {"max_tokens": 500, "query": "tea"},
    "POST /v1/sessions/{session_id}/pins": {"text": "Likes tea."},
    "POST /v1/sessions/{session_id}/chat": {"message": "Hello?"},
    "POST /v1/chat/completions": {"messages": turn()[:1], "session_id": SESSION},
}


class AnyKey:
    """Takes every key, so that requests come through to the routes."""

    def identify(self, _key: str) -> Caller:
        return Caller("local", frozenset({"read", "write", "admin"}))


def on_emulated_services(services: Services) -> Turnfold:
    """The service with a model that talks and calls tools by turns, and one session."""
    made = Turnfold(
        {
            "TURNFOLD_TABLE": services.table,
            "TURNFOLD_BUCKET": services.bucket,
            "TURNFOLD_QUEUE_URL": services.queue_url,
            "TURNFOLD_ARCHIVE_QUEUE_URL": services.archive_queue_url,
            "TIKTOKEN_CACHE_DIR": str(VOCABULARY),
        }
    )
    made.__dict__.update(
        keys=AnyKey(),
        completions=FakeCompletions([spoken(), calling("c1")] * 10_000),
    )
    for number in range(1, 6):
        messages = turn(number)
        request = IdempotentRequest.of("POST turns", str(number), messages)
        made.commit(SessionKey("local", SESSION), TurnToCommit(messages), request)
    return made


def with_examples() -> dict[str, Any]:
    """The document, with bodies that get through to the use cases."""
    found = document()
    for name, body in BODIES.items():
        method, path = name.split()
        content = found["paths"][path][method.lower()]["requestBody"]["content"]
        content["application/json"]["example"] = body
    return found


def wsgi(
    environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """The handler behind WSGI."""
    headers = [
        (name.removeprefix("HTTP_").replace("_", "-"), value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    ]
    headers = [one for one in headers if one[0].lower() != "authorization"]
    length = int(environ.get("CONTENT_LENGTH") or 0)
    event = api_event(
        Request(
            environ["REQUEST_METHOD"],
            environ["REQUEST_URI"],
            [*headers, ("Authorization", "Bearer any")],
            environ["wsgi.input"].read(length),
        )
    )
    result: Any = app.handler(event, None)  # type: ignore[arg-type]  # the function reads no context
    sent = [
        (name, value) for name, values in result["multiValueHeaders"].items() for value in values
    ]
    start_response(f"{result['statusCode']} .", sent)
    return [result["body"].encode()]


schema = schemathesis.openapi.from_dict(with_examples())
schema.app = wsgi


@pytest.fixture(scope="module")
def service() -> Iterator[Turnfold]:
    with aws_environment(None), mock_aws():
        yield on_emulated_services(make_services(None))


@pytest.fixture(autouse=True)
def handler_on_it(service: Turnfold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "service", lambda: service)


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_documented(case: schemathesis.Case) -> None:
    asked_for = case.path_parameters.get("session_id", "")
    if len(asked_for) % 2:
        case.path_parameters["session_id"] = SESSION  # half of the requests meet a session
    response = case.call()
    assert response.status_code < 500, response.text
    refused = response.status_code >= FIRST_REFUSAL
    if refused and case.path in OPENAI_ROUTES and response.status_code != WRONG_METHOD:
        assert response.json()["error"].keys() >= {"message", "type", "code", "param"}
    elif refused:
        assert response.headers["content-type"] == ["application/problem+json"]
        assert response.json().keys() >= PROBLEM_MEMBERS
    case.validate_response(
        response,
        checks=[content_type_conformance, response_schema_conformance, status_code_conformance],
        excluded_checks=[not_a_server_error, unsupported_method, use_after_free],
    )
