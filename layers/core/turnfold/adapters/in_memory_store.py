"""Working memory in this process, for tests: the guarantees of the table without its calls."""

import copy
import threading
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from turnfold.adapters.change_rules import check_change
from turnfold.adapters.dynamo_keys import created_key, position_of, read_position, shard_of
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.memory import Change, IdempotencyRecord, Page
from turnfold.application.ports.models import ModelAnswer
from turnfold.domain.errors import GuardFailedError, StoreUnavailableError
from turnfold.domain.memory import WorkingMemory, assemble_memory
from turnfold.domain.pins import Pin, PinStatus
from turnfold.domain.sessions import Profile, Session, SessionKey, SessionStatus, SummaryRef
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn
from turnfold.domain.usage import Usage

if TYPE_CHECKING:
    from turnfold.domain.open_turn import OpenTurn


@dataclass(slots=True)
class StoredSession:
    """The items of one session, as they are in the table."""

    session: Session
    profile: Profile = field(default_factory=Profile)
    has_profile: bool = True
    turns: dict[int, Turn] = field(default_factory=dict)
    summaries: dict[SummaryRef, Summary] = field(default_factory=dict)
    pins: dict[str, Pin] = field(default_factory=dict)
    former_pins: dict[str, Pin] = field(default_factory=dict)
    idempotency: dict[str, IdempotencyRecord] = field(default_factory=dict)
    usage: dict[tuple[str, str], Usage] = field(default_factory=dict)
    vectors: dict[int, array[float]] = field(default_factory=dict)
    vector_marks: dict[str, int] = field(default_factory=dict)


class InMemoryStore:
    """A `MemoryStore`, atomic under one lock.

    Whatever is handed in or out is copied where it could be changed, so that no caller can reach
    into the store. `lock` and `sessions` are for the adapters beside it that stand for other parts
    of the same table.
    """

    def __init__(self, clock: Clock) -> None:
        """Begin empty; the clock tells when records expire."""
        self._clock = clock
        self._lock = threading.RLock()
        self._sessions: dict[SessionKey, StoredSession] = {}
        self.open_turns: dict[SessionKey, OpenTurn] = {}
        self.open_turn_records: dict[tuple[SessionKey, str], IdempotencyRecord] = {}
        self.answers: dict[SessionKey, dict[str, tuple[ModelAnswer, datetime]]] = {}
        """Apart from the sessions, as in the table, where an item may outlive its session."""

    @property
    def lock(self) -> threading.RLock:
        """Held while anything is read or written."""
        return self._lock

    @property
    def sessions(self) -> dict[SessionKey, StoredSession]:
        """All that is stored; to be touched under the lock only."""
        return self._sessions

    def read_session(
        self, key: SessionKey, key_hash: str | None
    ) -> tuple[Session | None, IdempotencyRecord | None]:
        """See `MemoryStore`."""
        with self._lock:
            items = self._sessions.get(key)
            if items is None:
                return None, None
            record = items.idempotency.get(key_hash or "")
            if record is not None and record.expires_at <= self._clock():
                record = None
            return _own_session(items.session), record and _own_record(record)

    def load(self, key: SessionKey, *, with_turns: bool = True) -> WorkingMemory | None:
        """See `MemoryStore`."""
        with self._lock:
            items = self._sessions.get(key)
            if items is None:
                return None
            if items.session.status is not SessionStatus.LIVE:
                return WorkingMemory(_own_session(items.session), Profile(), (), (), ())
            memory = assemble_memory(
                _own_session(items.session),
                _own_profile(items.profile),
                [_own_turn(turn) for turn in items.turns.values()],
                list(items.summaries.values()),
                list(items.pins.values()),
                with_turns=with_turns,
            )
        if memory is None:
            raise StoreUnavailableError("working memory is incomplete")
        return memory

    def write(self, change: Change) -> None:
        """See `MemoryStore`; raises `ValueError` for a change of over 100 items."""
        check_change(change)
        with self._lock:
            items = self._sessions.get(change.key)
            failed = [
                *self._failed_session(items, change),
                *self._failed_puts(items, change),
            ]
            if failed:
                raise GuardFailedError(*failed)
            if change.closes is not None:
                del self.open_turns[change.key]
            if change.creates is not None:
                items = self._sessions[change.key] = StoredSession(_own_session(change.creates))
            elif items is not None:
                sets = {name: _own(value) for name, value in change.sets.items()}
                revision = items.session.revision + change.visible
                items.session = replace(items.session, **sets, revision=revision)
            if items is not None:
                _remove(items, change)
                _put(items, change)

    def get_turn(self, key: SessionKey, number: int) -> Turn | None:
        """See `MemoryStore`."""
        with self._lock:
            items = self._sessions.get(key)
            turn = items.turns.get(number) if items else None
            return turn and _own_turn(turn)

    def get_pin(self, key: SessionKey, pin_id: str) -> Pin | None:
        """See `MemoryStore`."""
        with self._lock:
            items = self._sessions.get(key)
            return (items.pins.get(pin_id) or items.former_pins.get(pin_id)) if items else None

    def list_former_pins(
        self, key: SessionKey, status: PinStatus, limit: int, position: str | None
    ) -> Page[Pin]:
        """See `MemoryStore`."""
        with self._lock:
            items = self._sessions.get(key)
            pins = sorted(items.former_pins.values(), key=lambda pin: pin.pin_id) if items else []
        rest = [pin for pin in pins if position is None or pin.pin_id > position]
        # Like the table, which reads `limit` items and then sorts out those of another status.
        page = rest[:limit]
        found = tuple(pin for pin in page if pin.status is status)
        return Page(found, page[-1].pin_id if len(page) == limit else None)

    def list_sessions(
        self, tenant: str, user_id: str | None, limit: int, position: str | None
    ) -> Page[Session]:
        """See `MemoryStore`."""
        before = read_position(tenant, position)[1] if position is not None else None
        with self._lock:
            found = {
                created_key(items.session.key, items.session.created_at): items.session
                for items in self._sessions.values()
                if items.session.key.tenant == tenant
                and items.session.is_listed
                and (user_id is None or items.session.user_id == user_id)
            }
        order = sorted((one for one in found if before is None or one < before), reverse=True)
        page = [_own_session(found[one]) for one in order[:limit]]
        return Page(tuple(page), position_of(page[-1]) if len(page) == limit else None)

    def postpone(self, session: Session, due_at: datetime) -> None:
        """See `MemoryStore`."""
        with self._lock:
            items = self._sessions.get(session.key)
            if (
                items is None
                or items.session.epoch != session.epoch
                or items.session.due_at != session.due_at
            ):
                raise GuardFailedError("session")
            items.session = replace(items.session, due_at=due_at)

    def due_sessions(self, shard: int, now: datetime, limit: int) -> tuple[SessionKey, ...]:
        """See `MemoryStore`."""
        with self._lock:
            due = [
                (items.session.due_at, key)
                for key, items in self._sessions.items()
                if items.session.due_at is not None
                and items.session.due_at <= now
                and shard_of(key) == shard
            ]
        return tuple(key for _, key in sorted(due, key=lambda one: one[0])[:limit])

    def get_model_answer(self, key: SessionKey, step_id: str) -> ModelAnswer | None:
        """See `MemoryStore`."""
        with self._lock:
            kept = self.answers.get(key, {}).get(step_id)
            if kept is None:
                return None
            answer, expires_at = kept
            return answer if expires_at > self._clock() else None

    def put_model_answer(
        self,
        key: SessionKey,
        step_id: str,
        answer: ModelAnswer,
        expires_at: datetime,
        epoch: str,
        usage: Usage,
    ) -> None:
        """See `MemoryStore`."""
        with self._lock:
            items = self._live(key, epoch)
            if items is not None:
                self.answers.setdefault(key, {})[step_id] = (answer, expires_at)
                _add_usage(items, usage)

    def add_usage(self, key: SessionKey, epoch: str, usage: Usage) -> None:
        """See `MemoryStore`."""
        with self._lock:
            items = self._live(key, epoch)
            if items is not None:
                _add_usage(items, usage)

    def read_usage(self, key: SessionKey) -> Sequence[Usage]:
        """See `MemoryStore`."""
        with self._lock:
            items = self._sessions.get(key)
            return list(items.usage.values()) if items else []

    def _live(self, key: SessionKey, epoch: str) -> StoredSession | None:
        items = self._sessions.get(key)
        able = (SessionStatus.LIVE, SessionStatus.REBUILDING)
        if items is None or items.session.status not in able:
            return None
        return items if items.session.epoch == epoch else None

    def _failed_session(self, items: StoredSession | None, change: Change) -> list[str]:
        if change.creates is not None:
            holds = items is None
        else:
            holds = (
                items is not None
                and items.session.status is SessionStatus.LIVE
                and items.session.epoch == change.epoch
                and all(
                    getattr(items.session, name) == value for name, value in change.guards.items()
                )
            )
        return [] if holds else ["session"]

    def _failed_puts(self, items: StoredSession | None, change: Change) -> list[str]:
        failed = []
        open_turn = self.open_turns.get(change.key)
        if change.closes is not None and (open_turn is None or open_turn.ref != change.closes):
            failed.append("open_turn")
        if items is not None and change.idempotency is not None:
            record = items.idempotency.get(change.idempotency.key_hash)
            if record is not None and record.expires_at > self._clock():
                failed.append("idempotency")
        if items is not None and any(turn.number in items.turns for turn in _turns(change)):
            failed.append("turn")
        return failed


def _remove(items: StoredSession, change: Change) -> None:
    for number in change.removes_turns:
        items.turns.pop(number, None)
    for ref in change.removes_summaries:
        items.summaries.pop(ref, None)
    for pin_id in change.removes_pins:
        items.pins.pop(pin_id, None)
        items.former_pins.pop(pin_id, None)


def _put(items: StoredSession, change: Change) -> None:
    items.turns.update({turn.number: _own_turn(turn) for turn in _turns(change)})
    if change.profile is not None:
        items.profile = _own_profile(change.profile)
    for record in (change.idempotency, change.amends):
        if record is not None:
            items.idempotency[record.key_hash] = _own_record(record)
    if change.usage is not None:
        _add_usage(items, change.usage)
    items.summaries.update({summary.ref: summary for summary in change.summaries})
    for pin in change.pins:
        active = pin.status is PinStatus.ACTIVE
        kept, other = (items.pins, items.former_pins) if active else (items.former_pins, items.pins)
        kept[pin.pin_id] = pin
        other.pop(pin.pin_id, None)


def _turns(change: Change) -> tuple[Turn, ...]:
    return change.more_turns if change.turn is None else (change.turn, *change.more_turns)


def _add_usage(items: StoredSession, more: Usage) -> None:
    known = items.usage.get((more.step, more.model), Usage(more.step, more.model, calls=0))
    items.usage[more.step, more.model] = replace(
        known,
        calls=known.calls + more.calls,
        prompt_tokens=known.prompt_tokens + more.prompt_tokens,
        completion_tokens=known.completion_tokens + more.completion_tokens,
    )


def _own(value: Any) -> Any:  # noqa: ANN401 - any field of a session
    return copy.deepcopy(value) if isinstance(value, Mapping) else value


def _own_session(session: Session) -> Session:
    policy = copy.deepcopy(dict(session.settings.policy))
    return replace(session, settings=replace(session.settings, policy=policy))


def _own_profile(profile: Profile) -> Profile:
    return copy.deepcopy(profile)


def _own_turn(turn: Turn) -> Turn:
    return replace(turn, messages=copy.deepcopy(turn.messages))


def _own_record(record: IdempotencyRecord) -> IdempotencyRecord:
    return replace(record, body=copy.deepcopy(record.body))
