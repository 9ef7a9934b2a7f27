"""Chat at its limits: budgets without a session, long questions, answers that end no turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from support.service import KEY, Service, count_words, plain_turn
from turnfold.application.answer import IdempotentRequest
from turnfold.application.chat import Chat, ChatAnswer, ChatRequest
from turnfold.application.ports.models import ChatReply
from turnfold.application.sessions import SessionInput
from turnfold.domain.errors import BudgetTooSmallError, InvalidMessagesError, ModelFailedError
from turnfold.domain.limits import MAX_TURN_MESSAGES
from turnfold.domain.tokens import PER_LIST, count_messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

QUESTION = {"role": "user", "content": "How far is it to the lighthouse from here?"}


@dataclass
class Speaker:
    """A chat model that gives one message and remembers what it was sent."""

    message: Mapping[str, Any] = field(
        default_factory=lambda: {"role": "assistant", "content": "Fine."}
    )
    asked: list[Sequence[Mapping[str, Any]]] = field(default_factory=list)

    def chat(self, messages: Sequence[Mapping[str, Any]], **_options: object) -> ChatReply:
        self.asked.append(messages)
        return ChatReply(self.message, "stop", "speaker", {})


class Encodings:
    """A `TokenCounter` that counts double for one model."""

    def count(self, text: str, model: str | None = None) -> int:
        return count_words(text) * (2 if model == "wordy" else 1)


def ask(
    service: Service,
    model: Speaker,
    messages: Sequence[Mapping[str, Any]] = (QUESTION,),
    **members: Any,
) -> ChatAnswer:
    chat = Chat(
        store=service.store,
        counter=Encodings(),
        context=service.context,
        model=model,
        commit=service.commit_turn,
        turns=service.turns,
    )
    request = IdempotentRequest.of(
        "POST chat", f"key-{len(model.asked)}", {"members": repr(members)}
    )
    return chat(KEY, ChatRequest(messages, **members), request)


def test_the_budget_holds_also_where_there_is_no_session_yet() -> None:
    service, model = Service(), Speaker()
    enough = PER_LIST + count_messages([QUESTION], count_words)
    with pytest.raises(BudgetTooSmallError) as refused:
        ask(service, model, max_context_tokens=enough - 1)
    assert refused.value.needed == enough
    assert not model.asked
    assert ask(service, model, max_context_tokens=enough).answer.body["context_tokens"] == enough


def test_a_question_that_leaves_no_room_for_an_answer_is_refused_unpaid() -> None:
    service, model = Service(), Speaker()
    with pytest.raises(InvalidMessagesError):
        ask(service, model, [QUESTION] * MAX_TURN_MESSAGES)
    assert not model.asked
    assert ask(service, model, [QUESTION] * (MAX_TURN_MESSAGES - 1)).committed


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "Yes.", "name": "n" * 300},
        {"role": "assistant", "content": "Yes.", "name": "turnfold_memory"},
        {"role": "assistant", "content": [{"text": "Yes."}]},
        {"role": "assistant", "content": [{"type": "text", "text": " "}]},
        {"role": "user", "content": "Yes."},
    ],
)
def test_an_answer_that_cannot_end_a_turn_is_the_models_fault(message: dict[str, Any]) -> None:
    service = Service()
    with pytest.raises(ModelFailedError):
        ask(service, Speaker(message))
    assert service.raw_store.load(KEY) is None


def test_tokens_are_counted_for_the_sessions_model() -> None:
    service, model = Service(), Speaker()
    service.sessions.put(KEY, SessionInput(settings={"model": "wordy"}))
    service.commit(plain_turn(1))
    answer = ask(service, model).answer
    counted = PER_LIST + count_messages(model.asked[0], lambda text: 2 * count_words(text))
    assert answer.body["context_tokens"] == counted
