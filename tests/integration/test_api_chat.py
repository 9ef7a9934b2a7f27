"""Chat over the handler, with a fake model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.api import Api, Session, question, reply, turn
from support.fake_openai import FakeOpenAI, Rule
from support.invariants import check_alternates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turnfold.bootstrap import Turnfold

from turnfold.domain.errors import StoreUnavailableError

BAD_CHATS: list[tuple[dict[str, Any], str]] = [
    ({}, "invalid_messages"),
    ({"messages": []}, "invalid_messages"),
    ({"messages": "hello"}, "invalid_messages"),
    ({"messages": [reply()]}, "invalid_messages"),
    ({"message": 7}, "invalid_messages"),
    ({"message": ""}, "invalid_messages"),
    ({"message": "a", "messages": [question()]}, "invalid_messages"),
    ({"message": "a", "temperature": 3}, "invalid_parameter"),
    ({"message": "a", "temperature": "hot"}, "invalid_parameter"),
    ({"message": "a", "temperature": True}, "invalid_parameter"),
    ({"message": "a", "max_tokens": 0}, "invalid_parameter"),
    ({"message": "a", "max_context_tokens": "x"}, "invalid_parameter"),
    ({"message": "a", "model": []}, "invalid_parameter"),
    ({"message": "a", "format": "xml"}, "invalid_parameter"),
    ({"message": "a", "max_context_tokens": 1}, "budget_too_small"),
]


@pytest.fixture
def fake() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def model(
    fake: FakeOpenAI,
    api: Api,
    make_turnfold: Callable[..., Turnfold],
    monkeypatch: pytest.MonkeyPatch,
) -> Turnfold:
    """A service with a model, behind the client."""
    from api import app

    made = make_turnfold(OPENAI_API_KEY="any", OPENAI_BASE_URL=fake.url)
    monkeypatch.setattr(app, "service", lambda: made)
    return made


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("body", [{"message": "Hello?"}, {"messages": [question("Hello?")]}])
def test_a_chat_answers_and_commits(session: Session, body: dict[str, Any]) -> None:
    answer = session("POST", "/chat", body, idempotency_key="k")
    said = answer.ok()
    members = {"reply", "messages", "turn", "usage", "context_tokens", "watermark"}
    assert said.keys() >= members
    assert (said["turn"], said["messages"][0]) == (1, question("Hello?"))
    assert session("GET", "/turns/1").ok()["messages"] == said["messages"]
    again = session("POST", "/chat", body, idempotency_key="k")
    assert again.ok() == said
    assert again.headers["idempotency-replayed"] == "true"
    assert session("GET").ok()["turns"] == 1
    other = session("POST", "/chat", {"message": "Other"}, idempotency_key="k")
    other.problem(422, "idempotency_mismatch")


@pytest.mark.usefixtures("model")
def test_a_chat_is_sent_alternating_if_asked_for(session: Session, fake: FakeOpenAI) -> None:
    asked = [question("And"), question("back?")]
    for _ in range(2):
        session("POST", "/chat", {"messages": asked, "format": "alternating"}).ok()
        session.pin()
    first, second = (one.body["messages"] for one in fake.requests())
    assert first == [question("And\n\nback?")]
    check_alternates(second)
    assert second[-1] == first[-1]
    assert session("GET", "/turns/2").ok()["messages"][:2] == asked


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(("body", "code"), BAD_CHATS, ids=str)
def test_wrong_chats_are_refused(session: Session, body: dict[str, Any], code: str) -> None:
    session.commit()
    session("POST", "/chat", body).problem(422, code)
    assert session("GET").ok()["turns"] == 1


@pytest.mark.usefixtures("model")
def test_a_failed_model_commits_nothing(session: Session, fake: FakeOpenAI) -> None:
    fake.script(Rule(status=400))
    problem = session("POST", "/chat", {"message": "Hello?"}).problem(424, "model_failed")
    assert problem["upstream_status"] == 400
    fake.script(Rule(message={"role": "assistant", "content": ""}))
    session("POST", "/chat", {"message": "Hello?"}).problem(424, "model_failed")
    session("GET").problem(404, "session_not_found")


def test_without_a_model_there_is_no_chat(session: Session) -> None:
    session("POST", "/chat", {"message": "Hello?"}).problem(424, "model_not_configured")
    session("GET").problem(404, "session_not_found")


def test_an_answer_that_could_not_be_committed_is_given_all_the_same(
    session: Session, model: Turnfold, broken: Callable[..., Any]
) -> None:
    store = model.store
    model.__dict__["store"] = broken(store, write=StoreUnavailableError("write: nobody answers"))
    answer = session("POST", "/chat", {"message": "Hello?"}, idempotency_key="k")
    assert answer.ok()["reply"]["role"] == "assistant"
    assert answer.body["turn"] is None
    assert answer.headers["x-commit-status"] == "failed"
    assert answer.headers["idempotency-key"] == "k"
    model.__dict__["store"] = store
    for name in ("chat", "commit", "turns"):
        model.__dict__.pop(name, None)
    again = session("POST", "/chat", {"message": "Hello?"}, idempotency_key="k")
    assert again.ok()["turn"] == 1
    assert "x-commit-status" not in again.headers


@pytest.mark.usefixtures("model")
def test_a_chat_goes_on_from_the_context(session: Session, fake: FakeOpenAI) -> None:
    session("PUT", "", {"system": ["Be brief."], "settings": {"pin_mode": "off"}}).ok(201)
    session.commit()
    body = {"message": "And back?", "model": "other", "temperature": 0, "max_tokens": 50}
    session("POST", "/chat", body).ok()
    (asked,) = fake.requests("And back?")
    assert [one["content"] for one in asked.body["messages"]] == [
        "Be brief.",
        *(one["content"] for one in turn()),
        "And back?",
    ]
    assert (asked.body["model"], asked.body["temperature"]) == ("other", 0)
