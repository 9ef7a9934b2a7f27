"""Open turns over the handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.api import question, reply

if TYPE_CHECKING:
    from support.api import Json, Session

CALL = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}
ASKS: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALL]}
FOUND = {"role": "tool", "tool_call_id": "c1", "content": "42"}


def append(session: Session, *messages: Json, **options: Json) -> Json:
    body = {"messages": list(messages)}
    return session("POST", "/open-turn/messages", body, **options).ok(201)


def test_a_turn_is_built_and_committed(session: Session) -> None:
    append(session, question())
    append(session, ASKS, FOUND)
    shown = session("GET", "/open-turn").ok()
    assert shown["messages"] == [question(), ASKS, FOUND]
    assert shown["expires_at"] > shown["updated_at"]
    session("GET", "").problem(404, "session_not_found")
    committed = session("POST", "/open-turn/commit", {"messages": [reply()], "user_id": "u1"}).ok(
        201
    )
    assert committed["turn"] == 1
    assert session("GET", "/turns/1").ok()["messages"] == [question(), ASKS, FOUND, reply()]
    assert session("GET", "").ok()["user_id"] == "u1"
    session("GET", "/open-turn").problem(404, "open_turn_not_found")
    session("POST", "/open-turn/commit").problem(404, "open_turn_not_found")


def test_an_unfinished_turn_is_refused_and_stays_open(session: Session) -> None:
    append(session, question(), ASKS)
    session("POST", "/open-turn/commit").problem(422, "incomplete_turn")
    assert session("GET", "/open-turn").ok()["messages"] == [question(), ASKS]


def test_dropping_it(session: Session) -> None:
    append(session, question())
    assert session("DELETE", "/open-turn").status == 204
    session("DELETE", "/open-turn").problem(404, "open_turn_not_found")


def test_a_context_shows_it_where_asked(session: Session) -> None:
    session.commit()
    append(session, question("And back?"), ASKS)
    plain = session("GET", "/context").ok()["messages"]
    assert question("And back?") not in plain
    for shown in (
        session("GET", "/context?include_open=true").ok(),
        session("POST", "/context", {"include_open": True}).ok(),
    ):
        assert shown["messages"] == [*plain, question("And back?"), ASKS]
    session("GET", "/context?include_open=perhaps").problem(422, "invalid_parameter")


@pytest.mark.parametrize(
    "asked",
    [
        {"max_tokens": 400},
        {"policy": {"name": "token_limit", "max_tokens": 400}},
        {"policy": {"name": "message_window", "max_messages": 50}, "max_tokens": 400},
    ],
)
def test_a_long_open_turn_is_shortened_to_a_budget(session: Session, asked: Json) -> None:
    """It is kept here, so nothing is lost; what a client sends along is never cut."""
    session.commit()
    log = {**FOUND, "content": "2026-01-01 ok\n" * 4000}
    append(session, question("Dump the log."), ASKS, log)
    context = session("POST", "/context", {"include_open": True, **asked}).ok()
    assert context["tokens"]["total"] <= 400
    assert [one["role"] for one in context["messages"][-3:]] == ["user", "assistant", "tool"]
    shown = context["messages"][-1]["content"]
    assert shown.startswith("2026-01-01 ok")
    assert "characters left out; see the open turn for the whole text" in shown
    (elided,) = context["elided"]
    assert (elided["turn"], elided["message"]) == (2, 2)
    assert session("GET", "/open-turn").ok()["messages"][2] == log
    sent = {"messages": [question("Word. " * 4000)], "max_tokens": 400}
    session("POST", "/context", sent).problem(422, "budget_too_small")


@pytest.mark.parametrize("messages", [None, [], "hello", [{"role": "user"}], [{"content": "a"}]])
def test_wrong_messages_are_refused(session: Session, messages: Json) -> None:
    refused = session("POST", "/open-turn/messages", {"messages": messages})
    refused.problem(422, "invalid_messages")
    session("GET", "/open-turn").problem(404, "open_turn_not_found")


def test_more_than_a_turn_can_have_is_refused(session: Session) -> None:
    append(session, *[question(str(number)) for number in range(500)])
    more = session("POST", "/open-turn/messages", {"messages": [question()]})
    more.problem(413, "turn_too_large")


def test_a_key_appends_once_and_commits_once(session: Session) -> None:
    key = {"idempotency_key": "k1"}
    first = append(session, question(), **key)
    assert append(session, question(), **key) == first
    assert session("GET", "/open-turn").ok()["messages"] == [question()]
    other = session("POST", "/open-turn/messages", {"messages": [reply()]}, **key)
    other.problem(422, "idempotency_mismatch")
    body = {"messages": [reply()]}
    done = session("POST", "/open-turn/commit", body, **key).ok(201)
    again = session("POST", "/open-turn/commit", body, **key)
    assert again.ok(201) == done
    assert again.headers["idempotency-replayed"] == "true"
