"""Contexts and working memory over the handler."""

from __future__ import annotations

from typing import Any

import pytest

from support.api import Session, question, reply, turn
from support.invariants import check_alternates
from turnfold.application import read_context
from turnfold.domain.messages import MEMORY_NAME

BAD_BODIES: list[tuple[dict[str, Any], str]] = [
    ({"max_tokens": 0}, "invalid_parameter"),
    ({"max_tokens": "100"}, "invalid_parameter"),
    ({"max_tokens": 1.5}, "invalid_parameter"),
    ({"max_tokens": True}, "invalid_parameter"),
    ({"max_tokens": 10_000_001}, "invalid_parameter"),
    ({"model": ""}, "invalid_parameter"),
    ({"model": 7}, "invalid_parameter"),
    ({"query": 7}, "invalid_parameter"),
    ({"recall": True}, "invalid_parameter"),
    ({"format": "xml"}, "invalid_parameter"),
    ({"format": ["alternating"]}, "invalid_parameter"),
    ({"policy": "random"}, "invalid_policy"),
    ({"policy": 7}, "invalid_policy"),
    ({"policy": {}}, "invalid_policy"),
    ({"policy": {"name": ["progressive"]}}, "invalid_policy"),
    ({"messages": "hello"}, "invalid_messages"),
    ({"messages": [reply()]}, "invalid_messages"),
    ({"messages": [question(), reply()]}, "invalid_messages"),
    ({"messages": [{"role": "system", "content": "a"}]}, "invalid_messages"),
]


@pytest.fixture
def talked(session: Session) -> Session:
    """A session of three turns and a pin."""
    session("PUT", "", {"settings": {"pin_mode": "off"}, "system": ["Be brief."]}).ok(201)
    for number in (1, 2, 3):
        session.commit(number)
    session.pin()
    return session


def test_get_and_post_answer_the_same(talked: Session) -> None:
    query = "max_tokens=1000&model=gpt-4o&policy=progressive&query=tea&recall=3&format=openai"
    got = talked("GET", f"/context?{query}")
    body = {
        "max_tokens": 1000,
        "model": "gpt-4o",
        "policy": {"name": "progressive"},
        "query": "tea",
        "recall": 3,
        "format": "openai",
    }
    posted = talked("POST", "/context", body)
    assert got.ok() == posted.ok()
    assert got.headers["etag"] == posted.headers["etag"]
    assert got.body["regions"]["recall"] == []
    assert [one["turn"] for one in got.body["regions"]["head"]] == [1]
    assert talked("POST", "/context", body | {"policy": "progressive"}).ok() == got.body


@pytest.mark.parametrize(("body", "code"), BAD_BODIES, ids=str)
def test_wrong_parameters_are_refused(talked: Session, body: dict[str, Any], code: str) -> None:
    talked("POST", "/context", body).problem(422, code)


@pytest.mark.parametrize("policy", ["message_window", "composite", "random"])
def test_policies_that_lack_something_say_so(talked: Session, policy: str) -> None:
    talked("GET", f"/context?policy={policy}").problem(422, "invalid_policy")
    talked("POST", "/context", {"policy": {"name": policy}}).problem(422, "invalid_policy")


def test_a_policy_is_named_in_its_context(talked: Session) -> None:
    spec = {"name": "message_window", "max_messages": 3}
    shown = talked("POST", "/context", {"policy": spec}).ok()
    assert talked("GET", "/context?policy=message_window&max_messages=3").ok() == shown
    assert shown["policy"]["name"] == "message_window"
    assert len(shown["messages"]) == 3


def test_coming_messages_are_appended_and_their_system_message_stands_in(talked: Session) -> None:
    plain = talked("GET", "/context").ok()["messages"]
    coming = [question("And back?")]
    assert talked("POST", "/context", {"messages": coming}).ok()["messages"] == plain + coming
    system = {"role": "system", "content": "Be thorough."}
    replaced = talked("POST", "/context", {"messages": [system, *coming]}).ok()["messages"]
    assert replaced == [system, *plain[1:], *coming]


def test_a_context_alternates_if_asked_for(talked: Session) -> None:
    coming = [question("And"), question("back?")]
    body = {"format": "alternating", "messages": coming}
    shown = talked("POST", "/context", body).ok()
    check_alternates(shown["messages"])
    assert shown["messages"][-1] == question("And\n\nback?")
    got = talked("GET", "/context?format=alternating").ok()
    assert got["messages"] == shown["messages"][:-1]
    told = [one["role"] for one in got["messages"] if one.get("name") == MEMORY_NAME]
    assert told == ["user", "assistant"]
    stable = got["cache"]["stable_messages"]
    assert got["messages"][stable - 1]["name"] == MEMORY_NAME
    assert got["tokens"]["total"] <= talked("GET", "/context").ok()["tokens"]["total"] + 20
    exact = talked("GET", f"/context?format=alternating&max_tokens={got['tokens']['total']}")
    assert exact.ok()["messages"] == got["messages"]
    window = "policy=message_window&max_messages=4"
    check_alternates(talked("GET", f"/context?format=alternating&{window}").ok()["messages"])


def test_a_budget_that_is_too_small_says_what_is_needed(talked: Session) -> None:
    problem = talked("GET", "/context?max_tokens=1").problem(422, "budget_too_small")
    assert problem["budget"] == 1
    assert problem["needed"] > 1
    enough = talked("POST", "/context", {"max_tokens": problem["needed"] + 200})
    enough.ok()


def test_etags_cover_state_and_parameters(talked: Session) -> None:
    tags = {
        talked("POST", "/context", body).headers["etag"]
        for body in (
            {},
            {"max_tokens": 900},
            {"model": "gpt-4o"},
            {"query": "a"},
            {"format": "alternating"},
            {"messages": [question()]},
            {"messages": [question("b")]},
        )
    }
    assert len(tags) == 7
    etag = talked("GET", "/context").headers["etag"]
    assert etag in tags
    for method in ("GET", "POST"):
        known = talked(method, "/context", if_none_match=etag)
        assert (known.status, known.text) == (304, "")
    memory = talked("GET", "/working-memory")
    assert talked("GET", "/working-memory", if_none_match=memory.headers["etag"]).status == 304
    talked.commit(4)
    assert talked("GET", "/context", if_none_match=etag).status == 200
    assert talked("GET", "/working-memory", if_none_match=memory.headers["etag"]).status == 200


def test_working_memory_holds_full_texts(talked: Session) -> None:
    memory = talked("GET", "/working-memory").ok()
    assert memory.keys() >= {"head", "window", "tail", "pins", "watermark", "generation"}
    assert memory["head"][0]["messages"] == turn(1)
    assert memory["pins"][0]["text"] == "Likes tea."


def test_a_context_too_large_to_answer_is_refused(
    talked: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_context, "MAX_CONTEXT_BYTES", 100)
    talked("GET", "/context").problem(413, "context_too_large")


def test_a_session_has_a_policy_of_its_own(talked: Session) -> None:
    policy = {"name": "message_window", "max_messages": 3}
    talked("PATCH", "", {"settings": {"policy": policy}}).ok()
    assert talked("GET", "/context").ok()["policy"]["name"] == "message_window"
    assert "policy" not in talked("GET", "/context?policy=progressive").ok()


@pytest.mark.parametrize(
    ("model", "encoding"),
    [(None, "o200k_base"), ("my-deployment", "o200k_base"), ("gpt-35-turbo", "cl100k_base")],
)
def test_a_context_names_what_it_was_counted_with(
    session: Session, model: str | None, encoding: str
) -> None:
    session.commit()
    assert session("POST", "/context", {"model": model}).ok()["encoding"] == encoding
    session("PATCH", "", {"settings": {"model": model}}).ok()
    assert session("GET", "/context").ok()["encoding"] == encoding
