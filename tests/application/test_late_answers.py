"""A model may answer after the session it was asked about was erased: nothing of it comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.archive_service import ArchiveService
from support.service import KEY, plain_turn
from turnfold.adapters.in_memory_open_turns import InMemoryOpenTurns
from turnfold.application.answer import IdempotentRequest
from turnfold.application.chat import Chat, ChatRequest
from turnfold.application.ports.models import ChatReply
from turnfold.application.remember_completions import CompletionRequest, RememberCompletions
from turnfold.application.take_history import TakeHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

SECRET = "The parcel is under the bridge."
QUESTION = {"role": "user", "content": "Where is it?"}
SPOKEN = {"role": "assistant", "content": SECRET}
CALLING = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "go", "arguments": SECRET}},
    ],
}


class SlowModel:
    """Answers from what it was told, but only after something has happened."""

    def __init__(self, message: Mapping[str, Any], meanwhile: Callable[[], object]) -> None:
        self.message = message
        self.meanwhile = meanwhile

    def chat(self, messages: Sequence[Mapping[str, Any]], **_how: object) -> ChatReply:
        assert SECRET in str(messages)
        self.meanwhile()
        return ChatReply(self.message, "stop", "slow", {})

    def complete(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        assert SECRET in str(body)
        self.meanwhile()
        return {"model": "slow", "choices": [{"message": self.message, "finish_reason": "stop"}]}

    def stream(
        self, body: Mapping[str, Any], *, with_usage: bool = False
    ) -> Generator[Mapping[str, Any]]:
        raise NotImplementedError

    def models(self) -> Mapping[str, Any]:
        raise NotImplementedError


def erased(service: ArchiveService, *, anew: bool) -> None:
    service.delete.session(KEY)
    service.drain_archive()
    if anew:
        service.commit_plain(1)


def chatted(service: ArchiveService, model: SlowModel) -> bool:
    chat = Chat(
        service.store,
        service.counter,
        model,
        service.commit_turn,
        service.turns,
        service.context,
    )
    request = IdempotentRequest.of("POST chat", "k", {})
    return chat(KEY, ChatRequest([QUESTION]), request).committed


def completed(service: ArchiveService, model: SlowModel, *before: dict[str, Any]) -> bool:
    answers = RememberCompletions(
        store=service.store,
        drafts=InMemoryOpenTurns(service.raw_store, service.clock),
        model=model,
        commit=service.commit_turn,
        turns=service.turns,
        context=service.context,
        take_history=TakeHistory(service.import_session),
    )
    body = {"model": "slow", "messages": [*before, QUESTION]}
    request = IdempotentRequest.of("POST completions", "k", {})
    return answers(KEY, CompletionRequest(body), request).kept


def completed_with_history(service: ArchiveService, model: SlowModel) -> bool:
    return completed(service, model, *plain_turn(7))


WAYS: dict[str, tuple[Callable[[ArchiveService, SlowModel], bool], Mapping[str, Any]]] = {
    "chat": (chatted, SPOKEN),
    "completion": (completed, SPOKEN),
    "completion with tool calls": (completed, CALLING),
    "completion with a history": (completed_with_history, SPOKEN),
}


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_an_answer_about_an_erased_session_is_given_and_not_kept(way: str, anew: bool) -> None:
    ask, message = WAYS[way]
    service = ArchiveService(pin_mode="off")
    service.commit([{"role": "user", "content": SECRET}, {"role": "assistant", "content": "Yes."}])
    assert not ask(service, SlowModel(message, lambda: erased(service, anew=anew)))
    stored = service.raw_store.sessions.get(KEY)
    assert (stored.session.committed_through if stored else 0) == anew
    assert KEY not in service.raw_store.open_turns
    everything = [service.bucket.get(name) or b"" for name in service.objects_of()]
    assert SECRET not in str((stored, everything))


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_in_time_is_kept(way: str) -> None:
    ask, message = WAYS[way]
    service = ArchiveService(pin_mode="off")
    service.commit([{"role": "user", "content": SECRET}, {"role": "assistant", "content": "Yes."}])
    assert ask(service, SlowModel(message, lambda: None))
