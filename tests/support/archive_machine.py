"""What may happen to conversations in the long run: they rest, are rolled up, made anew, erased.

The rules of `support.conversations_machine` and these, which disturb each other: the process may
die between any two calls of any of them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from support.archive_invariants import check_archived
from support.archive_service import ArchiveService
from support.conversations_machine import Conversations, keys
from support.interference import Crash
from support.invariants import Ledger, check_i5_bounded
from support.stage import KEYS, Stage
from turnfold.domain.erasures import ErasureStatus
from turnfold.domain.errors import (
    CommitConflictError,
    SessionErasingError,
    SessionNotFoundError,
    StoreError,
)
from turnfold.domain.sessions import SessionStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnfold.domain.erasures import Erasure
    from turnfold.domain.sessions import SessionKey

ARCHIVE_CALLS = 20
LATE_CALLS = 8
"""Of a compaction: within these it has read the session, asked the model and written once."""
REFUSALS = (SessionErasingError, SessionNotFoundError, CommitConflictError, StoreError)
EXPIRE_DAYS = 3


class ArchiveStage(Stage):
    """Two sessions, and the archivist."""

    make_service = ArchiveService
    service: ArchiveService

    def __init__(self, model: Any, **settings: Any) -> None:
        super().__init__(model, **{"expire_days": EXPIRE_DAYS, **settings})
        self.gone: dict[SessionKey, set[str]] = {key: set() for key in KEYS}
        self.erasures: dict[SessionKey, Erasure | None] = dict.fromkeys(KEYS)
        self.lives = dict.fromkeys(KEYS, 0)
        self.interference.after.append(self.watch_tombstone)
        self.sending: list[str] = []
        self.sending_as: list[str] = []
        self.alone = False

    def check(self) -> None:
        for key, ledger in self.ledgers.items():
            erasure = self.erasures[key]
            if erasure is not None:
                done = self.service.receipt(erasure).status is ErasureStatus.ERASED
                session, _ = self.service.raw_store.read_session(key, None)
                under_way = session is not None and session.status is SessionStatus.ERASING
                assert done != under_way or session is not None, "I12: neither done nor at work"
            check_archived(self.service, key, ledger, self.gone[key])
        assert not self.faults, self.faults

    def exists(self, key: SessionKey) -> bool:
        session, _ = self.service.raw_store.read_session(key, None)
        usable = (SessionStatus.LIVE, SessionStatus.EXPIRED, SessionStatus.RESTORING)
        return session is not None and session.status in usable

    def commit(self, key: SessionKey, messages: list[dict[str, Any]], name: str = "") -> None:
        """As in any stage; what is acknowledged of a session that is erased since, is gone."""
        user = next(one for one in messages if one["role"] == "user")
        marker = str(user["content"]).split(" ")[0]
        self.sending.append(marker)
        self.sending_as.append(name or marker)
        before = self.lives[key]
        try:
            with suppress(SessionErasingError):
                super().commit(key, messages, name)
        except AssertionError:
            # The answer is that of a life of the session which is over.
            if self.lives[key] == before:
                raise
        finally:
            self.sending.pop()
            self.sending_as.pop()
        if self.lives[key] != before:
            self.ledgers[key].answered.pop(marker, None)
            self.requests.pop((key, name or marker), None)
            self.sent_at.pop((key, name or marker), None)

    def patch(self, key: SessionKey, changes: dict[str, Any]) -> None:
        with suppress(*REFUSALS):
            super().patch(key, changes)

    def add_pin(self, key: SessionKey, text: str, replaces: str | None = None) -> None:
        with suppress(*REFUSALS):
            super().add_pin(key, text, replaces)

    def delete(self, key: SessionKey) -> None:
        """Ask for an erasure. What was sent until the tombstone must be gone when it is done."""
        with suppress(SessionNotFoundError, CommitConflictError):
            self.erasures[key] = self.service.delete.session(key)

    def watch_tombstone(self, port: str, method: str, given: tuple[Any, ...], _: object) -> None:
        if (port, method) == ("erasures", "begin"):
            self.forget(given[1].key)

    def forget(self, key: SessionKey) -> None:
        """Clients know nothing of the session any more."""
        self.lives[key] += 1
        ledger = self.ledgers[key]
        self.gone[key] |= set(ledger.sent) - set(self.sending)
        left = {one: ledger.sent[one] for one in self.sending if one in ledger.sent}
        self.ledgers[key] = Ledger(sent=left)
        for name in [one for one in self.requests if one[0] == key]:
            if name[1] in self.sending_as:
                self.requests[name] = None
                continue
            self.requests.pop(name)
            self.sent_at.pop(name, None)

    def rebuild(self, key: SessionKey) -> None:
        with suppress(*REFUSALS):
            self.service.request_rebuild(key)
        self.compact(key)

    def read(self, key: SessionKey) -> None:
        with suppress(*REFUSALS):
            self.service.context.memory(key)

    def rest(self) -> None:
        """Nobody does anything for long."""
        if self.sending:
            # No request is at work for days: its idempotency key would be forgotten meanwhile.
            return
        self.service.clock.advance(EXPIRE_DAYS * 86_400 + 1)
        self.service.sweep()
        self.service.drain_archive()

    def disturbed(
        self, data: st.DataObject, key: SessionKey, calls: int, action: Callable[[], object]
    ) -> None:
        """As in any stage; a session that is erased meanwhile is refused to whoever uses it."""

        def act() -> None:
            with suppress(SessionErasingError, SessionNotFoundError, CommitConflictError):
                action()

        super().disturbed(data, key, calls, act)

    def meanwhile(self, data: st.DataObject, near: SessionKey) -> Callable[[], None]:
        choices = ["usual", "usual", "read", "rebuild", "delete"]
        # The archivist's queue gives one of a session's messages at a time: it is alone there.
        if not self.alone:
            choices += ["tend", "rest", "erase"]
        what = data.draw(st.sampled_from(choices))
        if what == "usual":
            return super().meanwhile(data, near)

        def act() -> None:
            match what:
                case "read":
                    self.read(near)
                case "rebuild":
                    self.rebuild(near)
                case "delete":
                    self.delete(near)
                case "tend":
                    self.tend(near)
                case "rest":
                    self.rest()
                case "erase":
                    self.delete(near)
                    self.service.drain_archive()
            self.check()

        return act

    def tend(self, key: SessionKey) -> None:
        with suppress(StoreError):
            self.service.tend(key)

    def archivist(self, data: st.DataObject, key: SessionKey, action: Callable[[], object]) -> None:
        """The archivist does it, perhaps disturbed, but by no other archivist."""
        self.alone = True
        try:
            self.disturbed(data, key, ARCHIVE_CALLS, action)
        finally:
            self.alone = False


class LongConversations(Conversations):
    """Chooses what happens next in the long run."""

    stage: ArchiveStage
    make_stage = ArchiveStage

    @rule(key=keys, data=st.data())
    def client_deletes(self, key: SessionKey, data: st.DataObject) -> None:
        self.stage.disturbed(data, key, 5, lambda: self.stage.delete(key))
        session, _ = self.stage.service.raw_store.read_session(key, None)
        if session is not None and session.status is SessionStatus.ERASING:
            # The client that got no answer asks again.
            self.stage.delete(key)

    @rule(key=keys, data=st.data())
    def client_asks_to_rebuild(self, key: SessionKey, data: st.DataObject) -> None:
        self.stage.disturbed(data, key, ARCHIVE_CALLS, lambda: self.stage.rebuild(key))

    @rule(key=keys, data=st.data())
    def client_comes_back(self, key: SessionKey, data: st.DataObject) -> None:
        self.stage.disturbed(data, key, ARCHIVE_CALLS, lambda: self.stage.read(key))

    @rule(key=keys, data=st.data(), count=st.integers(30, 45))
    def client_commits_a_lot_and_the_archivist_tidies(
        self, key: SessionKey, data: st.DataObject, count: int
    ) -> None:
        self.stage.burst(key, count)
        self.stage.archivist(data, key, lambda: self.stage.tend(key))

    @rule(
        key=keys,
        count=st.integers(4, 9),
        at=st.integers(1, LATE_CALLS),
        anew=st.booleans(),
    )
    def worker_is_overtaken_by_an_erasure(
        self, key: SessionKey, count: int, at: int, anew: bool
    ) -> None:
        """The compactor goes on after the erasure, perhaps beside a later life of the session."""
        self.stage.burst(key, count)

        def overtake() -> None:
            self.stage.delete(key)
            self.stage.service.drain_archive()
            if anew:
                self.stage.burst(key, 1)
            self.stage.check()

        self.stage.interference.arm(at, overtake)
        self.stage.compact(key, forced=True)
        self.stage.interference.disarm()

    @rule(key=keys, data=st.data())
    def archivist_tends(self, key: SessionKey, data: st.DataObject) -> None:
        self.stage.archivist(data, key, lambda: self.stage.tend(key))

    @rule(data=st.data())
    def archivist_gets_messages(self, data: st.DataObject) -> None:
        self.stage.service.clock.advance(1)
        batch = self.stage.service.archive_queue.receive()
        self.stage.archivist(
            data, data.draw(keys), lambda: self.stage.service.deliver_archive(batch)
        )

    @rule()
    def nobody_does_anything_for_long(self) -> None:
        self.stage.rest()

    @rule(key=keys)
    def the_process_dies_at_the_end_of_a_rest(self, key: SessionKey) -> None:
        self.stage.service.clock.advance(EXPIRE_DAYS * 86_400 + 1)
        self.stage.interference.crash_at(6)
        with suppress(Crash):
            self.stage.tend(key)
        self.stage.interference.disarm()

    @rule()
    def everything_calms_down(self) -> None:
        """All bells are heard: then nothing is left to do, and erasures are done."""
        self.hear_all_bells()
        for key in KEYS:
            if self.stage.exists(key):
                assert self.stage.service.context.memory(key) is not None
        self.hear_all_bells()
        for key in KEYS:
            erasure = self.stage.erasures[key]
            if erasure is not None:
                assert self.stage.service.receipt(erasure).status is ErasureStatus.ERASED
            session, _ = self.stage.service.raw_store.read_session(key, None)
            if session is not None and session.status is SessionStatus.LIVE:
                check_i5_bounded(self.stage.service, key)
                assert self.stage.service.verify(key).ok

    def hear_all_bells(self) -> None:
        for _ in range(60):
            self.stage.service.drain()
            self.stage.service.drain_archive()
            due_at = self.stage.next_due()
            if due_at is None:
                break
            self.stage.service.clock.now = max(self.stage.service.clock.now, due_at)
            self.stage.service.sweep()
        else:
            raise AssertionError("I5: never calm")
