"""A session's memory in this process: mm-memory's session memory over the service's use cases."""

import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.commit_turn import TurnToCommit
from turnfold.application.pins_by_hand import PinInput
from turnfold.application.ports.memory import Change
from turnfold.application.read_context import ContextRequest
from turnfold.domain.context import Context
from turnfold.domain.errors import IncompleteTurnError
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.memory_text import pins_text
from turnfold.domain.message_rules import check_messages, check_turn
from turnfold.domain.messages import Message, is_blank, is_leading, tool_calls
from turnfold.domain.pins import Pin, PinStatus
from turnfold.domain.policies.units import repaired
from turnfold.domain.regions import Regions, split_regions
from turnfold.domain.sessions import Session, SessionKey, SessionStatus, check_id
from turnfold.domain.settings import merge_settings
from turnfold.domain.summaries import Summary, SummaryKind
from turnfold.domain.turns import Turn
from turnfold.library.services import SessionServices
from turnfold.library.wiring import in_memory_services

DEFAULT_SESSION = "default"
PIN_PAGE = 100

RESPECT = "Respect these facts, and do not state as fact what contradicts them."


@dataclass(frozen=True, slots=True)
class LenientTurn(TurnToCommit):
    """A turn as mm-memory takes it: tool results without a request are kept, and hidden on read."""

    def check(self) -> None:
        """Raise `IncompleteTurnError` without a user message and a final answer."""
        check_messages(self.messages)
        if not is_finished(self.messages):
            raise IncompleteTurnError([("messages", "a question and its answer are needed")])


def is_finished(messages: Sequence[Message]) -> bool:
    """Whether messages hold a question and end with an answer that asks for no tool."""
    if not any(one["role"] == "user" for one in messages):
        return False
    last = messages[-1]
    return last["role"] == "assistant" and not tool_calls(last) and not is_blank(last)


class SessionMemory:
    """One session: an open turn, committed turns, summaries of what lies between, and pins.

    By default everything lives in this process, and what a commit leaves to do is done before it
    returns. Not safe for several threads at once; several objects of one session are.
    """

    def __init__(
        self,
        session_id: str = DEFAULT_SESSION,
        services: SessionServices | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        drains: bool = True,
        drops_incomplete: bool = False,
        lenient: bool = False,
    ) -> None:
        """`settings` (names of the contract) apply when the first commit makes the session.

        `drains` false leaves compaction to `drain`. With `drops_incomplete` a commit without an
        answer drops the open turn and returns None, as mm-memory's does, instead of raising. With
        `lenient` tool results without a request may be committed.

        Raises `InvalidIdError` (a `ValueError`) for a blank id, and `InvalidSettingsError`.
        """
        self._services = services or in_memory_services()
        self.key = SessionKey(self._services.tenant, check_id(session_id, "session_id"))
        defaults = merge_settings(self._services.commit.defaults, settings or {})
        self._commit = replace(self._services.commit, defaults=defaults)
        self._settings = defaults
        self._drains = drains
        self._drops_incomplete = drops_incomplete
        self._lenient = lenient
        self._open: list[Message] = []

    # ------------------------------------------------------------------------------- the open turn

    @property
    def open_messages(self) -> list[Message]:
        """The messages of the turn that is not committed yet."""
        return list(self._open)

    def append(self, *messages: Message) -> None:
        """Add messages to the open turn. Raises `InvalidMessagesError` for malformed ones."""
        if messages:
            self._open += check_messages(list(messages))

    def discard(self) -> None:
        """Drop the open turn."""
        self._open.clear()

    def commit(self, *messages: Message, idempotency_key: str | None = None) -> Answer | None:
        """Commit the open turn, with last messages if there are any.

        The same key commits once and answers the same again. Raises `IncompleteTurnError` while an
        answer is missing (or returns None, see above), and what storing it raises; then the turn
        stays open, and can be committed again.
        """
        self.append(*messages)
        turn = tuple(self._open)
        try:
            self._check(turn)
        except IncompleteTurnError:
            if not self._drops_incomplete:
                raise
            self._open.clear()
            return None
        sent = LenientTurn(turn) if self._lenient else TurnToCommit(turn)
        key = idempotency_key or uuid.uuid4().hex
        request = IdempotentRequest.of("POST turns", key, {"messages": list(turn)})
        committed = self._commit(self.key, sent, request)
        self._open.clear()
        if committed.turn is None:
            return committed.answer
        return self._after_commit(committed.answer, request)

    def commit_turn(
        self, messages: Sequence[Message], *, idempotency_key: str | None = None
    ) -> Answer | None:
        """Commit a whole turn, whatever is open."""
        kept, self._open = self._open, []
        try:
            return self.commit(*messages, idempotency_key=idempotency_key)
        finally:
            self._open = kept

    def drain(self) -> None:
        """Do what commits have left to do, if it is done in this process."""
        self._services.drain()

    def waiting(self) -> list[int]:
        """The turns whose doorbell has not been answered in this process, oldest first."""
        waiting = self._services.waiting() if self._services.waiting else []
        return [ring.turn for key, ring in waiting if key == self.key]

    # --------------------------------------------------------------------------------- what is read

    def session(self) -> Session | None:
        """The session's counters; None before the first commit."""
        return self._services.store.read_session(self.key, None)[0]

    def memory(self) -> WorkingMemory | None:
        """Working memory; None before the first commit and after it has expired."""
        memory = self._services.store.load(self.key)
        if memory is None or memory.session.status is not SessionStatus.LIVE:
            return None
        return None if memory.session.expires_at <= self._services.clock() else memory

    def regions(self) -> Regions:
        """Head, window and tail; all empty when there is no working memory."""
        memory = self.memory()
        return split_regions(memory) if memory else Regions((), (), ())

    def read_context(
        self, max_tokens: int | None = None, *, incoming: Sequence[Message] = ()
    ) -> Context | None:
        """The context with its regions and tokens; None when there is no working memory.

        Raises `BudgetTooSmallError`.
        """
        memory = self.memory()
        if memory is None:
            return None
        return self._services.context.assemble(
            memory, ContextRequest(max_tokens=max_tokens, incoming=tuple(incoming))
        )

    def context(
        self, max_tokens: int | None = None, *, incoming: Sequence[Message] = ()
    ) -> list[Message]:
        """The messages of the context, to be sent as they are; the incoming ones come last."""
        context = self.read_context(max_tokens, incoming=incoming)
        return repaired(context.messages) if context else list(incoming)

    def window_messages(self) -> list[dict[str, Any]]:
        """The window as messages, in mm-memory's form: a summary is one of the assistant's.

        Its `metadata` says what it stands for.
        """
        found: list[dict[str, Any]] = []
        for entry in self.regions().window:
            if isinstance(entry, Summary):
                found.append(self._summary_message(entry))
            else:
                found += [dict(one) for one in entry.conversation]
        return found

    # ---------------------------------------------------------------------------------------- pins

    def pins(self) -> list[Pin]:
        """The pins that hold, oldest first."""
        memory = self.memory()
        return list(memory.pins) if memory else []

    def all_pins(self) -> list[Pin]:
        """The pins that hold and those taken back since pins were folded last, oldest first."""
        if self.memory() is None:
            return []
        folded = max((pin.rev for pin in self._former(PinStatus.FOLDED)), default=-1)
        gone = [pin for pin in self._former(PinStatus.INVALIDATED) if pin.rev > folded]
        return sorted([*self.pins(), *gone], key=lambda pin: pin.pin_id)

    def add_pin(self, text: str) -> Pin:
        """Pin a fact by hand. Raises `InvalidPinError`, or `SessionNotFoundError`."""
        request = IdempotentRequest.of("POST pins", uuid.uuid4().hex, {"text": text})
        answer = self._services.pins.add(self.key, PinInput(text=text), request)
        return self._services.pins.get(self.key, answer.body["pin_id"])

    def invalidate_pin(self, pin_id: str) -> Pin:
        """Take a pin back. Raises `PinNotFoundError`."""
        given = PinInput(status=PinStatus.INVALIDATED)
        return self._services.pins.change(self.key, pin_id, given)

    def sources_of(self, pin: Pin) -> list[str]:
        """The ids of the question and the answer of each turn that a pin came from.

        A message's id is its own member `id`, else the turn's id and the message's place in it.
        """
        session = self.session()
        turns = [
            turn
            for number in (pin.sources if session else ())
            for turn in self._turns(session, number, number)
        ]
        return [one for turn in turns for one in _ids_of(turn)]

    def system_prompt(self, base: str = "") -> str:
        """A system prompt with the facts to respect after `base`; `base` alone without any."""
        pins = self.pins()
        facts = f"{pins_text(pins)}\n{RESPECT}" if pins else ""
        return "\n\n".join(part for part in (base, facts) if part)

    # ------------------------------------------------------------------------------ the transcript

    def turns(self, offset: int = 0, limit: int | None = None) -> list[Turn]:
        """Committed turns word for word: `limit` of them after the first `offset`."""
        if offset < 0 or (limit is not None and limit < 0):
            raise ValueError("offset and limit must not be below 0")
        session = self.session()
        if session is None or limit == 0:
            return []
        last = session.committed_through if limit is None else offset + limit
        return list(self._turns(session, offset + 1, last))

    def transcript(self) -> list[Message]:
        """Every message that was ever committed."""
        return [message for turn in self.turns() for message in turn.messages]

    def interactions(self) -> list[Message]:
        """What users said and the final answers, without tool traffic and system messages."""
        return [message for turn in self.turns() for message in _spoken(turn)]

    def recover(self) -> None:
        """Bring an expired working memory back as it was, and do what is left to do."""
        session = self.session()
        if session is None:
            return
        sets = {"updated_at": self._services.clock()}
        self._services.store.write(Change(key=self.key, epoch=session.epoch, sets=sets))
        self.drain()

    # -------------------------------------------------------------------------------------- private

    def _check(self, turn: Sequence[Message]) -> None:
        if not turn:
            raise IncompleteTurnError([("messages", "there is no open turn")])
        if self._lenient:
            LenientTurn(tuple(turn)).check()
        else:
            check_turn(turn)

    def _after_commit(self, answer: Answer, request: IdempotentRequest) -> Answer:
        if self._settings.pin_mode == "sync":
            answer = self._services.judge_now(self.key, answer, request)
        if self._drains:
            self.drain()
        return answer

    def _former(self, status: PinStatus) -> Iterable[Pin]:
        position: str | None = None
        while True:
            page = self._services.store.list_former_pins(self.key, status, PIN_PAGE, position)
            yield from page.items
            position = page.next_position
            if position is None:
                return

    def _turns(self, session: Session | None, first: int, last: int) -> Sequence[Turn]:
        return self._services.transcript.turns(session, first, last) if session else ()

    def _summary_message(self, summary: Summary) -> dict[str, Any]:
        metadata: dict[str, Any] = {"summary": True}
        turns = self._turns(self.session(), summary.from_turn, summary.to_turn)
        if summary.kind is SummaryKind.ROUND:
            ids = _ids_of(turns[0])
            metadata |= {
                "summary_type": "current_round",
                "original_user_msg_id": ids[0],
                "original_assistant_msg_id": ids[-1],
            }
        else:
            metadata |= {
                "summary_type": "history",
                "original_message_count": sum(len(turn.conversation) for turn in turns),
            }
        return {"role": "assistant", "content": summary.text, "metadata": metadata}


def _spoken(turn: Turn) -> list[Message]:
    asked = itertools.takewhile(lambda one: one["role"] == "user", turn.conversation)
    return [*asked, turn.conversation[-1]]


def _ids_of(turn: Turn) -> list[str]:
    """The ids of a turn's first question and its final answer."""
    places = [at for at, one in enumerate(turn.messages) if not is_leading(one)]
    return [
        str(turn.messages[at].get("id") or f"{turn.turn_id}:{at}") for at in (places[0], places[-1])
    ]
