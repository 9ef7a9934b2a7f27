"""Chat completions passed through: the real client against a real server on loopback."""

from __future__ import annotations

import math
import threading
import traceback
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_completions import calling, spoken
from support.fake_openai import FakeOpenAI, Rule, chunk, start
from turnfold.adapters.openai_passthrough import OpenAIPassthrough
from turnfold.domain.completions import Assembly
from turnfold.domain.errors import (
    ModelFailedError,
    ModelNotConfiguredError,
    ModelRefusedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY = "sk-secret-0123456789"
TALK = "zebra-conversation-text"
BODY: dict[str, Any] = {
    "model": "talker",
    "messages": [{"role": "user", "content": TALK, "odd": None}],
    "temperature": 0,
    "max_tokens": 5,
    "n": 3,
    "tools": [],
    "response_format": {"type": "text"},
    "unknown": {"deep": [1, 2.5, None, "é\u2028"]},
}
NOT_TEXT: dict[str, Rule] = {
    "not json": Rule(body=b"<html>"),
    "a list": Rule(body=[1]),
    "server error": Rule(status=500, body={"error": {"message": f"{TALK} {KEY}"}}),
    "bad gateway": Rule(status=502, body=b"<html>"),
    "our key": Rule(status=401, body={"error": {"message": f"Incorrect key {KEY}"}}),
    "not allowed": Rule(status=403, body={"error": {"message": KEY}}),
    "gone": Rule(hang_up=True),
}
ASKING: dict[str, Callable[[OpenAIPassthrough], object]] = {
    "complete": lambda model: model.complete(BODY),
    "stream": lambda model: list(model.stream({**BODY, "stream": True})),
    "models": lambda model: model.models(),
}


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    with start() as fake:
        yield fake


@pytest.fixture
def fake(server: FakeOpenAI) -> FakeOpenAI:
    server.clear()
    return server


def passthrough(url: str, seconds: float = 10.0) -> OpenAIPassthrough:
    return OpenAIPassthrough(lambda: KEY, base_url=url, seconds=seconds, default_model="usual")


@pytest.fixture
def model(fake: FakeOpenAI) -> OpenAIPassthrough:
    return passthrough(fake.url)


def shown(error: BaseException) -> str:
    """The error as a log with full traceback would show it."""
    return "".join(traceback.format_exception(error))


def test_requests_and_answers_pass_as_they_are(fake: FakeOpenAI, model: OpenAIPassthrough) -> None:
    answer = {"choices": [], "odd": [None, 1.0, "é"], "id": "x"}
    fake.script(Rule(body=answer))
    assert model.complete(BODY) == answer
    asked = fake.requests()[-1]
    assert asked.body == BODY
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"


def test_only_a_missing_model_is_filled_in(fake: FakeOpenAI, model: OpenAIPassthrough) -> None:
    model.complete({"messages": [{"role": "user", "content": "hi"}]})
    assert fake.requests()[-1].body["model"] == "usual"


def test_models_pass(model: OpenAIPassthrough) -> None:
    assert [one["id"] for one in model.models()["data"]] == ["talker"]


@pytest.mark.parametrize("message", [spoken("Two words "), calling("c1", "c2")])
def test_a_stream_passes_chunk_by_chunk(
    fake: FakeOpenAI, model: OpenAIPassthrough, message: dict[str, Any]
) -> None:
    fake.script(Rule(message=message, finish_reason="stop"))
    whole = Assembly()
    for one in model.stream({**BODY, "stream": True}):
        assert one["object"] == "chat.completion.chunk"
        whole.add(one)
    assert whole.finished
    said = whole.completion()["choices"][0]["message"]
    assert said["content"] == message["content"] or message["content"] is None
    assert said.get("tool_calls") == message.get("tool_calls")
    assert fake.requests()[-1].body == {**BODY, "stream": True}


def test_chunks_come_while_the_model_still_speaks(
    fake: FakeOpenAI, model: OpenAIPassthrough
) -> None:
    go_on = threading.Event()
    fake.script(Rule(text="one two", before_chunk=lambda number: number < 2 or go_on.wait(20)))
    chunks = model.stream({**BODY, "stream": True})
    first = [next(chunks), next(chunks)]
    assert first[1]["choices"][0]["delta"] == {"content": "one "}
    go_on.set()
    assert list(chunks)[-1]["choices"][0]["finish_reason"] == "stop"


def test_a_stream_that_is_closed_ends_the_request(
    fake: FakeOpenAI, model: OpenAIPassthrough
) -> None:
    endless = (chunk({"content": "x" * 1000}) for _ in iter(int, 1))
    rule = Rule(chunks=endless)
    fake.script(rule)
    chunks = model.stream({**BODY, "stream": True})
    next(chunks)
    chunks.close()
    assert rule.left.wait(20)


@pytest.mark.parametrize("rule", NOT_TEXT)
@pytest.mark.parametrize("how", ASKING)
def test_failures_quote_nobody(
    fake: FakeOpenAI, model: OpenAIPassthrough, rule: str, how: str
) -> None:
    before = len(fake.requests())
    fake.script(NOT_TEXT[rule])
    NOT_TEXT[rule].times = 1
    with pytest.raises(ModelFailedError) as caught:
        ASKING[how](model)
    assert not isinstance(caught.value, ModelRefusedError)
    assert caught.value.status == (NOT_TEXT[rule].status if NOT_TEXT[rule].status != 200 else None)
    passing = rule in ("server error", "bad gateway", "gone")
    assert caught.value.passing == passing
    assert TALK not in shown(caught.value)
    assert KEY not in shown(caught.value)
    assert len(fake.requests()) == before + 1


@pytest.mark.parametrize("status", [400, 404, 413, 422, 429])
@pytest.mark.parametrize("streams", [True, False])
def test_what_is_said_about_a_request_is_for_its_caller_alone(
    fake: FakeOpenAI, model: OpenAIPassthrough, status: int, *, streams: bool
) -> None:
    said = {
        "message": f"{TALK} is no good, and {KEY}",
        "type": "invalid_request_error",
        "code": "bad_word",
        "param": "messages",
    }
    fake.script(Rule(status=status, body={"error": said}, headers={"Retry-After": "7"}))
    with pytest.raises(ModelRefusedError) as caught:
        ASKING["stream" if streams else "complete"](model)
    refusal = caught.value.refusal
    assert refusal.message == f"{TALK} is no good, and ***"
    assert (refusal.code, refusal.param) == ("bad_word", "messages")
    assert (refusal.kind, refusal.retry_after) == ("invalid_request_error", "7")
    assert caught.value.status == status
    assert TALK not in shown(caught.value)
    assert KEY not in shown(caught.value)


def test_a_refusal_without_words_still_says_something(
    fake: FakeOpenAI, model: OpenAIPassthrough
) -> None:
    fake.script(Rule(status=400, body=b"no"))
    with pytest.raises(ModelRefusedError) as caught:
        model.complete(BODY)
    assert caught.value.refusal.message
    assert caught.value.refusal.code is None


@pytest.mark.parametrize(
    "body",
    [
        {"error": "too long"},
        {"detail": "too long"},
        {"object": "error", "message": "too long"},
        [{"error": {"message": "too long", "code": 400}}],
    ],
)
def test_other_forms_of_a_refusal_keep_their_words(
    fake: FakeOpenAI, model: OpenAIPassthrough, body: Any
) -> None:
    fake.script(Rule(status=400, body=body))
    with pytest.raises(ModelRefusedError) as caught:
        model.complete(BODY)
    assert caught.value.refusal.message == "too long"


@pytest.mark.parametrize("body", [{"error": None}, {"detail": [{"msg": "x"}]}, [], [7], {}])
def test_refusals_of_any_shape_say_something(
    fake: FakeOpenAI, model: OpenAIPassthrough, body: Any
) -> None:
    fake.script(Rule(status=422, body=body))
    with pytest.raises(ModelRefusedError) as caught:
        model.complete(BODY)
    assert isinstance(caught.value.refusal.message, str)
    assert caught.value.refusal.message


@pytest.mark.parametrize("rule", [Rule(seconds=3), Rule(drip=0.05, text="slow")])
def test_an_answer_has_to_come_in_time(fake: FakeOpenAI, rule: Rule) -> None:
    fake.script(rule)
    with pytest.raises(ModelFailedError, match="in time"):
        passthrough(fake.url, seconds=0.8).complete(BODY)


def test_a_stream_has_to_end_in_time(fake: FakeOpenAI) -> None:
    go_on = threading.Event()
    fake.script(Rule(text="one two", before_chunk=lambda number: number < 2 or go_on.wait(20)))
    chunks = passthrough(fake.url, seconds=0.8).stream({**BODY, "stream": True})
    with pytest.raises(ModelFailedError, match="in time"):
        list(chunks)
    go_on.set()


@pytest.mark.parametrize(
    "rule",
    [
        Rule(cut_after=2),
        Rule(chunks=[chunk({"content": "x"}), {"error": {"message": TALK, "code": 500}}]),
        Rule(chunks=[]),
        Rule(chunks=[{"choices": "\ud800"}, {"a": "odd"}, {}], cut_after=2),
        Rule(chunks=[{**chunk({"content": "x"}), "logprobs": math.nan}]),
    ],
    ids=["cut", "error inside", "nothing", "odd", "no number"],
)
def test_a_stream_that_breaks_off_says_so(
    fake: FakeOpenAI, model: OpenAIPassthrough, rule: Rule
) -> None:
    fake.script(rule)
    with pytest.raises(ModelFailedError) as caught:
        list(model.stream({**BODY, "stream": True}))
    assert TALK not in shown(caught.value)


def test_the_tokens_of_a_stream_are_counted_if_the_server_can(
    fake: FakeOpenAI, model: OpenAIPassthrough
) -> None:
    asked = {**BODY, "stream": True, "stream_options": {"odd": 1}}
    chunks = list(model.stream(asked, with_usage=True))
    assert chunks[-1]["usage"]["prompt_tokens"] == 11
    assert fake.requests()[-1].body["stream_options"] == {"odd": 1, "include_usage": True}
    complaint = {"error": {"message": "Unknown parameter: stream_options", "param": None}}
    fake.script(Rule(match="include_usage", status=400, body=complaint))
    assert list(model.stream({**BODY, "stream": True}, with_usage=True))
    assert fake.requests()[-1].body == {**BODY, "stream": True}


def test_a_key_that_cannot_be_had_keeps_its_error(fake: FakeOpenAI) -> None:
    def no_key() -> str:
        raise ModelNotConfiguredError("no key")

    model = OpenAIPassthrough(no_key, base_url=fake.url, seconds=5, default_model="m")
    for ask in (model.complete, model.stream, lambda _body: model.models()):
        with pytest.raises(ModelNotConfiguredError):
            ask(BODY)
