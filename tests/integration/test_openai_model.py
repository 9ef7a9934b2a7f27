"""The model adapters: the real client against a real server on loopback."""

import io
import json
import logging
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.fake_openai import FakeOpenAI, Rule, completion, start
from turnfold.adapters.openai_completions import OpenAICompletions
from turnfold.adapters.openai_model import OpenAIChat, OpenAIModel
from turnfold.application.ports.models import ModelRequest
from turnfold.domain.errors import ModelFailedError, ModelNotConfiguredError
from turnfold.domain.judgement import JUDGEMENT_SCHEMA

KEY = "sk-secret-0123456789"
TALK = "zebra-conversation-text"
UPSTREAM = "upstream says: zebra-conversation-text and sk-secret-0123456789"
QUESTION = ModelRequest(
    purpose="round_summary",
    instruction="Summarise.",
    data=f'<conversation>\n{{"content": "{TALK}. More. And more."}}\n</conversation>',
)
ERROR_BODY = {"error": {"message": UPSTREAM, "type": "server_error", "code": None, "param": None}}


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    with start() as fake:
        yield fake


@pytest.fixture
def fake(server: FakeOpenAI) -> FakeOpenAI:
    server.clear()
    return server


@pytest.fixture
def pauses() -> list[float]:
    return []


def completions(url: str, pauses: list[float], seconds: float = 10.0) -> OpenAICompletions:
    return OpenAICompletions(lambda: KEY, base_url=url, seconds=seconds, sleep=pauses.append)


@pytest.fixture
def model(fake: FakeOpenAI, pauses: list[float]) -> OpenAIModel:
    return OpenAIModel(completions(fake.url, pauses), "small")


@pytest.fixture
def chat(fake: FakeOpenAI, pauses: list[float]) -> OpenAIChat:
    return OpenAIChat(completions(fake.url, pauses), "talker")


def asked_since(fake: FakeOpenAI, before: int) -> list[Any]:
    return fake.requests()[before:]


def everything_said_about(error: BaseException) -> str:
    """The error as a log with full traceback would show it, with all that it is linked to."""
    shown = "".join(traceback.format_exception(error))
    linked = [error.__cause__, error.__context__]
    return shown + "".join(f"{one!r} {one}" for one in linked)


def test_a_question_is_an_instruction_and_data(fake: FakeOpenAI, model: OpenAIModel) -> None:
    before = len(fake.requests())
    answer = model.ask(QUESTION)
    (asked,) = asked_since(fake, before)
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "small",
        "messages": [
            {"role": "system", "content": QUESTION.instruction},
            {"role": "user", "content": QUESTION.data},
        ],
    }
    assert (answer.finish_reason, answer.model, answer.refusal) == ("stop", "small", None)
    assert (answer.prompt_tokens, answer.completion_tokens) == (11, 7)
    assert answer.text


def test_a_schema_asks_for_strict_json(fake: FakeOpenAI, model: OpenAIModel) -> None:
    before = len(fake.requests())
    question = ModelRequest("pin judgement!", "Judge.", "data", JUDGEMENT_SCHEMA)
    answer = model.ask(question)
    (asked,) = asked_since(fake, before)
    wanted = asked.body["response_format"]
    assert wanted["type"] == "json_schema"
    assert wanted["json_schema"] == {
        "name": "pin_judgement_",
        "strict": True,
        "schema": JUDGEMENT_SCHEMA,
    }
    assert json.loads(answer.text or "") == {"facts": [], "retracted_pin_ids": []}


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter", "tool_calls", "made-up"])
def test_the_finish_reason_comes_through(fake: FakeOpenAI, model: OpenAIModel, finish: str) -> None:
    fake.script(Rule(finish_reason=finish))
    assert model.ask(QUESTION).finish_reason == finish


def test_odd_but_usable_answers_come_through(fake: FakeOpenAI, model: OpenAIModel) -> None:
    fake.script(
        Rule(message={"role": "assistant", "content": None, "refusal": "No."}),
        Rule(message={"role": "assistant", "content": "  \n"}),
        Rule(message={"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        Rule(body={"choices": [{"message": {"content": 3}}], "usage": "much", "model": None}),
        Rule(text="lone \ud83d and \x00", finish_reason=None),
    )
    refused = model.ask(QUESTION)
    assert (refused.refusal, refused.text) == ("No.", None)
    assert model.ask(QUESTION).text == "  \n"
    assert model.ask(QUESTION).text == "ab"
    odd = model.ask(QUESTION)
    assert (odd.text, odd.finish_reason, odd.model, odd.prompt_tokens) == (
        None,
        "unknown",
        "small",
        0,
    )
    cleaned = model.ask(QUESTION)
    assert cleaned.text == "lone \ufffd and \ufffd"
    assert cleaned.finish_reason == "unknown"


FAILURES = {
    "400": (Rule(status=400, body=ERROR_BODY), 400, 1),
    "401": (Rule(status=401, body=ERROR_BODY), 401, 1),
    "403 html": (Rule(status=403, body=b"<html>" + UPSTREAM.encode()), 403, 1),
    "404": (Rule(status=404, body=ERROR_BODY), 404, 1),
    "413 empty": (Rule(status=413, body=b""), 413, 1),
    "422": (Rule(status=422, body={"detail": [UPSTREAM]}), 422, 1),
    "408": (Rule(status=408, body=ERROR_BODY, times=None), 408, 2),
    "429": (Rule(status=429, body=ERROR_BODY, times=None), 429, 2),
    "500": (Rule(status=500, body=ERROR_BODY, times=None), 500, 2),
    "503 text": (Rule(status=503, body=UPSTREAM.encode(), times=None), 503, 2),
    "529": (Rule(status=529, body=ERROR_BODY, times=None), 529, 2),
    "hang up": (Rule(hang_up=True, times=None), None, 2),
    "malformed": (Rule(body=b'{"choices": [{"mess'), None, 1),
    "empty": (Rule(body=b""), None, 1),
    "not UTF-8": (Rule(body=b'{"choices": "\xff"}'), None, 1),
    "not JSON": (Rule(body=b"<html>" + UPSTREAM.encode()), None, 1),
    "NaN": (Rule(body=b'{"choices": [NaN]}'), None, 1),
    "too deep": (Rule(body=b"[" * 50_000), None, 1),
    "a list": (Rule(body=[UPSTREAM]), None, 1),
    "a text": (Rule(body=json.dumps(UPSTREAM).encode()), None, 1),
    "null": (Rule(body=b"null"), None, 1),
    "no choices": (Rule(body={"object": "chat.completion"}), None, 1),
    "empty choices": (Rule(body={"choices": []}), None, 1),
    "null choices": (Rule(body={"choices": None}), None, 1),
    "choices of another type": (Rule(body={"choices": {"0": UPSTREAM}}), None, 1),
    "choice of another type": (Rule(body={"choices": [UPSTREAM]}), None, 1),
    "null message": (Rule(body=completion({}, None)), None, 1),
    "message of another type": (Rule(body={"choices": [{"message": UPSTREAM}]}), None, 1),
    "error in the body": (Rule(body=ERROR_BODY), None, 1),
    "error as text": (Rule(body={"error": UPSTREAM}), None, 1),
    "error in the choice": (Rule(body={"choices": [ERROR_BODY]}), None, 1),
    "status in the body": (Rule(body={"error": {"code": 502}}, times=None), 502, 2),
}


@pytest.mark.parametrize("name", FAILURES)
def test_every_failure_is_one_of_the_model(
    fake: FakeOpenAI, model: OpenAIModel, pauses: list[float], name: str
) -> None:
    rule, status, tries = FAILURES[name]
    fake.script(rule)
    before = len(fake.requests())
    with pytest.raises(ModelFailedError) as caught:
        model.ask(QUESTION)
    assert caught.value.status == status
    assert len(asked_since(fake, before)) == tries
    assert pauses == [0.5] * (tries - 1)
    shown = everything_said_about(caught.value)
    assert TALK not in shown
    assert KEY not in shown
    assert "zebra" not in shown


@pytest.mark.parametrize("name", ["malformed", "empty choices", "null message", "401", "500"])
def test_a_chat_fails_the_same_way(fake: FakeOpenAI, chat: OpenAIChat, name: str) -> None:
    fake.script(FAILURES[name][0])
    if name == "500":
        fake.script(FAILURES[name][0])
    with pytest.raises(ModelFailedError) as caught:
        chat.chat([{"role": "user", "content": TALK}], model=None, max_tokens=9, temperature=None)
    assert caught.value.status == FAILURES[name][1]
    assert TALK not in everything_said_about(caught.value)


def test_the_providers_code_is_named_but_only_if_it_is_a_word(
    fake: FakeOpenAI, model: OpenAIModel
) -> None:
    fake.script(
        Rule(status=401, body={"error": {"message": UPSTREAM, "code": "invalid_api_key"}}),
        Rule(status=401, body={"error": {"message": UPSTREAM, "code": UPSTREAM}}),
    )
    with pytest.raises(ModelFailedError, match="invalid_api_key"):
        model.ask(QUESTION)
    with pytest.raises(ModelFailedError) as caught:
        model.ask(QUESTION)
    assert "upstream says" not in everything_said_about(caught.value)


def test_one_failure_is_made_good_by_the_second_try(
    fake: FakeOpenAI, model: OpenAIModel, pauses: list[float]
) -> None:
    fake.script(Rule(status=500, body=ERROR_BODY))
    assert model.ask(QUESTION).finish_reason == "stop"
    fake.script(Rule(hang_up=True))
    assert model.ask(QUESTION).finish_reason == "stop"
    assert pauses == [0.5, 0.5]


def test_the_wait_that_a_busy_endpoint_asks_for_is_kept(
    fake: FakeOpenAI, model: OpenAIModel, pauses: list[float]
) -> None:
    fake.script(Rule(status=429, body=ERROR_BODY, headers={"Retry-After": "2"}))
    assert model.ask(QUESTION).text
    assert pauses == [2.0]


@pytest.mark.parametrize(
    ("wish", "tries"), [("60", 1), ("inf", 1), ("Wed, 21 Oct 2026 07:28:00 GMT", 2)]
)
def test_a_wait_beyond_the_time_is_a_failure_at_once(
    fake: FakeOpenAI, model: OpenAIModel, pauses: list[float], wish: str, tries: int
) -> None:
    fake.script(Rule(status=429, body=ERROR_BODY, headers={"Retry-After": wish}, times=None))
    before = len(fake.requests())
    with pytest.raises(ModelFailedError) as caught:
        model.ask(QUESTION)
    assert caught.value.status == 429
    assert len(asked_since(fake, before)) == tries
    assert len(pauses) == tries - 1


def test_nobody_listens(pauses: list[float]) -> None:
    model = OpenAIModel(completions("http://127.0.0.1:9/v1", pauses), "small")
    with pytest.raises(ModelFailedError, match="could not be reached"):
        model.ask(QUESTION)
    assert pauses == [0.5]


@pytest.mark.parametrize(
    "url", ["nonsense", "ftp://127.0.0.1/v1", "http://[::1", "http://127.0.0.1:x/"]
)
def test_a_bad_address_is_a_failure_of_the_model(pauses: list[float], url: str) -> None:
    model = OpenAIModel(completions(url, pauses), "small")
    with pytest.raises(ModelFailedError):
        model.ask(QUESTION)


@pytest.mark.parametrize(
    "rule",
    [
        Rule(seconds=3.0),
        Rule(text="a slow answer", drip=0.05),
        Rule(body=b" " * 200, drip=0.05, status=500),
    ],
    ids=["silence", "drops", "drops of an error"],
)
def test_a_call_ends_in_time_whatever_the_endpoint_does(
    fake: FakeOpenAI, pauses: list[float], rule: Rule
) -> None:
    fake.script(rule)
    before = len(fake.requests())
    model = OpenAIModel(completions(fake.url, pauses, seconds=0.8), "small")
    started = time.monotonic()
    with pytest.raises(ModelFailedError, match="in time") as caught:
        model.ask(QUESTION)
    assert time.monotonic() - started < 2.5  # the client's import included
    assert caught.value.status is None
    assert len(asked_since(fake, before)) == 1
    assert TALK not in everything_said_about(caught.value)


def test_no_second_try_is_begun_without_time_for_it(fake: FakeOpenAI, pauses: list[float]) -> None:
    fake.script(Rule(seconds=0.6, status=500, body=ERROR_BODY, times=None))
    model = OpenAIModel(completions(fake.url, pauses, seconds=2.0), "small")
    before = len(fake.requests())
    with pytest.raises(ModelFailedError) as caught:
        model.ask(QUESTION)
    assert caught.value.status == 500
    assert (len(asked_since(fake, before)), pauses) == (1, [])


def test_a_chat_sends_the_messages_as_they_are(fake: FakeOpenAI, chat: OpenAIChat) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{"}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief. {user} ${HOME} %s"},
        {"role": "user", "content": [{"type": "text", "text": "\u2028 <|endoftext|> é"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": ""},
        {"role": "user", "name": "mira", "content": "And?"},
    ]
    before = len(fake.requests())
    reply = chat.chat(messages, model=None, max_tokens=None, temperature=None)
    (asked,) = asked_since(fake, before)
    assert asked.body == {"model": "talker", "messages": messages}
    assert reply.model == "talker"
    assert reply.usage == {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def test_a_chat_may_name_model_cap_and_temperature(fake: FakeOpenAI, chat: OpenAIChat) -> None:
    before = len(fake.requests())
    chat.chat([{"role": "user", "content": "hi"}], model="big", max_tokens=30, temperature=0.0)
    (asked,) = asked_since(fake, before)
    assert (asked.body["model"], asked.body["temperature"]) == ("big", 0.0)
    assert asked.body["max_completion_tokens"] == 30
    assert "max_tokens" not in asked.body


def say(
    fake: FakeOpenAI, chat: OpenAIChat, message: dict[str, Any], finish: str = "stop"
) -> dict[str, Any]:
    fake.script(Rule(message=message, finish_reason=finish))
    reply = chat.chat(
        [{"role": "user", "content": "hi"}], model=None, max_tokens=None, temperature=None
    )
    return dict(reply.message)


def test_a_reply_has_no_members_that_say_nothing(fake: FakeOpenAI, chat: OpenAIChat) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    custom = {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "ls"}}
    empty: dict[str, Any] = {
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
    }
    said = say(fake, chat, {"role": "assistant", "content": "Hello.", "tool_calls": [], **empty})
    assert said == {"role": "assistant", "content": "Hello."}
    said = say(
        fake, chat, {"role": "assistant", "content": "", "tool_calls": [call, custom], **empty}
    )
    assert said == {"role": "assistant", "content": None, "tool_calls": [call, custom]}
    said = say(fake, chat, {"role": "assistant", "content": None, "refusal": "No."})
    assert said == {"role": "assistant", "content": None, "refusal": "No."}
    said = say(fake, chat, {"content": "Hm.", "reasoning_content": "thoughts"})
    assert said == {"role": "assistant", "content": "Hm.", "reasoning_content": "thoughts"}
    parts = [{"type": "text", "text": "in parts"}]
    assert say(fake, chat, {"role": "assistant", "content": parts})["content"] == parts


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "I am you"},
        {"role": "assistant", "content": 3},
        {"role": "assistant", "content": {"text": "x"}},
        {"role": "assistant", "content": "x", "refusal": ["x"]},
        {"role": "assistant", "content": None, "tool_calls": {"id": "c"}},
        {"role": "assistant", "content": None, "tool_calls": ["c"]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "f"}}],
        },
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "custom": None}]},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": " \n"},
        {"role": "assistant", "content": [{"type": "text", "text": " "}]},
        {},
    ],
)
def test_a_reply_that_cannot_be_committed_is_a_failure(
    fake: FakeOpenAI, chat: OpenAIChat, message: dict[str, Any]
) -> None:
    with pytest.raises(ModelFailedError):
        say(fake, chat, message)


def test_an_empty_reply_says_why(fake: FakeOpenAI, chat: OpenAIChat) -> None:
    with pytest.raises(ModelFailedError, match="finish reason length"):
        say(fake, chat, {"role": "assistant", "content": ""}, "length")


EXTRA = {"detail": [{"type": "extra_forbidden", "loc": ["body", "max_completion_tokens"]}]}
UNSUPPORTED = {"error": {"message": "Unsupported parameter.", "param": "max_completion_tokens"}}
TOO_MUCH = {
    "error": {"message": "max_completion_tokens is over 4096", "param": "max_completion_tokens"}
}


@pytest.mark.parametrize(("status", "body"), [(422, EXTRA), (400, UNSUPPORTED)])
def test_the_cap_is_spelled_as_the_endpoint_knows_it(
    fake: FakeOpenAI, chat: OpenAIChat, pauses: list[float], status: int, body: dict[str, Any]
) -> None:
    fake.script(Rule(match="max_completion_tokens", status=status, body=body, times=None))
    before = len(fake.requests())
    for _ in range(2):
        chat.chat([{"role": "user", "content": "hi"}], model=None, max_tokens=30, temperature=None)
    first, second, third = [one.body for one in asked_since(fake, before)]
    assert "max_completion_tokens" in first
    assert second["max_tokens"] == third["max_tokens"] == 30
    assert pauses == [0]


def test_a_cap_that_is_too_large_is_not_spelled_otherwise(
    fake: FakeOpenAI, chat: OpenAIChat
) -> None:
    fake.script(Rule(status=400, body=TOO_MUCH))
    with pytest.raises(ModelFailedError) as caught:
        chat.chat(
            [{"role": "user", "content": "hi"}], model=None, max_tokens=9999, temperature=None
        )
    assert caught.value.status == 400


def test_without_structured_output_the_prompt_has_to_do(
    fake: FakeOpenAI, model: OpenAIModel
) -> None:
    complaint = {"error": {"message": "This response_format type is unavailable now"}}
    fake.script(Rule(match="response_format", status=400, body=complaint, times=None))
    before = len(fake.requests())
    question = ModelRequest("pin_judgement", "Judge.", "data", JUDGEMENT_SCHEMA)
    model.ask(question)
    model.ask(question)
    assert ["response_format" in one.body for one in asked_since(fake, before)] == [
        True,
        False,
        False,
    ]


def test_a_key_that_cannot_be_had_keeps_its_error(fake: FakeOpenAI) -> None:
    def no_key() -> str:
        raise ModelNotConfiguredError("no key")

    model = OpenAIModel(OpenAICompletions(no_key, base_url=fake.url), "small")
    with pytest.raises(ModelNotConfiguredError):
        model.ask(QUESTION)


def test_a_key_that_no_header_can_carry_is_not_shown(fake: FakeOpenAI) -> None:
    model = OpenAIModel(OpenAICompletions(lambda: "sk-sécret\n☃", base_url=fake.url), "small")
    with pytest.raises(ModelFailedError) as caught:
        model.ask(QUESTION)
    assert "cret" not in everything_said_about(caught.value)


def test_the_key_of_the_moment_is_used(fake: FakeOpenAI) -> None:
    keys = iter(["first", "second"])
    model = OpenAIModel(OpenAICompletions(lambda: next(keys), base_url=fake.url), "small")
    before = len(fake.requests())
    model.ask(QUESTION)
    model.ask(QUESTION)
    sent = [one.headers["authorization"] for one in asked_since(fake, before)]
    assert sent == ["Bearer first", "Bearer second"]


def test_nothing_said_gets_into_a_log(fake: FakeOpenAI, model: OpenAIModel) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        model.ask(QUESTION)
        fake.script(Rule(status=400, body=ERROR_BODY))
        with pytest.raises(ModelFailedError):
            model.ask(QUESTION)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert TALK not in written.getvalue()
    assert KEY not in written.getvalue()


def test_threads_may_share_a_model(fake: FakeOpenAI, model: OpenAIModel) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: model.ask(QUESTION).finish_reason, range(40)))
    assert answers == ["stop"] * 40


def test_the_client_is_not_imported_before_it_is_needed() -> None:
    program = (
        "import sys\n"
        "from turnfold.adapters.openai_completions import OpenAICompletions\n"
        "from turnfold.adapters.openai_model import OpenAIChat, OpenAIModel\n"
        "completions = OpenAICompletions(str)\n"
        "OpenAIChat(completions, 'm'), OpenAIModel(completions, 'm')\n"
        "print([one for one in ('openai', 'httpx2', 'pydantic') if one in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert shown.stdout.strip() == "[]"
