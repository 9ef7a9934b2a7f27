"""What the use cases need from the outside. Adapters implement these protocols."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from turnfold.domain.erasures import Erasure, Removed
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.messages import Message
from turnfold.domain.open_turn import OpenTurn, OpenTurnRef
from turnfold.domain.passages import Passage
from turnfold.domain.pins import Pin, PinStatus
from turnfold.domain.segments import Segment
from turnfold.domain.sessions import Profile, Session, SessionKey, SummaryRef, TurnRange
from turnfold.domain.snapshots import Snapshot
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn
from turnfold.domain.usage import Usage

type Clock = Callable[[], datetime]
"""The time now, in UTC."""

type NewId = Callable[[], str]
"""An id that sorts by time and is never repeated."""


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


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model said, as it came; nothing in it is trusted yet.

    `finish_reason` is "stop" for a normal end. `text` is None where the model gave none.
    """

    text: str | None
    finish_reason: str
    model: str
    refusal: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to the model: an instruction and fenced data.

    `schema` asks for strict JSON of that JSON schema. `purpose` names the step for logs.
    """

    purpose: str
    instruction: str
    data: str
    schema: Mapping[str, Any] | None = None


class OpenTurnStore(Protocol):
    """The open turns, which are no part of working memory and need no session."""

    def read_open_turn(
        self, key: SessionKey, key_hash: str | None = None
    ) -> tuple[OpenTurn | None, IdempotencyRecord | None]:
        """The open turn, unless its time is over, and the idempotency record of that hash."""
        ...

    def append_open_turn(
        self,
        key: SessionKey,
        before: OpenTurnRef | None,
        draft_id: str,
        messages: Sequence[Message],
        record: IdempotencyRecord,
    ) -> None:
        """Append to the open turn, or begin one of that id if there is none before.

        Raises `GuardFailedError`: "open_turn" if it is not as it was, "idempotency" if the record
        exists, "session" if the session is being erased.
        """
        ...

    def drop_open_turn(self, key: SessionKey, ref: OpenTurnRef) -> None:
        """Drop the open turn. Raises `GuardFailedError("open_turn")` if it is not as it was."""
        ...


class MemoryStore(Protocol):
    """Working memory of all sessions. Reads see every write that was acknowledged before."""

    def read_session(
        self, key: SessionKey, key_hash: str | None
    ) -> tuple[Session | None, IdempotencyRecord | None]:
        """The session and the idempotency record of that hash, in one call."""
        ...

    def load(self, key: SessionKey) -> WorkingMemory | None:
        """All working memory of a session; None if there is no such session.

        What it returns is complete (`assemble_memory`); it reads again when a query was a mixture.
        Of a session that is not live there is nothing but the session itself.
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


class Archive(Protocol):
    """The transcript: one record per turn, never changed, later many in one segment."""

    def put_record(self, key: SessionKey, number: int, turn_id: str, record: bytes) -> None:
        """Store a new record; a record of the same number and turn id is never overwritten."""
        ...

    def get_record(self, key: SessionKey, number: int, turn_id: str) -> bytes | None:
        """One record."""
        ...

    def list_records(
        self, key: SessionKey, from_turn: int, to_turn: int
    ) -> Sequence[tuple[int, str]]:
        """(number, turn id) of all records in that range, ascending.

        A number may occur more than once: a commit that lost a race leaves its record behind. The
        hash chain tells which one counts (`turnfold.domain.transcript`).
        """
        ...

    def remove_records(self, key: SessionKey, names: Sequence[tuple[int, str]]) -> None:
        """Remove records that stand in a segment as well, at most 1,000; absent ones are fine."""
        ...

    def put_segment(self, key: SessionKey, segment: Segment, data: bytes) -> None:
        """Store a segment; one of the same name is never overwritten."""
        ...

    def get_segment(self, key: SessionKey, segment: Segment) -> bytes | None:
        """One segment."""
        ...

    def list_segments(self, key: SessionKey) -> Sequence[Segment]:
        """All segments of a session, ascending; for a moment, one may be part of another."""
        ...

    def remove_segments(self, key: SessionKey, segments: Sequence[Segment]) -> None:
        """Remove segments that stand in a larger one as well."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One version of an object, or a delete marker, by the object's name."""

    name: str
    version: str


class SessionObjects(Protocol):
    """All objects of a session, whatever they hold, with every version of them."""

    def list_versions(self, key: SessionKey, limit: int) -> Sequence[ObjectVersion]:
        """Some of the session's versions and delete markers, at most `limit` (1 to 1,000)."""
        ...

    def remove_versions(self, versions: Sequence[ObjectVersion]) -> None:
        """Remove exactly these versions for good (at most 1,000); absent ones count as removed.

        Raises `StoreError` if one is left, as under a retention that may not be passed over.
        """
        ...


class Erasures(Protocol):
    """Erasures under way, their receipts, and the table's part of the work.

    Every write that removes something happens only if the session is still being erased by the
    same erasure; otherwise `GuardFailedError`. So an eraser that wakes up late harms no session
    that has begun anew under the same id.
    """

    def begin(self, erasure: Erasure, session: Session) -> None:
        """Mark a session as erasing and keep its erasure, in one write.

        With an erasure of a user, whose receipt is there already, one more session is counted.
        Raises `GuardFailedError` unless the session has that epoch still, is not being erased yet
        and is under no legal hold.
        """
        ...

    def begin_user(self, erasure: Erasure) -> None:
        """Keep the erasure of a user. Raises `GuardFailedError` if one of that user is at work."""
        ...

    def get(self, tenant: str, erasure_id: str) -> Erasure | None:
        """An erasure of that tenant."""
        ...

    def of_session(self, key: SessionKey) -> str | None:
        """The erasure that removed a session of that id within the last two days."""
        ...

    def of_user(self, tenant: str, user_id: str) -> str | None:
        """The erasure that was asked for that user within the last two days."""
        ...

    def remove_items(self, session: Session) -> int:
        """Remove some items of the session, but not the session itself; how many it were.

        They are counted on the receipt. 0 means that none is left.
        """
        ...

    def note_objects(self, session: Session, removed: Removed) -> None:
        """Count removed objects and versions on the receipt."""
        ...

    def finish(self, session: Session, erasure: Erasure, now: datetime) -> None:
        """Remove the session itself. This also ends an erasure of one session."""
        ...

    def mark_listed(self, erasure: Erasure, due_at: datetime | None, *, listed: bool) -> None:
        """Say whether all sessions of the user are marked, and when the sweeper looks again."""
        ...

    def close_user(self, erasure: Erasure, now: datetime) -> bool:
        """End the erasure of a user if all its sessions are marked and gone; whether it ended."""
        ...

    def due_users(self, now: datetime, limit: int) -> Sequence[tuple[str, str]]:
        """(tenant, erasure id) of users' erasures whose time to be looked at has come."""
        ...


class Snapshots(Protocol):
    """Snapshots of working memories (`domain.snapshots`), beside the transcript."""

    def put(self, key: SessionKey, name: str, data: bytes) -> None:
        """Store a snapshot under a name of letters, digits and `-`."""
        ...

    def get(self, key: SessionKey, name: str) -> bytes | None:
        """One snapshot."""
        ...

    def names(self, key: SessionKey) -> Sequence[str]:
        """The names of all snapshots of a session, ascending."""
        ...

    def remove(self, key: SessionKey, names: Sequence[str]) -> None:
        """Remove snapshots of no more use; absent ones are fine."""
        ...

    def discard(self, key: SessionKey, name: str) -> None:
        """Remove a snapshot for good, that was made of a session which is gone meanwhile."""
        ...


@dataclass(frozen=True, slots=True)
class Link:
    """Where a file can be fetched without credentials, until when."""

    url: str
    expires_at: datetime


class ExportFiles(Protocol):
    """Files that are made to be fetched soon; they are removed by themselves after a day."""

    def store(self, key: SessionKey, name: str, chunks: Iterable[bytes]) -> Link:
        """Store the chunks as one file of a session, holding few of them at a time."""
        ...


class Shelf(Protocol):
    """Takes the working memory of a session out of the table, and puts it back, step by step.

    live → `put_away` → expired → `begin_restore` → restoring → `finish_restore` → live. Every step
    happens only in its state, with the session's epoch and snapshot as given; else it raises
    `GuardFailedError`. So a step that comes late harms nothing, and any step may be repeated.
    """

    def put_away(
        self,
        session: Session,
        snapshot: str,
        due_at: datetime,
        sets: Mapping[str, Any] | None = None,
    ) -> None:
        """Say that the memory stands in that snapshot, if the session has that `revision` still.

        `sets` are further fields of the session that the snapshot goes with.
        """
        ...

    def open(
        self, session: Session, snapshot: str, due_at: datetime, sets: Mapping[str, Any]
    ) -> None:
        """Say that the memory of a session that is being made stands in that snapshot: expired.

        The session must have the status that it has here.
        """
        ...

    def give_up(self, session: Session, due_at: datetime) -> None:
        """Say that the snapshot of a session that is away is to be replaced: rebuilding."""
        ...

    def clear(self, session: Session, keep: Snapshot | None = None) -> int:
        """Remove some items of working memory, but not the session; how many it were.

        Of an expired session all; of one that is being restored those that are not of the snapshot.
        """
        ...

    def rest(self, session: Session) -> None:
        """Say that nothing is to be done about an expired session."""
        ...

    def begin_restore(self, session: Session) -> None:
        """From now on nothing is cleared that the snapshot holds."""
        ...

    def fill(self, session: Session, part: Snapshot) -> None:
        """Put items of the snapshot back, at most 90 of them, with the profile."""
        ...

    def finish_restore(self, session: Session, now: datetime, due_at: datetime) -> None:
        """All items are back: the session is live again."""
        ...


class ArchiveBell(Protocol):
    """Says "look after this session's archive": roll up, put away, or erase.

    At least once, in order per session, and never to two at a time.
    """

    def ring(self, key: SessionKey, ring_id: str) -> None:
        """Ring for a session. Raises `StoreUnavailableError` or `ThrottledError`."""
        ...

    def ring_user(self, tenant: str, erasure_id: str, ring_id: str) -> None:
        """Ring for the erasure of a user. Raises the same."""
        ...

    def postpone(self, receipt: str, seconds: int) -> None:
        """See `Doorbell`."""
        ...


@dataclass(frozen=True, slots=True)
class PieceName:
    """Names a piece of a session's search index.

    `shelf` says what the pieces on it hold and in which version (letters, digits, dots and dashes);
    the range is that of its turns.
    """

    shelf: str
    covers: TurnRange


class RecallIndex(Protocol):
    """Pieces of search indexes, kept by session and epoch. A piece is never changed, only removed.

    Raises `ThrottledError`, `StoreUnavailableError` and `StoreError`.
    """

    def list_pieces(self, key: SessionKey, epoch: str) -> Sequence[PieceName]:
        """The pieces that there are, in the order of shelf and range."""
        ...

    def get_piece(self, key: SessionKey, epoch: str, name: PieceName) -> bytes | None:
        """One piece; None if it is not there (any more)."""
        ...

    def put_piece(self, key: SessionKey, epoch: str, name: PieceName, body: bytes) -> None:
        """Store a piece; the same name always gets the same content, so it may be put again."""
        ...

    def remove_pieces(self, key: SessionKey, epoch: str, names: Sequence[PieceName]) -> None:
        """Remove pieces, whether or not they are there."""
        ...


class Embedder(Protocol):
    """The model that turns texts into vectors."""

    @property
    def name(self) -> str:
        """What tells its vectors from those of another: model and dimensions."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, none of which is blank, in their order.

        All have the same length. Raises `ModelFailedError`.
        """
        ...


class Doorbell(Protocol):
    """Says "look at this session" to the compactor, in order per session, at least once."""

    def ring(self, key: SessionKey, ring_id: str, turn: int, *, forced: bool = False) -> None:
        """Ring once. `ring_id` tells rings apart; `turn` is the newest turn known to the ringer.

        `forced` asks to compact though the session's `auto_compression` is off.

        Raises `StoreUnavailableError` or `ThrottledError`.
        """
        ...

    def postpone(self, receipt: str, seconds: int) -> None:
        """Let a message that was received and not dealt with come again after that time.

        Raises `StoreError`; the message then comes again when the queue's own time is over.
        """
        ...


class LanguageModel(Protocol):
    """The model that summarises and judges."""

    @property
    def name(self) -> str:
        """The model's name, for provenance."""
        ...

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """One call, retried at most once by the client. Raises `ModelFailedError`."""
        ...


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A chat model's answer: the message as it came, and what it cost."""

    message: Mapping[str, Any]
    finish_reason: str
    model: str
    usage: Mapping[str, Any]


class ChatModel(Protocol):
    """The model that talks to the user."""

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        model: str | None,
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatReply:
        """One chat completion. Raises `ModelFailedError` or `ModelNotConfiguredError`."""
        ...


class Summariser(Protocol):
    """The deterministic summariser that needs no model."""

    def summarise(self, passages: Sequence[Passage], max_tokens: int) -> str:
        """A summary of at most that many tokens, never empty if a passage has visible text."""
        ...


class PinRule(Protocol):
    """The deterministic pin judgement that needs no model."""

    def propose(self, user_texts: Sequence[str]) -> tuple[str, ...]:
        """Facts worth pinning, quoted from what the user said."""
        ...


class TokenCounter(Protocol):
    """Counts tokens exactly."""

    def count(self, text: str, model: str | None = None) -> int:
        """Tokens of a text by the encoding of that model (o200k_base unless it names another)."""
        ...


class KeyRing(Protocol):
    """Knows who holds an API key."""

    def identify(self, api_key: str) -> "Caller | None":
        """The caller of a key; None if it is not a good key."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, as the credential says."""

    tenant: str
    scopes: frozenset[str]
