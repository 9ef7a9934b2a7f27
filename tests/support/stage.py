"""Two sessions of one service, and what clients and workers do to them, disturbed or not.

What the state machine (`support.conversations_machine`) is made of; it only chooses.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from hypothesis import strategies as st

from support.interference import Crash, Interference
from support.invariants import Ledger, check_all
from support.moody_model import POISON, MoodyModel
from support.service import Service, count_words
from support.strategies import SIZES, STRATEGY_SETS, turns
from turnfold.application.answer import IdempotentRequest
from turnfold.application.commit_turn import TurnToCommit
from turnfold.application.compact_session import Outcome, Ring
from turnfold.application.drain_batch import DrainBatch
from turnfold.application.pins_by_hand import PinInput
from turnfold.application.sessions import SessionInput
from turnfold.domain.errors import (
    CommitConflictError,
    InvalidPinError,
    PinNotFoundError,
    StoreError,
)
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from turnfold.application.answer import Answer
    from turnfold.application.compact_session import CompactSession
    from turnfold.application.ports.memory import Change

KEYS = (SessionKey("north", "s"), SessionKey("south", "s"))
MARKS = {KEYS[0]: "NORTH", KEYS[1]: "SOUTH"}

MEANWHILE = (
    "compact",
    "burst and compact",
    "patch and compact",
    "commit",
    "patch",
    "pin",
    "sweep",
    "redeliver",
    "look",
)


changes_of_settings: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional=SIZES
    | {
        "pin_mode": st.sampled_from(["async", "sync", "off"]),
        "auto_compression": st.sampled_from([True, True, False]),
        "strategies": st.sampled_from(STRATEGY_SETS),
        "memory_role": st.sampled_from(["system", "developer", "user"]),
    },
)


class Stage:
    """Two sessions of the same id, of two tenants, in one service."""

    make_service: type[Service] = Service

    def __init__(self, model: MoodyModel | None, **settings: Any) -> None:
        self.ledgers = {key: Ledger() for key in KEYS}
        self.requests: dict[tuple[SessionKey, str], Mapping[str, Any] | None] = {}
        self.sent_at: dict[tuple[SessionKey, str], datetime] = {}
        self.faults: list[str] = []
        self.marker = 0
        self.model = model
        self.interference = Interference()
        self.interference.after.append(self.watch_write)
        # Nothing expires here, however much time passes.
        given = {"expire_days": 3650, **settings}
        self.service = self.make_service(model=model, wrap=self.interference.wrap, **given)
        self.service.drain_batch = DrainBatch(cast("CompactSession", self.compact_watched))

    def check(self) -> None:
        """All that holds at any moment."""
        for key, ledger in self.ledgers.items():
            others = [mark for other, mark in MARKS.items() if other != key]
            check_all(self.service, key, ledger, others)
        assert not self.faults, self.faults

    def next_due(self) -> datetime | None:
        """When the sweeper has to come again because something is not done yet."""
        soon = self.service.clock.now + timedelta(days=1)
        due = [one.session.due_at for one in self.service.raw_store._sessions.values()]
        return max((one for one in due if one is not None and one < soon), default=None)

    def exists(self, key: SessionKey) -> bool:
        """Whether the session was made yet."""
        return key in self.service.raw_store._sessions

    # What is seen at the ports -----------------------------------------------------------------

    def watch_write(self, port: str, method: str, given: tuple[Any, ...], _: object) -> None:
        if method == "write" and given[0].summaries:
            self.check_fold(given[0])

    def check_fold(self, change: Change) -> None:
        """What has replaced turns. Faults are noted, since a caller might catch them."""
        session, _ = self.service.raw_store.read_session(change.key, None)
        assert session is not None
        last = max(change.removes_turns, default=0)
        if session.settings.judges_pins and last > session.judged_through:
            self.faults.append("I3: folded before it was judged")
        for summary in change.summaries:
            if not summary.text.strip():
                self.faults.append("I13: a blank summary")
            if any(poison in summary.text for poison in POISON):
                self.faults.append(f"I13: a bad answer was taken: {summary.text[:60]}")
            if summary.tokens != count_words(summary.text):
                self.faults.append("I13: wrong tokens")
            if summary.tokens >= summary.source_tokens:
                self.faults.append("I13: longer than its source")

    def compact_watched(
        self, key: SessionKey, ring: Ring, seconds_left: Callable[[], float]
    ) -> Outcome:
        """The compactor as the drain calls it, which catches whatever goes wrong in it."""
        try:
            return self.service.compact(key, ring, seconds_left)
        except StoreError:
            raise
        except Exception as error:
            self.faults.append(f"a compaction failed: {error!r}")
            raise

    # Doing something, perhaps disturbed --------------------------------------------------------

    def disturbed(
        self, data: st.DataObject, key: SessionKey, calls: int, action: Callable[[], object]
    ) -> None:
        """Do it; perhaps the process dies in the middle, or something else happens meanwhile."""
        kinds = ["none", "none", "crash", "crash late", "meanwhile", "meanwhile", "meanwhile"]
        kind = data.draw(st.sampled_from(kinds))
        if kind == "none":
            action()
            return
        at = data.draw(st.integers(1, calls))
        if kind == "meanwhile":
            other = self.meanwhile(data, key)
            self.interference.arm(at, other, late=data.draw(st.booleans()))
        else:
            self.interference.crash_at(at, late=kind == "crash late")
        try:
            action()
        except Crash:
            pass
        finally:
            self.interference.disarm()

    def meanwhile(self, data: st.DataObject, near: SessionKey) -> Callable[[], None]:
        """Something whole that another process does, mostly to the same session."""
        key = data.draw(st.sampled_from([near, near, near, *KEYS]))
        what = data.draw(st.sampled_from(MEANWHILE))
        messages = data.draw(turns(self.next_marker(key))) if what == "commit" else []
        changes = data.draw(changes_of_settings) if "patch" in what else {}

        def act() -> None:
            match what:
                case "compact":
                    self.compact(key)
                case "burst and compact":
                    self.burst(key, 5)
                    self.compact(key)
                case "patch and compact":
                    self.patch(key, changes)
                    self.compact(key)
                case "commit":
                    self.commit(key, messages)
                case "patch":
                    self.patch(key, changes)
                case "pin":
                    self.add_pin(key, "A fact that was pinned meanwhile")
                case "sweep":
                    self.service.sweep()
                case "redeliver":
                    self.service.clock.advance(400)
                    self.service.deliver(self.service.queue.receive())
            self.check()

        return act

    def burst(self, key: SessionKey, count: int) -> None:
        """Short turns, one after the other."""
        for _ in range(count):
            said = f"{self.next_marker(key)} What comes next in the list of things to do today?"
            answer = {"role": "assistant", "content": "The next thing is to water the plants."}
            self.commit(key, [{"role": "user", "content": said}, answer])

    def next_marker(self, key: SessionKey) -> str:
        self.marker += 1
        return f"{MARKS[key]}{self.marker}."

    def commit(self, key: SessionKey, messages: list[dict[str, Any]], name: str = "") -> None:
        """A client's request with an Idempotency-Key, as the API treats it."""
        marker = str(next(one for one in messages if one["role"] == "user")["content"]).split(" ")[
            0
        ]
        ledger = self.ledgers[key]
        ledger.sent.setdefault(marker, messages)
        name = name or marker
        self.requests.setdefault((key, name), None)
        self.sent_at.setdefault((key, name), self.service.clock.now)
        request = IdempotentRequest.of("turns", name, messages)
        try:
            answer = self.service.commit_turn(key, TurnToCommit(messages), request)[0]
        except CommitConflictError:
            return
        session, _ = self.service.raw_store.read_session(key, None)
        assert session is not None
        if not answer.replayed and session.settings.pin_mode == "sync":
            answer = self.service.judge_now(key, answer, request)
        self.check_i7_same_answer(key, name, answer)
        ledger.answered[marker] = answer.body["turn"]

    def check_i7_same_answer(self, key: SessionKey, name: str, answer: Answer) -> None:
        known = self.requests[key, name]
        if known is not None:
            assert answer.replayed, "I7: done again"
            assert answer.body == known, "I7: another answer"
        self.requests[key, name] = answer.body

    def repeatable(self) -> list[tuple[SessionKey, str]]:
        """Requests whose keys are not forgotten yet."""
        oldest = self.service.clock.now - timedelta(hours=47) if self.sent_at else None
        known = [name for name, sent_at in self.sent_at.items() if oldest and sent_at > oldest]
        return sorted(known, key=repr)

    def compact(self, key: SessionKey, *, forced: bool = False) -> None:
        session, _ = self.service.raw_store.read_session(key, None)
        if session is not None:
            ring = Ring(session.committed_through, forced)
            with suppress(StoreError):
                self.service.compact(key, ring)

    def patch(self, key: SessionKey, changes: dict[str, Any]) -> None:
        if self.exists(key):
            with suppress(CommitConflictError):
                self.service.sessions.patch(key, SessionInput(settings=changes))

    def add_pin(self, key: SessionKey, text: str, replaces: str | None = None) -> None:
        if not self.exists(key):
            return
        name = f"pin-{self.marker}"
        self.marker += 1
        request = IdempotentRequest.of("pins", name, {"text": text})
        with suppress(InvalidPinError, CommitConflictError, PinNotFoundError):
            self.service.pins.add(key, PinInput(text=text, replaces=replaces), request)
