"""Chat: context, model, commit; and what happens when one of them fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from support.interference import Interference
from support.service import KEY, Service, plain_turn
from turnfold.application.answer import IdempotentRequest
from turnfold.application.chat import Chat, ChatAnswer, ChatRequest
from turnfold.application.ports.models import ChatReply
from turnfold.domain.errors import (
    BudgetTooSmallError,
    IdempotencyMismatchError,
    InvalidMessagesError,
    ModelFailedError,
    ModelNotConfiguredError,
    SessionNotFoundError,
    StoreUnavailableError,
    TurnfoldError,
    TurnTooLargeError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass
class FakeChat:
    """A chat model that says always the same, or fails."""

    message: Mapping[str, Any] = field(
        default_factory=lambda: {"role": "assistant", "content": "Fine."}
    )
    error: Exception | None = None
    finish_reason: str = "stop"
    asked: list[Sequence[Mapping[str, Any]]] = field(default_factory=list)

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        model: str | None,
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatReply:
        self.asked.append(messages)
        if self.error:
            raise self.error
        return ChatReply(self.message, self.finish_reason, "fake", {"total_tokens": 9})


def ask(service: Service, model: FakeChat | None, *texts: str, **members: Any) -> ChatAnswer:
    chat = Chat(
        store=service.store,
        counter=service.counter,
        context=service.context,
        model=model,
        commit=service.commit_turn,
        turns=service.turns,
    )
    key = members.pop("idempotency_key", f"key {len(model.asked) if model else 0}")
    messages = members.pop("messages", [{"role": "user", "content": text} for text in texts])
    request = IdempotentRequest.of("POST chat", key, {"messages": messages})
    return chat(KEY, ChatRequest(messages, **members), request)


def test_the_first_chat_makes_a_session() -> None:
    service, model = Service(), FakeChat()
    done = ask(service, model, "How are you?")
    assert done.committed
    assert done.answer.status == 200
    assert done.answer.body["reply"] == {"role": "assistant", "content": "Fine."}
    assert done.answer.body["turn"] == 1
    assert done.answer.body["usage"] == {"total_tokens": 9}
    (turn,) = service.memory().turns
    assert [one["content"] for one in turn.messages] == ["How are you?", "Fine."]


def test_the_model_sees_the_context_and_then_the_question() -> None:
    service, model = Service(), FakeChat()
    service.commit([{"role": "system", "content": "Be kind."}, *plain_turn(1)])
    done = ask(service, model, "And now?")
    assert [one["role"] for one in model.asked[0]] == ["system", "user", "assistant", "user"]
    assert model.asked[0][-1]["content"] == "And now?"
    assert done.answer.body["turn"] == 2


def test_system_messages_of_the_request_stand_in_for_the_sessions() -> None:
    service, model = Service(), FakeChat()
    service.commit([{"role": "system", "content": "Be kind."}, *plain_turn(1)])
    question = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Now?"}]
    ask(service, model, messages=question)
    systems = [one["content"] for one in model.asked[0] if one["role"] == "system"]
    assert systems == ["Be short."]
    assert service.memory().profile.system == ({"role": "system", "content": "Be short."},)


def test_the_context_keeps_to_its_budget() -> None:
    service, model = Service(), FakeChat()
    service.commit_plain(5, words=100)
    done = ask(service, model, "And now?", max_context_tokens=300)
    assert done.answer.body["context_tokens"] <= 300
    with pytest.raises(BudgetTooSmallError):
        ask(service, model, "And now? " * 100, max_context_tokens=50)


def test_a_repetition_is_answered_the_same_without_the_model() -> None:
    service, model = Service(), FakeChat()
    first = ask(service, model, "How are you?", idempotency_key="k")
    again = ask(service, model, "How are you?", idempotency_key="k")
    assert len(model.asked) == 1
    assert again.answer.replayed
    assert (again.answer.status, again.answer.body) == (first.answer.status, first.answer.body)
    with pytest.raises(IdempotencyMismatchError):
        ask(service, model, "Another question", idempotency_key="k")


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (None, ModelFailedError("down", 503)),
        ({"role": "assistant", "content": ""}, None),
        ({"role": "assistant", "content": None}, None),
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                    }
                ],
            },
            None,
        ),
    ],
)
def test_a_model_that_fails_commits_nothing(
    message: Mapping[str, Any] | None, error: Exception | None
) -> None:
    service = Service()
    service.commit_plain(1)
    with pytest.raises(ModelFailedError):
        ask(service, FakeChat(message or {}, error), "How are you?")
    assert service.memory().session.committed_through == 1
    assert len(service.raw_archive.list_records(KEY, 1, 9)) == 1


def test_a_refusal_is_an_answer() -> None:
    service = Service()
    refusal = {"role": "assistant", "content": None, "refusal": "No."}
    assert ask(service, FakeChat(refusal), "How?").answer.body["reply"]["refusal"] == "No."


def test_without_a_model_chat_is_refused() -> None:
    with pytest.raises(ModelNotConfiguredError):
        ask(Service(), None, "How are you?")


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": "I begin."}],
        [{"role": "system", "content": "Only this."}],
        plain_turn(1),
    ],
)
def test_what_is_no_question_is_refused(messages: list[dict[str, Any]]) -> None:
    model = FakeChat()
    with pytest.raises(InvalidMessagesError):
        ask(Service(), model, messages=messages)
    assert model.asked == []


def failing_at(method_name: str, error: TurnfoldError) -> Service:
    interference = Interference()
    service = Service(wrap=interference.wrap)
    service.commit_plain(1)

    def fail(port: str, method: str, given: tuple[Any, ...]) -> None:
        if method == method_name:
            raise error

    interference.before.append(fail)
    return service


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("put_record", StoreUnavailableError("away")),
        ("write", StoreUnavailableError("away")),
        ("write", SessionNotFoundError("gone")),
    ],
)
def test_an_answer_is_given_even_if_it_cannot_be_committed(
    method: str, error: TurnfoldError
) -> None:
    service = failing_at(method, error)
    done = ask(service, FakeChat(), "How are you?")
    assert not done.committed
    assert done.answer.body["reply"]["content"] == "Fine."
    assert done.answer.body["turn"] is None
    assert service.memory().session.committed_through == 1


@pytest.mark.parametrize(("reason", "kept"), [("content_filter", False), ("length", True)])
def test_an_answer_that_a_filter_stopped_is_given_and_not_remembered(
    reason: str, *, kept: bool
) -> None:
    service = Service()
    service.commit_plain(1)
    done = ask(service, FakeChat(finish_reason=reason), "How are you?")
    assert done.committed == kept
    assert done.answer.body["reply"]["content"] == "Fine."
    assert done.answer.body["finish_reason"] == reason
    assert service.memory().session.committed_through == 1 + kept


def test_an_answer_that_makes_the_turn_too_large_is_given_all_the_same() -> None:
    service = Service()
    long = FakeChat({"role": "assistant", "content": "y" * 600_000})
    done = ask(service, long, "x" * 600_000)
    assert not done.committed
    assert len(done.answer.body["reply"]["content"]) == 600_000


def test_a_question_that_is_too_large_is_not_paid_for() -> None:
    model = FakeChat()
    with pytest.raises(TurnTooLargeError):
        ask(Service(), model, "x" * (1024 * 1024))
    assert model.asked == []
