"""Chat completions with a session: its context goes before the question, the turn is committed.

Nothing is written before the model has answered. An answer with tool calls becomes the session's
open turn, which the next request completes; then all of it is committed as one turn. A client that
sends its whole history is told from one that sends only what is new (`client_history`); turns of a
history that the session does not have are committed first, as turns of their own.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from turnfold.application.answer import IdempotentRequest
from turnfold.application.commit_turn import CommitTurn, TurnToCommit
from turnfold.application.known_history import known_messages
from turnfold.application.ports.completions import Chunks, Completions
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.open_turns import OpenTurnStore
from turnfold.application.read_context import ContextRequest, ReadContext
from turnfold.application.read_turns import ReadTurns
from turnfold.application.same_session import check_same
from turnfold.application.take_history import TakeHistory
from turnfold.domain.client_history import (
    check_answerable,
    continued,
    new_turns,
    read_client_messages,
)
from turnfold.domain.completions import (
    Assembly,
    chunks_of,
    first_choice,
    frame_of,
    from_frame,
    memorable_reply,
    usage_of,
)
from turnfold.domain.errors import (
    ConflictError,
    GuardFailedError,
    InvalidInputError,
    InvalidMessagesError,
    ModelFailedError,
    ModelNotConfiguredError,
    NotFoundError,
    SessionErasingError,
    StoreError,
)
from turnfold.domain.limits import MAX_TURN_MESSAGES
from turnfold.domain.messages import Message, split_leading, tool_calls
from turnfold.domain.open_turn import OpenTurn, check_open_size
from turnfold.domain.sessions import Session, SessionKey, SessionStatus

logger = logging.getLogger("turnfold")

HISTORY_SECONDS = 24.0
"""How long after its beginning a request still takes in a history: it has 29 seconds, some of which
the commit of its own turn may need."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """What the caller sent: all members but those that are this service's own."""

    body: Mapping[str, Any]
    max_context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer in the provider's own form.

    `kept` is false if it is not in the memory: the store failed after the model had answered, or it
    is none that can be remembered. A repetition under the same key asks the model again then.
    """

    body: Mapping[str, Any]
    kept: bool = True
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A question with all that belongs to it, before the model is asked.

    `turn` is the turn so far, with the question; `added` is what of it is not stored yet.
    `history` are finished turns that the session lacks.
    """

    key: SessionKey
    request: IdempotentRequest
    model: str | None
    session: Session | None
    open_turn: OpenTurn | None
    continues: bool
    turn: tuple[Message, ...]
    added: tuple[Message, ...]
    history: tuple[tuple[Message, ...], ...]
    context: tuple[Message, ...]
    started: float

    def asks(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What the model is asked."""
        return {**body, "messages": list(self.context)}


@dataclass(slots=True)
class CompletionStream:
    """A streamed answer. `kept` is known when its chunks have come to their end.

    An answer that is not taken to its end, or breaks off (`ModelFailedError`), is not committed.
    """

    chunks: Chunks
    kept: bool = True
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class RememberCompletions:
    """Answers with memory."""

    store: MemoryStore
    drafts: OpenTurnStore
    model: Completions | None
    commit: CommitTurn
    turns: ReadTurns
    context: ReadContext
    take_history: TakeHistory
    monotonic: Callable[[], float] = time.monotonic

    def __call__(
        self, key: SessionKey, asked: CompletionRequest, request: IdempotentRequest
    ) -> Completion:
        """The model's answer, remembered.

        If the model fails, nothing is committed (`ModelFailedError`). If the commit fails after the
        model answered, the answer is given all the same, and is not `kept`. Raises besides
        `ModelNotConfiguredError`, `InvalidMessagesError`, `IncompleteTurnError`,
        `BudgetTooSmallError`, `TurnTooLargeError`, `SessionErasingError`,
        `IdempotencyMismatchError`.
        """
        model = self._model()
        begun = self._begin(key, asked, request)
        if isinstance(begun, Completion):
            return begun
        answer = model.complete(begun.asks(asked.body))
        if first_choice(answer) is None:
            raise ModelFailedError("the model's answer has no message")
        return self._keep(begun, answer)

    def stream(
        self, key: SessionKey, asked: CompletionRequest, request: IdempotentRequest
    ) -> CompletionStream:
        """The model's answer as it comes, remembered when it has ended. Raises as a call does.

        The tokens are counted for the ledger, too, where the caller does not ask for it.
        """
        model = self._model()
        begun = self._begin(key, asked, request)
        options = asked.body.get("stream_options")
        with_usage = isinstance(options, Mapping) and options.get("include_usage") is True
        if isinstance(begun, Completion):
            again = chunks_of(begun.body, with_usage=with_usage)
            return CompletionStream(again, replayed=True)
        upstream = model.stream(begun.asks(asked.body), with_usage=True)
        stream = CompletionStream(upstream)
        stream.chunks = self._streamed(begun, upstream, stream, with_usage=with_usage)
        return stream

    def _streamed(
        self, exchange: _Exchange, upstream: Chunks, stream: CompletionStream, *, with_usage: bool
    ) -> Chunks:
        whole = Assembly()
        with closing(upstream):
            for chunk in upstream:
                whole.add(chunk)
                if with_usage or chunk.get("choices") or not chunk.get("usage"):
                    yield chunk
        if not whole.finished:
            raise ModelFailedError("the model's answer broke off")
        done = self._keep(exchange, whole.completion())
        # The memory has what another request under the same key was answered meanwhile.
        stream.kept = done.kept and not done.replayed

    def _model(self) -> Completions:
        if self.model is None:
            raise ModelNotConfiguredError
        return self.model

    # ------------------------------------------------------------------------- before the model

    def _begin(
        self, key: SessionKey, asked: CompletionRequest, request: IdempotentRequest
    ) -> _Exchange | Completion:
        """All that belongs to the question; or the answer, if the request is a repetition."""
        started = self.monotonic()
        sent = read_client_messages(asked.body.get("messages"))
        session, record = self.store.read_session(key, request.key_hash)
        open_turn, appended = self.drafts.read_open_turn(key, request.key_hash)
        if earlier := record or appended:
            return self._again(key, request.replay(earlier).body)
        if session and session.status is not SessionStatus.LIVE:
            raise SessionErasingError
        memory = self.store.load(key) if session else None
        unknown = sent.history
        if memory:
            unknown = unknown[known_messages(unknown, memory, self.turns.transcript) :]
        history = new_turns(unknown)
        begun_system, begun = split_leading(open_turn.messages if open_turn else ())
        more = continued(begun, sent.question) if open_turn is not None else None
        continues = more is not None
        if more is None:
            begun_system, begun, more = (), (), sent.question
        conversation = (*begun, *more)
        check_answerable(conversation, sent)
        system = sent.system or begun_system
        turn = (*system, *conversation)
        _check_size(turn)
        for one in history:
            TurnToCommit(one).check_size()
        wanted = ContextRequest(
            max_tokens=asked.max_context_tokens,
            model=_model_name(asked.body),
            incoming=(*system, *unknown, *conversation),
            begun=len(system) + len(begun) if begun and not unknown else 0,
        )
        if memory:
            context = self.context.messages(memory, wanted)
        else:
            context = self.context.alone(wanted, self.commit.defaults.model)
        return _Exchange(
            key=key,
            request=request,
            model=wanted.model,
            session=session,
            open_turn=open_turn,
            continues=continues,
            turn=turn,
            added=more if continues else turn,
            history=history,
            context=context,
            started=started,
        )

    # -------------------------------------------------------------------------- after the model

    def _keep(self, exchange: _Exchange, answer: Mapping[str, Any]) -> Completion:
        """Commit the turn, or store it as far as it goes; what fails here is told, not raised."""
        reply = memorable_reply(answer)
        reason = "answer"
        if reply is not None:
            try:
                self._check_life(exchange)
                if exchange.history:
                    self.take_history(exchange.key, exchange.history, self._seconds_left(exchange))
                if tool_calls(reply):
                    return self._leave_open(exchange, answer, reply)
                return self._committed(exchange, answer, reply)
            except (StoreError, ConflictError, InvalidInputError, NotFoundError) as error:
                reason = type(error).__name__
        logger.warning(
            "completion not committed", extra={"code": "CHAT_NOT_COMMITTED", "error": reason}
        )
        self._charge(exchange, answer)
        return Completion(answer, kept=False)

    def _seconds_left(self, exchange: _Exchange) -> Callable[[], float]:
        """What is left for a history."""
        end = exchange.started + HISTORY_SECONDS
        return lambda: end - self.monotonic()

    def _check_life(self, exchange: _Exchange) -> None:
        """Raise `SessionErasingError` if the session whose memory was asked from is gone.

        A streamed answer may take longer than an erasure. It must not begin a new session.
        """
        if exchange.session is not None:
            now, _ = self.store.read_session(exchange.key, None)
            check_same(now, exchange.session.epoch)

    def _committed(
        self, exchange: _Exchange, answer: Mapping[str, Any], reply: Message
    ) -> Completion:
        key = exchange.key
        done = self.commit(
            key,
            TurnToCommit((*exchange.turn, reply)),
            exchange.request,
            extra={"completion": frame_of(answer)},
            closes=exchange.open_turn.ref if exchange.open_turn else None,
            usage=usage_of(answer, exchange.model),
            epoch=exchange.session.epoch if exchange.session else None,
        ).answer
        if done.replayed:
            return self._again(key, done.body)
        return Completion(answer)

    def _leave_open(
        self, exchange: _Exchange, answer: Mapping[str, Any], reply: Message
    ) -> Completion:
        """Store the turn as the session's open one, in place of one that it does not continue."""
        key, before = exchange.key, exchange.open_turn
        check_open_size((*exchange.turn, reply))
        if before and not exchange.continues:
            self.drafts.drop_open_turn(key, before.ref)
            before = None
        body = {"session_id": key.session_id, "completion": frame_of(answer), "reply": reply}
        record = exchange.request.record(200, body, self.commit.clock())
        ref = before.ref if before else None
        added = (*exchange.added, reply)
        try:
            self.drafts.append_open_turn(key, ref, self.commit.new_id(), added, record)
        except GuardFailedError as error:
            known = self.drafts.read_open_turn(key, exchange.request.key_hash)[1]
            if "idempotency" in error.failed and known:
                return self._again(key, exchange.request.replay(known).body)
            raise
        self._charge(exchange, answer)
        return Completion(answer)

    def _charge(self, exchange: _Exchange, answer: Mapping[str, Any]) -> None:
        """Count what an answer cost that is no commit's, if there is a session to count it for."""
        session = exchange.session
        if session is None:
            return
        usage = usage_of(answer, exchange.model)
        try:
            self.store.add_usage(exchange.key, session.epoch, usage)
        except StoreError:
            logger.warning("usage not counted", extra={"code": "USAGE_NOT_COUNTED"})

    # ------------------------------------------------------------------------------ repetitions

    def _again(self, key: SessionKey, body: Mapping[str, Any]) -> Completion:
        """A stored answer with its message: that of the turn, or of the open turn at that time."""
        reply = body.get("reply") or self.turns.one(key, body["turn"]).messages[-1]
        return Completion(from_frame(body["completion"], reply), replayed=True)


def _model_name(body: Mapping[str, Any]) -> str | None:
    name = body.get("model")
    return name if isinstance(name, str) and name else None


def _check_size(turn: Sequence[Message]) -> None:
    """Raise unless the answer may be added to the turn."""
    if len(turn) >= MAX_TURN_MESSAGES:
        msg = f"a turn must hold fewer than {MAX_TURN_MESSAGES} messages before its answer"
        raise InvalidMessagesError([("messages", msg)])
    TurnToCommit(turn).check_size()
