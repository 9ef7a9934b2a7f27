"""The OpenAI-compatible door of the local stack, with the official client."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest

from integration.local_stack import REPOSITORY, RunningStack
from support.fake_completions import calling, result
from support.fake_openai import FakeOpenAI, Rule, chunk

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.ministack

PATIENCE = 20


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture(scope="module")
def stack(fake: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    running = RunningStack(
        tmp_path_factory.mktemp("stack"),
        TURNFOLD_FUNCTIONS=str(REPOSITORY / "functions"),
        TURNFOLD_TEMPLATE=str(REPOSITORY / "template.yaml"),
        OPENAI_API_KEY="any",
        OPENAI_BASE_URL=fake.url,
    )
    try:
        yield running.wait_until_ready()
    finally:
        running.stop()


@pytest.fixture
def http(stack: RunningStack) -> Iterator[httpx.Client]:
    key = {"Authorization": "Bearer local"}
    with httpx.Client(base_url=stack.url, headers=key, timeout=PATIENCE, trust_env=False) as one:
        yield one


@pytest.fixture
def session() -> str:
    return f"s-{uuid.uuid4().hex}"


@pytest.fixture
def client(stack: RunningStack, session: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{stack.url}/v1",
        api_key="local",
        default_headers={"X-Session-Id": session},
        max_retries=0,
        timeout=PATIENCE,
    ) as one:
        yield one


def turns(http: httpx.Client, session: str) -> int:
    answer = http.get(f"/v1/sessions/{session}")
    return 0 if answer.status_code == 404 else int(answer.json()["turns"])


def ask(text: str) -> Any:
    return [{"role": "user", "content": text}]


def test_the_official_client_remembers(
    client: openai.OpenAI, fake: FakeOpenAI, http: httpx.Client, session: str
) -> None:
    fake.script(Rule(match="We leave", text="Noted."), Rule(match="When", text="On Friday."))
    said = client.chat.completions.create(model="talker", messages=ask("We leave on Friday."))
    assert said.choices[0].message.content == "Noted."
    raw = client.chat.completions.with_raw_response.create(model="talker", messages=ask("When?"))
    assert raw.parse().choices[0].message.content == "On Friday."
    assert raw.headers["idempotency-key"]
    texts = [one["content"] for one in fake.requests("When?")[-1].body["messages"]]
    assert texts == ["We leave on Friday.", "Noted.", "When?"]
    assert turns(http, session) == 2
    assert [one.id for one in client.models.list()] == ["talker"]


def test_a_stream_comes_in_pieces_while_the_model_speaks(
    client: openai.OpenAI, fake: FakeOpenAI, http: httpx.Client, session: str
) -> None:
    go_on = threading.Event()
    fake.script(
        Rule(
            match="Tell me",
            text="Once upon a time.",
            before_chunk=lambda number: number < 2 or go_on.wait(PATIENCE),
        )
    )
    with client.chat.completions.create(
        model="talker",
        messages=ask("Tell me."),
        stream=True,
        stream_options={"include_usage": True},
    ) as stream:
        pieces = iter(stream)
        first = [next(pieces), next(pieces)]
        # The model has not said more yet, so this has come by itself.
        assert [one.choices[0].delta.content for one in first] == ["", "Once "]
        assert turns(http, session) == 0
        go_on.set()
        rest = list(pieces)
    assert "".join(one.choices[0].delta.content or "" for one in rest if one.choices) == (
        "upon a time."
    )
    assert rest[-1].usage is not None
    # Committed before the stream's end was sent.
    assert turns(http, session) == 1


def test_a_client_that_leaves_midway_leaves_nothing_behind(
    client: openai.OpenAI, fake: FakeOpenAI, http: httpx.Client, session: str
) -> None:
    left = threading.Event()

    def endless() -> Iterator[dict[str, Any]]:
        yield chunk({"role": "assistant", "content": "Half an "})
        left.wait(PATIENCE)
        while True:
            yield chunk({"content": "answer " * 50})

    rule = Rule(match="Leave", chunks=endless())
    fake.script(rule)
    with client.chat.completions.create(
        model="talker", messages=ask("Leave."), stream=True
    ) as stream:
        assert next(iter(stream)).choices[0].delta.content == "Half an "
    left.set()
    # The model's stream is ended from here, which only happens once the client is given up.
    assert rule.left.wait(PATIENCE)
    for _ in range(8):  # more than there are environments: each of them is free again
        assert turns(http, session) == 0
    fake.script(Rule(match="Once more", text="Whole."))
    client.chat.completions.create(model="talker", messages=ask("Once more."))
    assert turns(http, session) == 1


def test_a_stream_that_breaks_off_is_an_error_for_the_client(
    client: openai.OpenAI, fake: FakeOpenAI, http: httpx.Client, session: str
) -> None:
    fake.script(Rule(match="Break", text="One two three.", cut_after=3))
    stream = client.chat.completions.create(model="talker", messages=ask("Break."), stream=True)
    with pytest.raises(openai.APIError) as caught:
        list(stream)
    assert caught.value.code == "model_failed"
    assert turns(http, session) == 0


def test_a_failure_before_the_first_piece_has_its_status(
    client: openai.OpenAI, fake: FakeOpenAI
) -> None:
    fake.script(Rule(match="Busy", status=429, body=b"", headers={"Retry-After": "3"}))
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model="talker", messages=ask("Busy?"), stream=True)
    assert caught.value.response.headers["retry-after"] == "3"
    fake.script(Rule(match="Odd", status=400, body={"error": {"message": "odd", "param": "seed"}}))
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="talker", messages=ask("Odd?"), seed=1)
    assert refused.value.param == "seed"


def test_a_passing_failure_is_tried_again_by_the_client(
    client: openai.OpenAI, fake: FakeOpenAI, http: httpx.Client, session: str
) -> None:
    fake.script(Rule(match="Flaky", status=503, body=b""), Rule(match="Flaky", text="Back."))
    patient = client.with_options(max_retries=1)
    said = patient.chat.completions.create(model="talker", messages=ask("Flaky?"))
    assert said.choices[0].message.content == "Back."
    assert turns(http, session) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_an_agent_runs_its_loop(
    client: openai.OpenAI, fake: FakeOpenAI, http: httpx.Client, session: str, *, stream: bool
) -> None:
    """With the whole history each time, as the client's own helpers send it."""
    word = f"look-{stream}"
    # What is judged in the background would take an answer that is meant for the client.
    settings = {"settings": {"pin_mode": "off"}}
    assert http.put(f"/v1/sessions/{session}", json=settings).status_code == 201
    fake.script(
        Rule(match=word, message=calling(f"c-{word}"), finish_reason="tool_calls"),
        Rule(match=word, text="It is 42."),
        Rule(match=word, text="You are welcome."),
    )
    messages: list[Any] = ask(word)

    def one_step() -> Any:
        if not stream:
            whole = client.chat.completions.create(model="talker", messages=messages)
            return whole.choices[0].message
        with client.chat.completions.stream(model="talker", messages=messages) as events:
            return events.get_final_completion().choices[0].message

    reply = one_step()
    assert reply.tool_calls[0].function.arguments == '{"at": 1}'
    messages += [reply.to_dict(), result(f"c-{word}")]
    assert turns(http, session) == 0
    reply = one_step()
    messages += [reply.to_dict(), {"role": "user", "content": "Thanks!"}]
    assert turns(http, session) == 1
    assert one_step().content == "You are welcome."
    assert turns(http, session) == 2
    roles = [one["role"] for one in fake.requests(word)[-1].body["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
