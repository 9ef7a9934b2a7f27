"""The store of working memory, and what it is given and gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from turnfold.application.ports.models import ModelAnswer
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.open_turn import OpenTurnRef
from turnfold.domain.pins import Pin, PinStatus
from turnfold.domain.sessions import Profile, Session, SessionKey, SummaryRef
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn
from turnfold.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """What a request with an Idempotency-Key was answered. `key_hash` covers route and key."""

    key_hash: str
    request_hash: str
    status: int
    body: Mapping[str, Any]
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """One atomic write to one session.

    It happens completely or not at all. Either `creates` is given (then there must be no session of
    that key, live or erasing), or the session must be live, have the `epoch`, and have exactly the
    values of `guards`; then its fields named in `sets` get new values and `revision` grows by one.
    `guards` and `sets` name fields of `Session`. `amends` replaces an idempotency record.
    `closes` drops an open turn, which must be in that state. A `Turn`
    and an `IdempotencyRecord` that are put must not exist yet (an expired idempotency record counts
    as absent); other items are replaced. A pin that is not active is kept, but apart from working
    memory (putting it removes the active item of the same id). `removes_pins` deletes pins of any
    status. `usage` is added to what the session has cost. A change that is not `visible` is
    bookkeeping: `revision` stays.

    Raises (by `MemoryStore.write`) `GuardFailedError` naming the failed parts: "session" (missing,
    erasing, another epoch, or a guard), "idempotency", "turn", "open_turn".
    """

    key: SessionKey
    epoch: str = ""
    creates: Session | None = None
    guards: Mapping[str, Any] = field(default_factory=dict)
    sets: Mapping[str, Any] = field(default_factory=dict)
    turn: Turn | None = None
    more_turns: tuple[Turn, ...] = ()
    profile: Profile | None = None
    idempotency: IdempotencyRecord | None = None
    amends: IdempotencyRecord | None = None
    summaries: tuple[Summary, ...] = ()
    pins: tuple[Pin, ...] = ()
    removes_turns: tuple[int, ...] = ()
    removes_summaries: tuple[SummaryRef, ...] = ()
    removes_pins: tuple[str, ...] = ()
    closes: OpenTurnRef | None = None
    usage: Usage | None = None
    visible: bool = True


@dataclass(frozen=True, slots=True)
class Page[Item]:
    """Some items of a list, and where the next ones begin (None at the end)."""

    items: tuple[Item, ...]
    next_position: str | None = None


class MemoryStore(Protocol):
    """Working memory of all sessions. Reads see every write that was acknowledged before."""

    def read_session(
        self, key: SessionKey, key_hash: str | None
    ) -> tuple[Session | None, IdempotencyRecord | None]:
        """The session and the idempotency record of that hash, in one call."""
        ...

    def load(self, key: SessionKey, *, with_turns: bool = True) -> WorkingMemory | None:
        """All working memory of a session; None if there is no such session.

        What it returns is complete (`assemble_memory`); it reads again when a query was a mixture.
        Of a session that is not live there is nothing but the session itself. `with_turns` false
        leaves out the turns, of which there may be thousands after an import.
        """
        ...

    def write(self, change: Change) -> None:
        """Do all of a change or nothing."""
        ...

    def get_turn(self, key: SessionKey, number: int) -> Turn | None:
        """A turn that still stands word for word in working memory."""
        ...

    def get_pin(self, key: SessionKey, pin_id: str) -> Pin | None:
        """A pin of any status."""
        ...

    def list_former_pins(
        self, key: SessionKey, status: PinStatus, limit: int, position: str | None
    ) -> Page[Pin]:
        """Pins that are not active, oldest first. A page may be short and still have a next one."""
        ...

    def list_sessions(
        self, tenant: str, user_id: str | None, limit: int, position: str | None
    ) -> Page[Session]:
        """Sessions of a tenant, or of one of its users, newest first; without erasing ones."""
        ...

    def postpone(self, session: Session, due_at: datetime) -> None:
        """Let the sweeper look at a session of any status again at another time.

        Raises `GuardFailedError` unless the session has that epoch and `due_at` still.
        """
        ...

    def due_sessions(self, shard: int, now: datetime, limit: int) -> tuple[SessionKey, ...]:
        """Sessions of a shard (0 to `DUE_SHARDS` - 1) whose `due_at` has passed, oldest first."""
        ...

    def get_model_answer(self, key: SessionKey, step_id: str) -> ModelAnswer | None:
        """A paid answer of a step that may have crashed afterwards."""
        ...

    def put_model_answer(
        self,
        key: SessionKey,
        step_id: str,
        answer: ModelAnswer,
        expires_at: datetime,
        epoch: str,
        usage: Usage,
    ) -> None:
        """Keep a paid answer and add to what the session has cost, in one write.

        Nothing is kept unless the session has that epoch and is live, or is being made anew.
        """
        ...

    def add_usage(self, key: SessionKey, epoch: str, usage: Usage) -> None:
        """Add to what the session has cost; nothing is kept unless it is live and has that epoch.

        Usage that belongs to a change goes with it (`Change.usage`).
        """
        ...

    def read_usage(self, key: SessionKey) -> Sequence[Usage]:
        """What the session has cost, one entry for each step and model."""
        ...
