"""The compactor and the sweeper as Lambda calls them."""

from __future__ import annotations

import io
import json
import logging
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.queue_event import queue_event
from turnfold.adapters.json_logs import configure_logs
from turnfold.application.compact_session import Outcome
from turnfold.application.drain_batch import BACK_OFF_SECONDS, DrainBatch
from turnfold.domain.errors import StoreUnavailableError
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.api import Api, Session
    from support.aws import Services
    from turnfold.bootstrap import Turnfold


class Context:
    """The part of Lambda's context that the functions read."""

    def __init__(self, seconds: float = 100.0) -> None:
        self._seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self._seconds * 1000)


@pytest.fixture
def compactor(turnfold: Turnfold, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    from compactor import app

    monkeypatch.setattr(app, "service", lambda: turnfold)
    return app.handler


def received(services: Services) -> list[Any]:
    """All messages that wait in the queue."""
    messages: list[Any] = []
    while True:
        answer = services.sqs.receive_message(
            QueueUrl=services.queue_url,
            MaxNumberOfMessages=10,
            MessageSystemAttributeNames=["All"],
        )
        if not answer.get("Messages"):
            return messages
        messages += answer["Messages"]


def record(body: str, count: int = 1) -> dict[str, Any]:
    """A message as Lambda hands it over."""
    return {
        "messageId": uuid.uuid4().hex,
        "receiptHandle": f"receipt-{uuid.uuid4().hex}",
        "body": body,
        "attributes": {"ApproximateReceiveCount": str(count)},
        "eventSource": "aws:sqs",
    }


def bell(session_id: str, turn: int = 1) -> str:
    return json.dumps({"v": 1, "tenant": "local", "session": session_id, "turn": turn})


@pytest.mark.usefixtures("api")
def test_a_batch_is_compacted(
    session: Session, compactor: Callable[..., Any], moto_services: Services
) -> None:
    received(moto_services)
    session("PUT", "", {"settings": {"round_token_threshold": 1}}).ok(201)
    for number in range(1, 6):
        session.commit(number, "I am allergic to walnuts. " * 8)
    messages = received(moto_services)
    assert messages
    event = queue_event(messages, "arn:aws:sqs:us-east-1:0:doorbells.fifo")
    assert compactor(event, Context()) == {"batchItemFailures": []}
    state = session("GET").ok()
    assert state["watermark"]["pending_turns"] == 0
    assert state["watermark"]["judged_through"] >= 3
    assert state["watermark"]["compacted_through"] == 3
    kinds = [one["kind"] for one in session("GET", "/context").ok()["regions"]["window"]]
    assert kinds == ["round_summary", "round_summary"]


def test_failed_messages_come_back_later_and_others_do_not(
    turnfold: Turnfold, compactor: Callable[..., Any]
) -> None:
    postponed: list[tuple[str, int]] = []

    class Bell:
        def postpone(self, receipt: str, seconds: int) -> None:
            postponed.append((receipt, seconds))
            raise StoreUnavailableError("postpone: nobody answers")

    class Compact:
        def __call__(
            self, key: SessionKey, _ring: object, seconds_left: Callable[[], float]
        ) -> Outcome:
            assert seconds_left() == 100.0
            if key.session_id == "bad":
                raise StoreUnavailableError("load: nobody answers")
            if key.session_id == "worse":
                raise ValueError("a fault")
            return Outcome.DONE

    turnfold.__dict__["drain"] = DrainBatch(Compact())  # type: ignore[arg-type]  # a compactor that only notes
    turnfold.__dict__["doorbell"] = Bell()
    records = [
        record(bell("good")),
        record(bell("bad", 1), 2),
        record("not a doorbell"),
        record(bell("bad", 2), 1),
        record(bell("worse"), 9),
        record(bell("good", 2)),
    ]
    answer = compactor({"Records": records}, Context())
    failed = [records[at] for at in (1, 2, 3, 4)]
    assert answer == {"batchItemFailures": [{"itemIdentifier": one["messageId"]} for one in failed]}
    first, second, *_, last = BACK_OFF_SECONDS
    seconds = [second, first, first, last]
    assert postponed == [
        (one["receiptHandle"], wait) for one, wait in zip(failed, seconds, strict=True)
    ]


def test_a_fault_of_ours_returns_the_whole_batch_without_its_text(
    turnfold: Turnfold, compactor: Callable[..., Any]
) -> None:
    def drain(*_: object) -> None:
        raise ValueError("zqxmarker")

    turnfold.__dict__["drain"] = drain
    records = [record(bell("a")), record("zqxmarker")]
    logger = logging.getLogger("turnfold")
    before = (logger.handlers, logger.level, logger.propagate)
    log = io.StringIO()
    configure_logs("INFO", log)
    answer = compactor({"Records": records}, Context())
    logger.handlers, logger.level, logger.propagate = before
    assert [one["itemIdentifier"] for one in answer["batchItemFailures"]] == [
        one["messageId"] for one in records
    ]
    assert "BATCH_FAILED" in log.getvalue()
    assert "zqxmarker" not in log.getvalue()


def test_postponing_changes_the_visibility(turnfold: Turnfold, moto_services: Services) -> None:
    turnfold.doorbell.ring(SessionKey("local", uuid.uuid4().hex), uuid.uuid4().hex, 1)
    (message,) = received(moto_services)
    turnfold.doorbell.postpone(message["ReceiptHandle"], 0)
    assert [one["MessageId"] for one in received(moto_services)] == [message["MessageId"]]
    with pytest.raises(StoreUnavailableError.__mro__[1]):
        turnfold.doorbell.postpone("no such receipt", 1)


@pytest.fixture
def sweeper(turnfold: Turnfold, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    from sweeper import app

    monkeypatch.setattr(app, "service", lambda: turnfold)
    return app.handler


def test_the_sweeper_rings_for_sessions_that_are_due(
    api: Api,
    turnfold: Turnfold,
    sweeper: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from datetime import timedelta

    from turnfold.bootstrap.resources import utc_now

    session = api.session(uuid.uuid4().hex)
    session.commit()
    assert sweeper({}, Context()) == {"rung": 0, "failed": 0}
    later = utc_now() + timedelta(hours=1)
    turnfold.__dict__["sweep"] = replace(turnfold.sweep, clock=lambda: later)
    assert sweeper({}, Context(5.0)) == {"rung": 0, "failed": 0}, "no time is left"
    assert sweeper({}, Context())["rung"] >= 1
    monkeypatch.setattr(turnfold.table, "due_sessions", _raise)
    assert sweeper({}, Context()) == {"rung": 0, "failed": 1}


def _raise(*_: object) -> None:
    raise StoreUnavailableError("due: nobody answers")
