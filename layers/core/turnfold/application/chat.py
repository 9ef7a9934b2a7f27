"""Chat: read the context, ask the model, commit the turn."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.commit_turn import CommitTurn, TurnToCommit
from turnfold.application.ports import ChatModel, MemoryStore, TokenCounter
from turnfold.application.read_context import ContextRequest, ReadContext
from turnfold.application.read_turns import ReadTurns
from turnfold.domain.errors import (
    ConflictError,
    ModelFailedError,
    ModelNotConfiguredError,
    SessionErasingError,
    StoreError,
    TurnTooLargeError,
)
from turnfold.domain.message_rules import check_question
from turnfold.domain.messages import Message, chat_form, is_blank, tool_calls
from turnfold.domain.sessions import SessionKey, SessionStatus
from turnfold.domain.tokens import PER_LIST, CountText, count_messages

logger = logging.getLogger("turnfold")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What the user says, and how the model is asked; limits in tokens of answer and context."""

    messages: Sequence[Message]
    model: str | None = None
    max_tokens: int | None = None
    max_context_tokens: int | None = None
    temperature: float | None = None
    query: str | None = None

    def check(self) -> None:
        """Raise `InvalidMessagesError` or `TurnTooLargeError` unless it can become a turn."""
        check_question(self.messages)
        TurnToCommit(self.messages).check_size()


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """The contract's answer. `committed` is false if the store failed after the model answered."""

    answer: Answer
    committed: bool = True


@dataclass(frozen=True, slots=True)
class Chat:
    """One call that remembers."""

    store: MemoryStore
    counter: TokenCounter
    model: ChatModel | None
    commit: CommitTurn
    turns: ReadTurns
    context: ReadContext

    def __call__(
        self, key: SessionKey, asked: ChatRequest, request: IdempotentRequest
    ) -> ChatAnswer:
        """The model's reply, committed as a turn.

        If the model fails, nothing is committed (`ModelFailedError`). If the commit fails after the
        model answered, the answer is given all the same, and is not `committed`.
        Raises `ModelNotConfiguredError`, `InvalidMessagesError`, `TurnTooLargeError` for the
        question alone, `BudgetTooSmallError`.
        """
        asked.check()
        if self.model is None:
            raise ModelNotConfiguredError("no chat model is set up; set OPENAI_API_KEY")
        session, record = self.store.read_session(key, request.key_hash)
        if record:
            return ChatAnswer(self._spoken(key, request.replay(record)))
        if session and session.status is not SessionStatus.LIVE:
            raise SessionErasingError("the session is being erased; try again when that is done")
        context = self._context(key, asked)
        reply = self.model.chat(
            context,
            model=asked.model,
            max_tokens=asked.max_tokens,
            temperature=asked.temperature,
        )
        if is_blank(reply.message) or tool_calls(reply.message):
            raise ModelFailedError("the model gave no answer that ends a turn")
        messages = (*asked.messages, reply.message)
        count = self._count(asked.model)
        body: dict[str, Any] = {
            "session_id": key.session_id,
            "usage": dict(reply.usage),
            "model": reply.model,
            "finish_reason": reply.finish_reason,
            "context_tokens": PER_LIST + count_messages(context, count),
        }
        try:
            answer = self.commit(key, TurnToCommit(messages), request, extra=body).answer
        except (StoreError, ConflictError, TurnTooLargeError) as error:
            logger.warning(
                "chat not committed",
                extra={"code": "CHAT_NOT_COMMITTED", "error": type(error).__name__},
            )
            failed = Answer(200, body | {"turn": None, "watermark": None})
            return ChatAnswer(_with_messages(failed, messages), committed=False)
        if answer.replayed:
            return ChatAnswer(self._spoken(key, answer))
        return ChatAnswer(_with_messages(answer, messages))

    def _spoken(self, key: SessionKey, answer: Answer) -> Answer:
        """A stored answer with its texts, which only the turn itself holds: they may be long."""
        turn = self.turns.one(key, answer.body["turn"])
        return _with_messages(answer, turn.messages)

    def _context(self, key: SessionKey, asked: ChatRequest) -> tuple[Message, ...]:
        """The context with the question at its end; without a session the question alone."""
        memory = self.store.load(key)
        if memory is None:
            return tuple(chat_form(one) for one in asked.messages)
        wanted = ContextRequest(
            max_tokens=asked.max_context_tokens,
            model=asked.model,
            incoming=asked.messages,
            query=asked.query,
        )
        return self.context.messages(memory, wanted)

    def _count(self, model: str | None) -> CountText:
        return lambda text: self.counter.count(text, model)


def _with_messages(answer: Answer, messages: Sequence[Message]) -> Answer:
    texts = {"reply": dict(messages[-1]), "messages": [dict(one) for one in messages]}
    return replace(answer, body={**answer.body, **texts})
