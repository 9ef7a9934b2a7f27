"""What a client and a log see of failures: a status and a code, and nothing that a user wrote."""

from __future__ import annotations

import io
import json
import logging
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from api.problems import KINDS, problem_of
from support.api import Api, Json, Session, question, reply, turn
from turnfold.adapters.json_logs import configure_logs
from turnfold.domain import errors
from turnfold.domain.errors import StoreError, StoreUnavailableError, ThrottledError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turnfold.bootstrap import Turnfold

MARKER = "zqxmarker"
CALLS: list[tuple[str, str, Any]] = [
    ("GET", "/v1/sessions", None),
    ("PUT", "/v1/sessions/a", {}),
    ("PATCH", "/v1/sessions/a", {}),
    ("GET", "/v1/sessions/a", None),
    ("POST", "/v1/sessions/a/turns", {"messages": turn()}),
    ("GET", "/v1/sessions/a/turns/1", None),
    ("GET", "/v1/sessions/a/transcript", None),
    ("GET", "/v1/sessions/a/context", None),
    ("POST", "/v1/sessions/a/context", {}),
    ("GET", "/v1/sessions/a/working-memory", None),
    ("GET", "/v1/sessions/a/pins", None),
    ("POST", "/v1/sessions/a/pins", {"text": "a"}),
    ("GET", "/v1/sessions/a/pins/p", None),
    ("PATCH", "/v1/sessions/a/pins/p", {"text": "a"}),
    ("DELETE", "/v1/sessions/a/pins/p", None),
    ("POST", "/v1/sessions/a/compact", None),
]


class Down:
    """A store of which nothing works."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Callable[..., Json]:
        def act(*_args: Json, **_kwargs: Json) -> Json:
            raise self._error

        return act


@pytest.mark.parametrize("call", CALLS, ids=lambda one: f"{one[0]} {one[1]}")
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ThrottledError("read: Throttling"), 429, "throttled"),
        (StoreUnavailableError("read: ReadTimeoutError"), 503, "store_unavailable"),
        (StoreError("read: AccessDenied"), 503, "store_unavailable"),
    ],
    ids=["throttled", "no answer", "refused"],
)
def test_a_store_that_fails_is_said_so_on_every_route(
    api: Api,
    turnfold: Turnfold,
    call: tuple[str, str, Any],
    error: Exception,
    status: int,
    code: str,
) -> None:
    turnfold.__dict__["store"] = Down(error)
    answer = api(*call)
    answer.problem(status, code)
    assert answer.headers["retry-after"].isdigit()
    assert str(error) not in answer.text


@pytest.mark.parametrize("call", CALLS, ids=lambda one: f"{one[0]} {one[1]}")
def test_a_fault_of_ours_is_a_problem_too(
    api: Api, turnfold: Turnfold, call: tuple[str, str, Any]
) -> None:
    turnfold.__dict__["store"] = Down(ValueError(MARKER))
    answer = api(*call)
    answer.problem(500, "internal_error")
    assert MARKER not in answer.text
    assert "Traceback" not in answer.text


def test_an_archive_that_fails_commits_nothing(
    session: Session, turnfold: Turnfold, broken: Callable[..., Any]
) -> None:
    turnfold.__dict__["archive"] = broken(
        turnfold.archive, put_record=StoreUnavailableError("put: nobody answers")
    )
    session("POST", "/turns", {"messages": turn()}).problem(503, "store_unavailable")
    session("GET").problem(404, "session_not_found")


def test_every_error_that_can_reach_a_client_has_its_own_place() -> None:
    inside = {errors.GuardFailedError, errors.InvalidDoorbellError, errors.RejectedAnswerError}
    groups = {errors.TurnfoldError, errors.ModelError}
    kinds = {
        one
        for one in vars(errors).values()
        if isinstance(one, type) and issubclass(one, errors.TurnfoldError)
    }
    for kind in kinds - inside - groups:
        assert any(known in kind.__mro__ for known in KINDS), kind
    codes = [kind.code for kind in KINDS.values()]
    assert len(set(codes)) == len(codes)


def test_a_problem_of_an_unknown_error_keeps_its_text_to_itself() -> None:
    assert MARKER not in str(problem_of(ValueError(MARKER), "r").document)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What is logged meanwhile, as the functions write it."""
    logger = logging.getLogger("turnfold")
    before = (logger.handlers, logger.level, logger.propagate)
    stream = io.StringIO()
    configure_logs("DEBUG", stream)
    yield stream
    logger.handlers, logger.level, logger.propagate = before


def lines_of(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_every_request_is_one_line(session: Session, log: io.StringIO) -> None:
    answer = session("POST", "/turns", {"messages": turn()})
    session("GET", "/turns/7")
    first, second = lines_of(log)
    assert first["level"] == "INFO"
    assert first["code"] == "REQUEST"
    assert first["route"] == "POST /v1/sessions/{session_id}/turns"
    assert first["status"] == 201
    assert first["milliseconds"] >= 0
    assert first["request_id"] == answer.headers["x-request-id"]
    assert second["status"] == 404


def test_nothing_that_a_user_wrote_is_logged(
    api: Api, turnfold: Turnfold, log: io.StringIO, broken: Callable[..., Any]
) -> None:
    session = api.session(f"{MARKER} {uuid.uuid4().hex}")
    body = {"messages": turn(1, MARKER), "user_id": MARKER, "metadata": {MARKER: MARKER}}
    session("POST", f"/turns?include=context&x={MARKER}", body, idempotency_key=MARKER).ok(201)
    session("PATCH", "", {"system": [MARKER]}).ok()
    pin = session.pin(MARKER)
    session("GET", f"/context?query={MARKER}&model={MARKER}").ok()
    session("POST", "/turns", {"messages": [{"role": MARKER, "content": MARKER}, reply()]})
    session("POST", "/turns", {"messages": [question(MARKER)]})
    session("PATCH", "", {"settings": {MARKER: MARKER}})
    session("GET", f"/pins/{MARKER}")
    session("GET", f"/{MARKER}")
    session("GET", f"/pins?cursor={MARKER}")
    session("GET", authorization=f"Bearer {MARKER}")
    session("POST", "/turns", raw=f'{{"{MARKER}'.encode())
    session("POST", "/chat", {"message": MARKER})
    for failure in (ValueError(MARKER), KeyError(MARKER), RuntimeError(MARKER)):
        failure.__cause__ = ValueError(MARKER)
        turnfold.__dict__["pins"] = broken(turnfold.pins, get=failure)
        session("GET", f"/pins/{pin['pin_id']}").problem(500, "internal_error")
    lines = lines_of(log)
    failed = [line for line in lines if line["code"] == "INTERNAL_ERROR"]
    assert len(failed) == 3
    assert "ValueError" in failed[1]["exception"]
    assert "routes_pins.py" in failed[0]["exception"]
    assert len(lines) > 15
    assert MARKER not in log.getvalue()


def test_values_that_are_not_plain_are_logged_by_kind_only() -> None:
    stream = io.StringIO()
    logger = logging.getLogger("turnfold")
    before = (logger.handlers, logger.level, logger.propagate)
    configure_logs("nonsense", stream)
    logger.info("a\ud800b %s", "c", extra={"code": "X", "thing": {"a": object()}})
    logger.handlers, logger.level, logger.propagate = before
    (line,) = lines_of(stream)
    assert line["thing"] == {"a": "object"}
