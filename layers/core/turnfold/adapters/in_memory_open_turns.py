"""Open turns in this process, for tests, beside the sessions of an `InMemoryStore`."""

import copy
from collections.abc import Sequence

from turnfold.adapters.in_memory_store import InMemoryStore
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.memory import IdempotencyRecord
from turnfold.domain.errors import GuardFailedError
from turnfold.domain.messages import Message
from turnfold.domain.open_turn import OpenTurn, OpenTurnRef
from turnfold.domain.sessions import SessionKey, SessionStatus


class InMemoryOpenTurns:
    """`OpenTurnStore` under the lock of the store."""

    def __init__(self, store: InMemoryStore, clock: Clock) -> None:
        """Keep open turns where that store's commits can close them."""
        self._store = store
        self._clock = clock

    def read_open_turn(
        self, key: SessionKey, key_hash: str | None = None
    ) -> tuple[OpenTurn | None, IdempotencyRecord | None]:
        """See `OpenTurnStore`."""
        with self._store.lock:
            found = self._store.open_turns.get(key)
            if found is not None and found.expires_at <= self._clock():
                found = None
            record = self._record(key, key_hash or "")
        return copy.deepcopy(found), copy.deepcopy(record)

    def append_open_turn(
        self,
        key: SessionKey,
        before: OpenTurnRef | None,
        draft_id: str,
        messages: Sequence[Message],
        record: IdempotencyRecord,
    ) -> None:
        """See `OpenTurnStore`."""
        with self._store.lock:
            found, known = self.read_open_turn(key, record.key_hash)
            stored = self._store.sessions.get(key)
            failed = []
            if stored is not None and stored.session.status is SessionStatus.ERASING:
                failed.append("session")
            if (found.ref if found else None) != before:
                failed.append("open_turn")
            if known is not None:
                failed.append("idempotency")
            if failed:
                raise GuardFailedError(*failed)
            ref = before or OpenTurnRef(draft_id, 0)
            self._store.open_turns[key] = OpenTurn(
                OpenTurnRef(ref.draft_id, ref.pieces + 1),
                (*(found.messages if found else ()), *copy.deepcopy(list(messages))),
                self._clock(),
            )
            self._store.open_turn_records[key, record.key_hash] = record

    def drop_open_turn(self, key: SessionKey, ref: OpenTurnRef) -> None:
        """See `OpenTurnStore`."""
        with self._store.lock:
            found = self._store.open_turns.get(key)
            if found is None or found.ref != ref:
                raise GuardFailedError("open_turn")
            del self._store.open_turns[key]

    def _record(self, key: SessionKey, key_hash: str) -> IdempotencyRecord | None:
        record = self._store.open_turn_records.get((key, key_hash))
        return record if record is not None and record.expires_at > self._clock() else None
