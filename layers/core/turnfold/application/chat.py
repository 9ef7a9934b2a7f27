"""Chat: read the context, ask the model, commit the turn."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.commit_turn import CommitTurn, TurnToCommit
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.models import ChatModel, TokenCounter
from turnfold.application.read_context import ContextRequest, ReadContext
from turnfold.application.read_turns import ReadTurns
from turnfold.domain.completions import FILTERED, usage_of
from turnfold.domain.errors import (
    ConflictError,
    InvalidInputError,
    InvalidMessagesError,
    ModelFailedError,
    ModelNotConfiguredError,
    NotFoundError,
    SessionErasingError,
    StoreError,
    TurnTooLargeError,
)
from turnfold.domain.layouts import PLAIN, Layout
from turnfold.domain.limits import MAX_TURN_MESSAGES
from turnfold.domain.message_rules import check_question, check_turn
from turnfold.domain.messages import Message, is_blank, tool_calls
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
    layout: Layout = PLAIN

    def check(self) -> None:
        """Raise `InvalidMessagesError` or `TurnTooLargeError` unless it can become a turn."""
        check_question(self.messages)
        if len(self.messages) >= MAX_TURN_MESSAGES:
            msg = f"must hold fewer than {MAX_TURN_MESSAGES} messages, since the answer is one more"
            raise InvalidMessagesError([("messages", msg)])
        TurnToCommit(self.messages).check_size()


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """The contract's answer.

    `committed` is false if the store failed after the model had answered, or if a filter stopped
    the answer: every later prompt would hold it and be stopped as well.
    """

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
            raise ModelNotConfiguredError
        session, record = self.store.read_session(key, request.key_hash)
        if record:
            return ChatAnswer(self._spoken(key, request.replay(record)))
        if session and session.status is not SessionStatus.LIVE:
            raise SessionErasingError
        context = self._context(key, asked)
        reply = self.model.chat(
            context,
            model=asked.model,
            max_tokens=asked.max_tokens,
            temperature=asked.temperature,
        )
        messages = (*asked.messages, reply.message)
        _check_reply(messages)
        settings = session.settings if session else self.commit.defaults
        count = self._count(asked.model or settings.model)
        body: dict[str, Any] = {
            "session_id": key.session_id,
            "usage": dict(reply.usage),
            "model": reply.model,
            "finish_reason": reply.finish_reason,
            "context_tokens": PER_LIST + count_messages(context, count),
        }
        if reply.finish_reason == FILTERED:
            return _not_committed(body, messages, FILTERED)
        try:
            usage = usage_of({"usage": reply.usage, "model": reply.model}, asked.model)
            turn = TurnToCommit(messages)
            epoch = session.epoch if session else None
            done = self.commit(key, turn, request, extra=body, usage=usage, epoch=epoch)
            answer = done.answer
        except (StoreError, ConflictError, NotFoundError, TurnTooLargeError) as error:
            return _not_committed(body, messages, type(error).__name__)
        if answer.replayed:
            return ChatAnswer(self._spoken(key, answer))
        return ChatAnswer(_with_messages(answer, messages))

    def _spoken(self, key: SessionKey, answer: Answer) -> Answer:
        """A stored answer with its texts, which only the turn itself holds: they may be long."""
        turn = self.turns.one(key, answer.body["turn"])
        return _with_messages(answer, turn.messages)

    def _context(self, key: SessionKey, asked: ChatRequest) -> tuple[Message, ...]:
        """The context with the question at its end; without a session the question alone."""
        wanted = ContextRequest(
            max_tokens=asked.max_context_tokens,
            model=asked.model,
            incoming=asked.messages,
            query=asked.query,
            layout=asked.layout,
        )
        memory = self.store.load(key)
        if memory is None:
            return self.context.alone(wanted, self.commit.defaults.model)
        return self.context.messages(memory, wanted)

    def _count(self, model: str | None) -> CountText:
        return lambda text: self.counter.count(text, model)


def _check_reply(messages: Sequence[Message]) -> None:
    """Raise `ModelFailedError` unless the last message, which is the model's, ends the turn.

    The others are known to be good, so what is wrong now is no fault of the caller's.
    """
    reply = messages[-1]
    try:
        finished = not (is_blank(reply) or tool_calls(reply)) and bool(check_turn(messages))
    except InvalidInputError:
        finished = False
    if not finished:
        raise ModelFailedError("the model gave no answer that ends a turn")


def _not_committed(body: dict[str, Any], messages: Sequence[Message], reason: str) -> ChatAnswer:
    extra = {"code": "CHAT_NOT_COMMITTED", "error": reason}
    logger.warning("chat not committed", extra=extra)
    answer = Answer(200, body | {"turn": None, "watermark": None})
    return ChatAnswer(_with_messages(answer, messages), committed=False)


def _with_messages(answer: Answer, messages: Sequence[Message]) -> Answer:
    texts = {"reply": dict(messages[-1]), "messages": [dict(one) for one in messages]}
    return replace(answer, body={**answer.body, **texts})
