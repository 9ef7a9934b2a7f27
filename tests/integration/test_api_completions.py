"""Chat completions over the handler, with a fake model, on a host that cannot stream."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from support.api import Answer, Api, Session, question, turn
from support.fake_completions import calling, result, spoken
from support.fake_openai import FakeOpenAI, Rule
from turnfold.domain.errors import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turnfold.bootstrap import Turnfold

type Json = dict[str, Any]

PATH = "/v1/chat/completions"
UPSTREAM = {"message": "too hot", "type": "invalid_request_error", "code": "hot", "param": "t"}


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


def complete(api: Api, *messages: Json, session: Session | None = None, **given: Any) -> Answer:
    headers = {name: given.pop(name) for name in ("idempotency_key",) if name in given}
    if session is not None:
        headers["x_session_id"] = session.id
    return api("POST", PATH, {"model": "talker", "messages": list(messages), **given}, **headers)


def events(answer: Answer) -> list[Json]:
    """The chunks of a streamed answer that came to its end."""
    assert answer.status == 200, answer.text[:500]
    assert answer.headers["content-type"].startswith("text/event-stream")
    data = [one.removeprefix("data: ") for one in answer.text.split("\n\n") if one]
    assert data[-1] == "[DONE]"
    return [json.loads(one) for one in data[:-1]]


def text_of(chunks: list[Json]) -> str:
    return "".join(
        choice["delta"].get("content") or "" for one in chunks for choice in one["choices"]
    )


# ------------------------------------------------------------------------------- passing through


@pytest.mark.usefixtures("model")
def test_without_a_session_everything_passes(api: Api, fake: FakeOpenAI) -> None:
    body: Json = {
        "model": "x",
        "messages": [{"role": "user", "content": "hi", "name": "m"}, {"role": "odd"}],
        "n": 2,
        "seed": 1,
        "temperature": 0.2,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        "response_format": {"type": "text"},
        "max_context_tokens": "theirs",
        "unknown": {"a": [None]},
    }
    answer = {"id": "c", "choices": [{"odd": None}], "usage": {"prompt_tokens": 1.5}}
    fake.script(Rule(body=answer))
    assert api("POST", PATH, body | {"session_id": None}).ok() == answer
    assert fake.requests()[-1].body == body


@pytest.mark.usefixtures("model")
def test_models_are_passed_on(api: Api) -> None:
    assert api("GET", "/v1/models").ok()["data"][0]["id"] == "talker"


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("remembered", [True, False])
def test_events_that_are_too_many_for_one_answer_become_few(
    api: Api, session: Session, fake: FakeOpenAI, *, remembered: bool
) -> None:
    said = "word " * 20_000
    fake.script(Rule(text=said))
    members = {"stream": True, "stream_options": {"include_usage": True}}
    answer = complete(api, question(), session=session if remembered else None, **members)
    assert len(answer.text) < 200_000
    chunks = events(answer)
    assert text_of(chunks) == said
    assert chunks[-1]["usage"]["total_tokens"] == 18
    assert [one["choices"][0]["finish_reason"] for one in chunks[:-1]] == [None, "stop"]
    if remembered:
        assert session("GET", "/turns/1").ok()["messages"][-1]["content"] == said


@pytest.mark.usefixtures("model")
def test_an_event_is_one_line_for_every_client(api: Api, fake: FakeOpenAI) -> None:
    """Many of them split lines as Python does, and not by the standard alone."""
    said = "a\u2028b\x85c\u2029d\r\ne"
    fake.script(Rule(text=said))
    answer = complete(api, question(), stream=True)
    assert text_of(events(answer)) == said
    assert all(line.startswith("data: ") for line in answer.text.splitlines() if line)


@pytest.mark.usefixtures("model")
def test_a_host_that_cannot_stream_sends_all_events_at_once(api: Api, fake: FakeOpenAI) -> None:
    fake.script(Rule(text="One two three."))
    answer = complete(api, question(), stream=True, stream_options={"include_usage": True})
    chunks = events(answer)
    assert len(chunks) > 4
    assert text_of(chunks) == "One two three."
    assert chunks[-1]["usage"]["total_tokens"] == 18


def test_without_a_key_there_is_neither(api: Api, session: Session) -> None:
    for answer in (
        api("GET", "/v1/models"),
        complete(api, question()),
        complete(api, question(), stream=True),
        complete(api, question(), session=session),
        complete(api, question(), session=session, stream=True),
    ):
        assert answer.openai_error(424, "model_not_configured")["type"] == "upstream_error"
    session("GET").problem(404, "session_not_found")


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("with_session", [True, False])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("rule", "status", "code"),
    [
        (Rule(status=400, body={"error": UPSTREAM}), 400, "hot"),
        (Rule(status=404, body={"error": UPSTREAM | {"code": None}}), 404, "model_failed"),
        (Rule(status=422, body={"detail": "no"}), 422, "model_failed"),
        (Rule(status=429, body={"error": UPSTREAM}, headers={"Retry-After": "9"}), 429, "hot"),
        (Rule(status=429), 429, "throttled"),
        (Rule(status=401), 424, "model_failed"),
        (Rule(status=500), 424, "model_failed"),
        (Rule(hang_up=True), 424, "model_failed"),
    ],
    ids=["400", "404", "422", "429", "429 bare", "401", "500", "gone"],
)
def test_what_the_model_refuses_keeps_its_status(
    api: Api,
    session: Session,
    fake: FakeOpenAI,
    rule: Rule,
    status: int,
    code: str,
    *,
    stream: bool,
    with_session: bool,
) -> None:
    rule.times = 1
    if rule.status != 200 and rule.body is None:
        rule.body = b""
    fake.script(rule)
    given = {"session": session} if with_session else {}
    answer = complete(api, question(), stream=stream, **given)
    error = answer.openai_error(status, code)
    assert error["upstream_status"] == (rule.status if rule.status != 200 else None)
    if code == "hot":
        assert (error["message"], error["param"]) == ("too hot", "t")
    assert answer.headers.get("retry-after") == (
        {"hot": "9"}.get(code, "1") if status == 429 else None
    )
    passing = rule.status == 500 or rule.hang_up
    assert (answer.headers.get("x-should-retry") == "true") == passing
    session("GET").problem(404, "session_not_found")


@pytest.mark.usefixtures("model")
def test_a_stream_that_breaks_off_is_a_failure_where_nothing_was_sent(
    api: Api, session: Session, fake: FakeOpenAI
) -> None:
    for given in ({}, {"session": session}):
        fake.script(Rule(text="One two three.", cut_after=2))
        complete(api, question(), stream=True, **given).openai_error(424, "model_failed")
    session("GET").problem(404, "session_not_found")


# --------------------------------------------------------------------------------- with a session


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("stream", [True, False])
def test_a_session_adds_its_memory_and_commits(
    api: Api, session: Session, fake: FakeOpenAI, *, stream: bool
) -> None:
    session.commit()
    system = {"role": "system", "content": "Be brief."}
    fake.script(Rule(text="Two hours."))
    answer = complete(api, system, question(), session=session, stream=stream, seed=7)
    text = text_of(events(answer)) if stream else answer.ok()["choices"][0]["message"]["content"]
    assert text == "Two hours."
    assert answer.headers["idempotency-key"]
    assert "x-commit-status" not in answer.headers
    asked = fake.requests()[-1].body
    assert asked["messages"] == [system, *turn(), question()]
    assert asked["seed"] == 7
    assert "session_id" not in asked
    committed = session("GET", "/turns/2").ok()["messages"]
    assert committed == [system, question(), {"role": "assistant", "content": "Two hours."}]
    steps = session("GET", "/usage").ok()["steps"]
    assert [(one["step"], one["calls"], one["prompt_tokens"]) for one in steps] == [("chat", 1, 11)]


@pytest.mark.usefixtures("model")
def test_a_chat_is_in_the_ledger_as_well(session: Session) -> None:
    session("POST", "/chat", {"message": "Hello?"}).ok()
    assert session("GET", "/usage").ok()["total"]["calls"] == 1


@pytest.mark.usefixtures("model")
def test_the_body_may_name_the_session(api: Api, session: Session, fake: FakeOpenAI) -> None:
    complete(api, question(), session_id=session.id, max_context_tokens=500).ok()
    assert session("GET").ok()["turns"] == 1
    assert fake.requests()[-1].body.keys() == {"model", "messages"}
    complete(api, question(), session_id=session.id, session=session).ok()
    assert session("GET").ok()["turns"] == 2


@pytest.mark.usefixtures("model")
def test_a_repetition_answers_the_same(api: Api, session: Session, fake: FakeOpenAI) -> None:
    first = complete(api, question(), session=session, idempotency_key="k")
    again = complete(api, question(), session=session, idempotency_key="k")
    assert again.ok() == first.ok()
    assert again.headers["idempotency-replayed"] == "true"
    other = complete(api, question("Other?"), session=session, idempotency_key="k")
    other.openai_error(422, "idempotency_mismatch")
    fake.script(Rule(message=calling("c1"), finish_reason="tool_calls"))
    for repeated in (None, "true"):
        answer = complete(api, question(), session=session, idempotency_key="s", stream=True)
        assert answer.headers.get("idempotency-replayed") == repeated
        (chunk, *_) = [
            one for one in events(answer) if one["choices"][0]["delta"].get("tool_calls")
        ]
        assert chunk["choices"][0]["delta"]["tool_calls"][0]["id"] == "c1"
    assert len(fake.requests()) == 2


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("stream", [True, False])
def test_tool_calls_stay_open_until_the_next_request(
    api: Api, session: Session, fake: FakeOpenAI, *, stream: bool
) -> None:
    fake.script(Rule(message=calling("c1", "c2"), finish_reason="tool_calls"))
    complete(api, question(), session=session, stream=stream)
    session("GET").problem(404, "session_not_found")
    assert len(session("GET", "/open-turn").ok()["messages"]) == 2
    complete(api, result("c1"), session=session).openai_error(422, "invalid_messages")
    fake.script(Rule(message=spoken("It is 42.")))
    complete(api, result("c1"), result("c2"), session=session, stream=stream)
    messages = session("GET", "/turns/1").ok()["messages"]
    assert [one["role"] for one in messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert messages[1]["tool_calls"] == calling("c1", "c2")["tool_calls"]
    session("GET", "/open-turn").problem(404, "open_turn_not_found")


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_that_could_not_be_committed_is_given_all_the_same(
    api: Api, session: Session, model: Turnfold, broken: Callable[..., Any], *, stream: bool
) -> None:
    store = model.store
    model.__dict__["store"] = broken(store, write=StoreUnavailableError("write: nobody answers"))
    answer = complete(api, question(), session=session, idempotency_key="k", stream=stream)
    assert answer.status == 200
    assert answer.headers["x-commit-status"] == "failed"
    assert answer.headers["idempotency-key"] == "k"
    if stream:
        *_, last = events(answer)
        assert (last["commit_status"], last["idempotency_key"]) == ("failed", "k")
    model.__dict__["store"] = store
    for name in ("remember_completions", "commit", "turns", "import_session"):
        model.__dict__.pop(name, None)
    again = complete(api, question(), session=session, idempotency_key="k", stream=stream)
    assert "x-commit-status" not in again.headers
    assert session("GET").ok()["turns"] == 1


@pytest.mark.usefixtures("model")
def test_another_tenants_session_lends_nothing(
    api: Api, session: Session, fake: FakeOpenAI
) -> None:
    session.commit()
    api.key = "local-2"
    complete(api, question(), session=session).ok()
    assert fake.requests()[-1].body["messages"] == [question()]
    assert session("GET").ok()["turns"] == 1
    api.key = "local"
    assert session("GET", "/turns/1").ok()["messages"] == turn()


@pytest.mark.usefixtures("model")
def test_a_session_that_is_being_erased_is_not_spoken_to(
    api: Api, session: Session, fake: FakeOpenAI
) -> None:
    session.commit()
    session("DELETE").ok(202)
    answer = complete(api, question(), session=session)
    answer.openai_error(409, "session_erasing")
    assert answer.headers["retry-after"]
    assert fake.requests() == []


WRONG: dict[str, tuple[Json, int, str, str | None]] = {
    "no messages": ({"messages": None}, 422, "invalid_messages", "messages"),
    "empty": ({"messages": []}, 422, "invalid_messages", "messages"),
    "system only": (
        {"messages": [{"role": "system", "content": "x"}]},
        422,
        "invalid_messages",
        "messages",
    ),
    "odd role": ({"messages": [{"role": "owl"}]}, 422, "invalid_messages", "messages[0].role"),
    "answer last": ({"messages": turn()}, 422, "invalid_messages", "messages"),
    "no open call": ({"messages": [result("c1")]}, 422, "invalid_messages", "messages[0]"),
    "n": ({"n": 2}, 422, "invalid_parameter", "n"),
    "n true": ({"n": "1"}, 422, "invalid_parameter", "n"),
    "functions": ({"functions": []}, 422, "invalid_parameter", "functions"),
    "sound": ({"modalities": ["text", "audio"]}, 422, "invalid_parameter", "modalities"),
    "stream": ({"stream": "yes"}, 422, "invalid_parameter", "stream"),
    "budget": ({"max_context_tokens": 0}, 422, "invalid_parameter", None),
    "model": ({"model": "x" * 201}, 422, "invalid_parameter", None),
    "small": ({"max_context_tokens": 1}, 422, "budget_too_small", "max_context_tokens"),
    "number": ({"session_id": 7}, 422, "invalid_session_id", None),
    "empty id": ({"session_id": ""}, 422, "invalid_session_id", None),
    "long id": ({"session_id": "x" * 257}, 422, "invalid_session_id", None),
    "control": ({"session_id": "a\nb"}, 422, "invalid_session_id", None),
}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_requests_are_refused_unpaid(
    api: Api, session: Session, fake: FakeOpenAI, name: str
) -> None:
    members, status, code, parameter = WRONG[name]
    body = {"model": "talker", "messages": [question()], "session_id": session.id, **members}
    error = api("POST", PATH, body).openai_error(status, code)
    assert error["param"] == parameter
    assert error["type"] == "invalid_request_error"
    assert fake.requests() == []
    session("GET").problem(404, "session_not_found")


@pytest.mark.usefixtures("model")
def test_a_header_names_one_session_in_ascii(api: Api, session: Session) -> None:
    for name in ("", "é", "a\x7f", "x" * 257):
        answer = api("POST", PATH, {"messages": [question()]}, x_session_id=name)
        answer.openai_error(422, "invalid_session_id")
    other = complete(api, question(), session=session, session_id="other")
    other.openai_error(422, "invalid_session_id")


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[]", b'"x"', b"{}", b"[" * 5000])
def test_bodies_of_any_kind_are_answered_in_openais_shape(api: Api, raw: bytes) -> None:
    answer = api("POST", PATH, raw=raw, x_session_id="s")
    assert answer.status in (400, 422)
    assert answer.body["error"]["message"]


def test_every_order_of_odd_messages_gets_an_answer(
    api: Api, model: Turnfold, fake: FakeOpenAI
) -> None:
    kinds = [
        question(),
        {"role": "system", "content": "x"},
        {"role": "assistant", "content": ""},
        calling("c1"),
        result("c1"),
        {"role": "user", "content": None},
        7,
    ]
    assert model.completions is not None
    for number, messages in enumerate(itertools.product(kinds, repeat=3)):
        answer = complete(api, *messages, session=api.session(f"odd-{number % 5}"))  # type: ignore[arg-type] # one is no object
        assert answer.status in (200, 422), answer.text
    assert len(fake.requests()) < 343
