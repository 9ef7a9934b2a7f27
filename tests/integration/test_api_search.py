"""Searches and recalled turns over the handler."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from support.api import Api, Session, turn
from turnfold.application.compact_session import Ring
from turnfold.domain.errors import ModelFailedError
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnfold.bootstrap import Turnfold

BAD_BODIES: list[dict[str, Any]] = [
    {},
    {"query": None},
    {"query": ""},
    {"query": 7},
    {"query": ["a"]},
    {"query": "a" * 10_001},
    {"query": "a", "k": 0},
    {"query": "a", "k": -1},
    {"query": "a", "k": 101},
    {"query": "a", "k": "5"},
    {"query": "a", "k": 2.5},
    {"query": "a", "k": True},
    {"query": "a", "mode": "psychic"},
    {"query": "a", "mode": 7},
    {"query": "a", "mode": ["keyword"]},
]
ODD_QUERIES = [
    '"',
    "*",
    "AND OR NOT",
    "(((",
    "a" * 10_000,
    "👍🏽",
    "%_%",
    "\\",
    "\x00",
    "\ud800",
    " ",
]


@pytest.fixture
def talked(session: Session) -> Session:
    """A session of 4 turns, the third of which speaks of a lantern."""
    for number in range(1, 5):
        session.commit(number, "The green lantern is broken." if number == 3 else "")
    return session


def search(session: Session, query: str, **members: object) -> Any:
    return session("POST", "/search", {"query": query, **members}).ok()


def test_a_hit_is_the_turn_word_for_word(talked: Session) -> None:
    answer = search(talked, "Which lanterns are green?", k=1)
    (item,) = answer["items"]
    assert item["turn"] == 3
    assert item["messages"] == turn(3, "The green lantern is broken.")
    assert item["session_id"] == talked.id
    assert item["matched_by"] == ["lanterns", "green"]
    assert item["score"] > 0
    assert answer["mode"] == "keyword"


@pytest.mark.parametrize("body", BAD_BODIES, ids=str)
@pytest.mark.parametrize("everywhere", [False, True])
def test_bad_bodies_are_refused(session: Session, body: dict[str, Any], everywhere: bool) -> None:
    if everywhere:
        session.api("POST", "/v1/search", body).problem(422, "invalid_parameter")
    else:
        session("POST", "/search", body).problem(422, "invalid_parameter")


@pytest.mark.parametrize("body", [[], "text", 7, None])
def test_a_body_that_is_no_object_is_refused(session: Session, body: object) -> None:
    assert session("POST", "/search", body).status in (400, 422)


@pytest.mark.parametrize("query", ODD_QUERIES, ids=lambda query: ascii(query)[:12])
def test_odd_queries_are_answered(session: Session, query: str) -> None:
    session.commit()
    assert isinstance(search(session, query)["items"], list)


def test_meaning_without_a_model_is_424(talked: Session) -> None:
    for mode in ("semantic", "hybrid"):
        body = {"query": "lantern", "mode": mode}
        talked("POST", "/search", body).problem(424, "model_not_configured")
        talked.api("POST", "/v1/search", body).problem(424, "model_not_configured")


def test_a_model_that_fails_is_424_where_it_was_asked_for(
    talked: Session, turnfold: Turnfold
) -> None:
    class Down:
        name = "down"

        def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            raise ModelFailedError("the model refused the request", 500)

    object.__setattr__(turnfold.recall, "embedder", Down())
    talked("POST", "/search", {"query": "lantern", "mode": "semantic"}).problem(424, "model_failed")
    assert search(talked, "lantern")["mode"] == "keyword"


def test_an_unknown_session_is_404_and_a_reader_may_search(talked: Session) -> None:
    unknown = talked.api.session("unknown")
    unknown("POST", "/search", {"query": "a"}).problem(404, "session_not_found")
    reader = Api(talked.api.handler, key="reader").session(talked.id)
    assert search(reader, "lantern")["items"]
    writer = Api(talked.api.handler, key="writer").session(talked.id)
    writer("POST", "/search", {"query": "lantern"}).problem(403, "forbidden")


def test_another_tenant_finds_nothing(talked: Session) -> None:
    stranger = Api(talked.api.handler, key="local-2")
    stranger.session(talked.id)("POST", "/search", {"query": "lantern"}).problem(
        404, "session_not_found"
    )
    assert stranger("POST", "/v1/search", {"query": "lantern"}).ok()["items"] == []


def test_a_search_of_the_tenant_goes_back_by_its_cursor(api: Api) -> None:
    word = f"w{uuid.uuid4().hex[:12]}"
    user = f"user-{word}"
    ids = [f"{word}-{number}" for number in range(22)]
    for one in ids:
        body = {"messages": turn(1, word), "user_id": user}
        api.session(one)("POST", "/turns", body).ok(201)
    asked = {"query": word, "user_id": user, "k": 100}
    first = api("POST", "/v1/search", asked).ok()
    assert first["sessions_searched"] == 20
    second = api("POST", "/v1/search", asked | {"cursor": first["next_cursor"]}).ok()
    assert second["next_cursor"] is None
    found = [item["session_id"] for item in (*first["items"], *second["items"])]
    assert sorted(found) == sorted(ids)
    other = asked | {"cursor": first["next_cursor"], "user_id": "another"}
    api("POST", "/v1/search", other).problem(422, "invalid_cursor")


def test_a_context_asked_for_by_a_query_quotes_the_turn(
    session: Session, turnfold: Turnfold
) -> None:
    for number in range(1, 9):
        session.commit(
            number, "The green lantern is broken. " * 30 if number == 3 else "word " * 90
        )
    key = SessionKey("local", session.id)
    turnfold.compact(key, Ring(8, forced=True))
    context = session("GET", "/context?query=green%20lantern&recall=1&max_tokens=2000").ok()
    assert [one["turn"] for one in context["regions"]["recall"]] == [3]
    assert context["regions"]["recall"][0]["score"] > 0
    assert context["tokens"]["recall"] > 0
    assert context["tokens"]["total"] <= 2000
    assert str(context["messages"]).count("<recalled>") == 1
    posted = session("POST", "/context", {"query": "green lantern", "recall": 1}).ok()
    assert [one["turn"] for one in posted["regions"]["recall"]] == [3]
    without = session("GET", "/context?query=green%20lantern&recall=0&max_tokens=2000").ok()
    assert without["regions"]["recall"] == []
