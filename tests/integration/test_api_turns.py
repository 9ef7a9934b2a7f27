"""Turns and the transcript over the handler."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from support.api import Api, Json, Session, question, reply, turn
from support.fake_openai import FakeOpenAI, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turnfold.bootstrap import Turnfold

from turnfold.application import read_context
from turnfold.domain.errors import StoreUnavailableError

INVALID: dict[str, Any] = {
    "absent": None,
    "no list": {"role": "user"},
    "text": "hello",
    "empty": [],
    "no object": ["hello", reply()],
    "unknown role": [{"role": "moderator", "content": "a"}, reply()],
    "no user": [reply()],
    "too many": [question()] * 500 + [reply()],
    "answer to nothing": [
        question(),
        {"role": "tool", "tool_call_id": "x", "content": "a"},
        reply(),
    ],
}


def test_a_turn_is_committed_and_read_back(session: Session) -> None:
    body = {"messages": turn(), "user_id": "u-1", "metadata": {"n": 0.1, "deep": [{"a": None}]}}
    answer = session("POST", "/turns", body)
    committed = answer.ok(201)
    assert (committed["session_id"], committed["turn"]) == (session.id, 1)
    assert committed["watermark"]["committed_through"] == 1
    assert uuid.UUID(answer.headers["idempotency-key"]).version == 4
    assert "idempotency-replayed" not in answer.headers
    read = session("GET", "/turns/1").ok()
    assert (read["turn_id"], read["messages"]) == (committed["turn_id"], turn())
    assert session("GET").ok()["user_id"] == "u-1"


@pytest.mark.parametrize("messages", INVALID.values(), ids=INVALID)
def test_invalid_messages_are_refused_by_place(session: Session, messages: object) -> None:
    problem = session("POST", "/turns", {"messages": messages}).problem(422, "invalid_messages")
    assert all(one.keys() == {"loc", "msg"} for one in problem["errors"])
    assert problem["errors"]
    session("GET").problem(404, "session_not_found")


def test_incomplete_turns_are_refused_naming_what_is_missing(session: Session) -> None:
    call = {"id": "call_7", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [question(), {"role": "assistant", "content": None, "tool_calls": [call]}]
    answer = session("POST", "/turns", {"messages": messages})
    assert "call_7" in str(answer.problem(422, "incomplete_turn")["errors"])


def test_a_turn_has_at_most_a_mebibyte(session: Session) -> None:
    session("POST", "/turns", {"messages": turn(1, "x" * 520_000)}).ok(201)
    session("POST", "/turns", {"messages": turn(1, "x" * 530_000)}).problem(413, "turn_too_large")


@pytest.mark.parametrize(
    ("member", "code"),
    [
        ({"user_id": 7}, "invalid_user_id"),
        ({"user_id": "a\nb"}, "invalid_user_id"),
        ({"metadata": "x"}, "invalid_metadata"),
    ],
    ids=str,
)
def test_wrong_members_are_refused(session: Session, member: dict[str, Any], code: str) -> None:
    session("POST", "/turns", {"messages": turn(), **member}).problem(422, code)


@pytest.mark.parametrize("number", ["0", "-1", "one", "1e3", "9" * 40, "01", "%D9%A1", "3", "1%20"])
def test_unknown_turns_are_not_found(session: Session, number: str) -> None:
    session.commit()
    session("GET", f"/turns/{number}").problem(404, "turn_not_found")


def test_a_replay_repeats_status_and_body(session: Session) -> None:
    body = {"messages": turn(), "metadata": {"a": 1, "b": 2}}
    first = session("POST", "/turns", body, idempotency_key="k 1")
    session.commit(2)
    other_order = {"metadata": {"b": 2, "a": 1}, "messages": turn()}
    again = session("POST", "/turns", other_order, idempotency_key="k 1")
    assert again.ok(201) == first.ok(201)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["idempotency-key"] == "k 1"
    assert session("GET").ok()["turns"] == 2
    refused = session("POST", "/turns", {"messages": turn(3)}, idempotency_key="k 1")
    refused.problem(422, "idempotency_mismatch")


def test_a_key_serves_its_own_route_session_and_tenant(api: Api, session: Session) -> None:
    body = {"messages": turn(), "text": "Likes tea."}
    session("POST", "/turns", body, idempotency_key="k").ok(201)
    assert session("POST", "/pins", body, idempotency_key="k").ok(201)["text"] == "Likes tea."
    other = api.session(f"{session.id}-2")
    assert other("POST", "/turns", body, idempotency_key="k").ok(201)["turn"] == 1
    api.key = "local-2"
    answer = session("POST", "/turns", body, idempotency_key="k")
    assert answer.ok(201)["turn"] == 1
    assert "idempotency-replayed" not in answer.headers


@pytest.mark.parametrize("layout", ["", "&format=alternating"])
def test_the_context_can_be_included(session: Session, layout: str) -> None:
    session.commit()
    session.pin()
    path = f"/turns?include=context&max_tokens=4000&model=gpt-4o{layout}"
    answer = session("POST", path, {"messages": turn(2)}, idempotency_key="k")
    context = session("GET", f"/context?max_tokens=4000&model=gpt-4o{layout}").ok()
    assert answer.ok(201)["context"] == context
    session.commit(3)
    again = session("POST", path, {"messages": turn(2)}, idempotency_key="k").ok(201)
    context = session("GET", f"/context?max_tokens=4000&model=gpt-4o{layout}").ok()
    assert again["context"] == context
    plain = session("POST", "/turns", {"messages": turn(2)}, idempotency_key="k").ok(201)
    assert "context" not in plain


@pytest.mark.parametrize(
    "query", ["include=all", "include=context&max_tokens=none", "include=context&format=xml"]
)
def test_a_wrong_wish_for_a_context_commits_nothing(session: Session, query: str) -> None:
    session("POST", f"/turns?{query}", {"messages": turn()}).problem(422, "invalid_parameter")
    session("GET").problem(404, "session_not_found")


def test_a_context_that_cannot_be_had_does_not_hide_the_commit(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"messages": turn()}
    committed = session("POST", "/turns?include=context&max_tokens=1", body).ok(201)
    assert (committed["turn"], committed["context"]) == (1, None)
    assert committed["context_problem"]["code"] == "budget_too_small"
    monkeypatch.setattr(read_context, "MAX_CONTEXT_BYTES", 10)
    committed = session("POST", "/turns?include=context", body).ok(201)
    assert committed["context_problem"]["code"] == "context_too_large"


def test_the_transcript_is_read_in_pages(session: Session) -> None:
    for number in range(1, 8):
        session.commit(number)
    numbers: list[int] = []
    target = "/transcript?from=2&to=6&limit=2"
    while target:
        page = session("GET", target).ok()
        numbers += [one["turn"] for one in page["items"]]
        assert all(one["messages"] == turn(one["turn"]) for one in page["items"])
        cursor = page["next_cursor"]
        target = f"/transcript?from=2&to=6&limit=2&cursor={cursor}" if cursor else ""
    assert numbers == [2, 3, 4, 5, 6]
    whole = session("GET", "/transcript").ok()
    hashes = [one["sha256"] for one in whole["items"]]
    assert [one["prev_sha256"] for one in whole["items"]] == ["0" * 64, *hashes[:-1]]
    assert whole["next_cursor"] is None
    assert session("GET", "/transcript?from=5&to=4").ok() == {"items": [], "next_cursor": None}
    assert session("GET", "/transcript?from=100").ok() == {"items": [], "next_cursor": None}


def test_compact_rings_the_doorbell(session: Session, turnfold: Turnfold) -> None:
    session.commit()
    rung: list[tuple[Any, ...]] = []

    class Bell:
        def ring(self, *args: Json, **kwargs: Json) -> None:
            rung.append((*args, kwargs))

    turnfold.__dict__.pop("sessions", None)
    turnfold.__dict__["doorbell"] = Bell()
    answer = session("POST", "/compact", {}, idempotency_key="k")
    assert answer.ok(202)["watermark"]["committed_through"] == 1
    assert answer.headers["idempotency-key"] == "k"
    assert [one[-1] for one in rung] == [{"forced": True}]


@pytest.fixture
def fake() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def with_model(
    fake: FakeOpenAI,
    api: Api,
    make_turnfold: Callable[..., Turnfold],
    monkeypatch: pytest.MonkeyPatch,
) -> Turnfold:
    from api import app

    made = make_turnfold(OPENAI_API_KEY="any", OPENAI_BASE_URL=fake.url)
    monkeypatch.setattr(app, "service", lambda: made)
    return made


@pytest.mark.usefixtures("with_model")
def test_pin_mode_sync_judges_in_the_request(session: Session, fake: FakeOpenAI) -> None:
    session("PUT", "", {"settings": {"pin_mode": "sync"}}).ok(201)
    body = {"messages": turn()}
    answer = session("POST", "/turns", body, idempotency_key="k")
    committed = answer.ok(201)
    assert committed["pins"] == []
    assert committed["watermark"]["judged_through"] == 1
    asked = len(fake.requests())
    assert asked == 1
    again = session("POST", "/turns", body, idempotency_key="k")
    assert again.ok(201) == committed
    assert again.headers["idempotency-replayed"] == "true"
    assert len(fake.requests()) == asked


@pytest.mark.usefixtures("with_model")
def test_a_failed_judgement_leaves_the_turn_to_the_compactor(
    session: Session, fake: FakeOpenAI
) -> None:
    session("PUT", "", {"settings": {"pin_mode": "sync"}}).ok(201)
    fake.script(Rule(times=None, status=400))
    committed = session("POST", "/turns", {"messages": turn()}).ok(201)
    assert (committed["pins"], committed["pins_pending"]) == ([], True)
    assert committed["watermark"]["judged_through"] == 0


def test_a_doorbell_that_cannot_be_rung_does_not_matter(
    session: Session, turnfold: Turnfold, broken: Callable[..., Any]
) -> None:
    bell = broken(turnfold.doorbell, ring=StoreUnavailableError("ring: nobody answers"))
    turnfold.__dict__["doorbell"] = bell
    session("POST", "/turns", {"messages": turn()}).ok(201)
    session("POST", "/compact").problem(503, "store_unavailable")
