"""Making working memory anew from the transcript.

The turns are committed once more, in order, to a store in this process, and compacted there by the
very rules and models that compact a session; then the result is put in the place of the old working
memory by one guarded write. It is the way back from a damaged working memory, from other limits,
and from a lost table: then the session itself is recovered from its records first. Facts that were
confirmed stay, where they are known; turns that were judged are not judged again.

A run that is cut off begins anew, and pays for no model call twice: accepted answers are kept.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from turnfold.application.commit_turn import due_time, system_hash
from turnfold.application.compact_session import CompactSession, Ring
from turnfold.application.ports import (
    Change,
    Clock,
    Doorbell,
    MemoryStore,
    NewId,
    Shelf,
    Snapshots,
)
from turnfold.application.put_away import snapshot_name
from turnfold.application.read_transcript import Transcript
from turnfold.application.recover_session import RecoverSession
from turnfold.application.restore import Restore
from turnfold.domain.errors import (
    CommitConflictError,
    GuardFailedError,
    SessionNotFoundError,
    StoreUnavailableError,
)
from turnfold.domain.limits import SWEEP_GRACE_SECONDS
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.messages import split_leading
from turnfold.domain.pins import Pin
from turnfold.domain.sessions import Profile, Session, SessionKey, SessionStatus
from turnfold.domain.settings import Settings
from turnfold.domain.snapshots import pack_snapshot, unpack_snapshot
from turnfold.domain.turns import Turn

logger = logging.getLogger("turnfold")

BATCH_TURNS = 16
"""Turns committed before the next compaction: as many as are judged in one call."""

ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class RequestRebuild:
    """Asks for a rebuild; the compactor does it."""

    store: MemoryStore
    shelf: Shelf
    recover: RecoverSession
    doorbell: Doorbell
    clock: Clock
    new_id: NewId
    defaults: Settings

    def __call__(self, key: SessionKey) -> Session:
        """Note the request and ring; the session as it is now.

        Also a session that the table knows nothing about, if it has a transcript. Raises
        `SessionNotFoundError`.
        """
        for _ in range(ATTEMPTS):
            session, _ = self.store.read_session(key, None)
            try:
                noted = self._note(key, session)
            except GuardFailedError:
                continue
            self.doorbell.ring(key, self.new_id(), noted.committed_through)
            return noted
        raise CommitConflictError("other requests were faster; try again")

    def _note(self, key: SessionKey, session: Session | None) -> Session:
        now = self.clock()
        if session is None:
            return self._begin(key)
        if session.status is SessionStatus.REBUILDING:
            return session
        if session.is_away:
            self.shelf.give_up(session, due_time(now))
            return session
        if session.status is not SessionStatus.LIVE:
            raise SessionNotFoundError("no such session")
        self.store.write(
            Change(
                key=key,
                epoch=session.epoch,
                sets={"rebuild": True, "due_at": due_time(now), "sweeps": 0},
                visible=False,
            )
        )
        return session

    def _begin(self, key: SessionKey) -> Session:
        """A session for records that have none."""
        if not self.recover.has_transcript(key):
            raise SessionNotFoundError("no such session")
        now = self.clock()
        session = Session(
            key=key,
            epoch=self.new_id(),
            created_at=now,
            updated_at=now,
            settings=self.defaults,
            status=SessionStatus.REBUILDING,
            due_at=due_time(now),
            rebuild=True,
        )
        self.store.write(Change(key=key, creates=session, profile=Profile()))
        return session


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a session besides its transcript."""

    session: Session
    profile: Profile
    pins: tuple[Pin, ...] = ()


@dataclass(frozen=True, slots=True)
class RebuildSession:
    """Does what `RequestRebuild` asks for.

    `scratch` gives an empty store; `compactor` a use case that compacts what is in it.
    """

    store: MemoryStore
    transcript: Transcript
    shelf: Shelf
    snapshots: Snapshots
    restore: Restore
    recover: RecoverSession
    scratch: Callable[[], MemoryStore]
    compactor: Callable[[MemoryStore], CompactSession]
    clock: Clock
    new_id: NewId

    def __call__(self, session: Session, seconds_left: Callable[[], float] = lambda: 1e9) -> bool:
        """Rebuild a session that asks for it; false if time ran out.

        Raises `GuardFailedError` if the session was used meanwhile, and `StoreError`.
        """
        known = self._known(session)
        session = replace(known.session, status=session.status)
        memory = self._rebuilt(known, seconds_left)
        if memory is None:
            return False
        name = snapshot_name(session, self.new_id())
        self.snapshots.put(session.key, name, pack_snapshot(memory))
        due_at = self.clock() + timedelta(seconds=SWEEP_GRACE_SECONDS)
        sets = self._sets(known, memory)
        if session.status is SessionStatus.LIVE:
            self.shelf.put_away(session, name, due_at, sets)
        else:
            self.shelf.open(session, name, due_at, sets)
        logger.info("session rebuilt", extra={"code": "REBUILT"})
        away, _ = self.store.read_session(session.key, None)
        if away is not None and away.is_away:
            self.restore(away)
        return True

    def _known(self, session: Session) -> _Known:
        """What of a session is not made anew: settings, profile and confirmed facts."""
        if session.status is SessionStatus.LIVE:
            try:
                memory = self.store.load(session.key)
            except StoreUnavailableError:
                memory = None
            if memory is not None:
                return _Known(memory.session, memory.profile, memory.pins)
        session, profile, pins = self._from_snapshot(session)
        if session.committed_through == 0:
            found = self.recover(session)
            session = replace(
                session,
                next_turn=found.last_turn + 1,
                last_sha256=found.last_sha256,
                archived_through=found.archived_through,
                user_id=session.user_id or found.user_id,
            )
        return _Known(session, profile, pins)

    def _from_snapshot(self, session: Session) -> tuple[Session, Profile, tuple[Pin, ...]]:
        """What the newest snapshot says, if there is one that can be read."""
        for name in sorted(self.snapshots.names(session.key), reverse=True):
            data = self.snapshots.get(session.key, name)
            try:
                snapshot = unpack_snapshot(data) if data else None
            except ValueError:
                continue
            if snapshot is None:
                continue
            if session.committed_through == 0:
                session = replace(
                    session,
                    settings=snapshot.settings,
                    judged_through=snapshot.judged_through,
                    user_id=snapshot.user_id,
                )
            return session, snapshot.profile, snapshot.pins
        return session, Profile(), ()

    def _rebuilt(self, known: _Known, seconds_left: Callable[[], float]) -> WorkingMemory | None:
        """Working memory as the same turns would have made it; None if time runs out."""
        session, scratch = known.session, self.scratch()
        compact = self.compactor(scratch)
        self._begin(scratch, known)
        batch: list[Turn] = []
        system = known.profile.system
        for record in self.transcript.stream(session):
            batch.append(record.turn)
            system = split_leading(record.turn.messages)[0] or system
            if len(batch) < BATCH_TURNS and record.turn.number < session.committed_through:
                continue
            if seconds_left() <= 0:
                return None
            for turn in batch:
                self._commit(scratch, session, turn)
            compact(session.key, Ring(turn=batch[-1].number))
            batch.clear()
        memory = scratch.load(session.key)
        if memory is None or session.status is SessionStatus.LIVE:
            return memory
        return replace(memory, profile=replace(known.profile, system=system))

    def _begin(self, scratch: MemoryStore, known: _Known) -> None:
        session = known.session
        begun = Session(
            key=session.key,
            epoch=session.epoch,
            created_at=session.created_at,
            updated_at=session.updated_at,
            settings=session.settings,
            judged_through=session.judged_through,
            rejudge=session.rejudge,
            pin_rev=1,
            pin_count=len(known.pins),
            archived_through=session.archived_through,
        )
        scratch.write(Change(key=session.key, creates=begun, profile=known.profile))
        for start in range(0, len(known.pins), 40):
            pins = tuple(replace(pin, rev=1) for pin in known.pins[start : start + 40])
            change = Change(key=session.key, epoch=session.epoch, pins=pins, visible=False)
            scratch.write(change)

    def _commit(self, scratch: MemoryStore, session: Session, turn: Turn) -> None:
        sets: dict[str, Any] = {"next_turn": turn.number + 1, "last_sha256": turn.sha256}
        scratch.write(Change(key=session.key, epoch=session.epoch, sets=sets, turn=turn))

    def _sets(self, known: _Known, memory: WorkingMemory) -> dict[str, Any]:
        """The fields of the session that go with its new working memory."""
        session, made = known.session, memory.session
        pin_rev = max((pin.rev for pin in memory.pins), default=0)
        sets = {
            "judged_through": made.judged_through,
            "compacted_through": made.compacted_through,
            "manifest": made.manifest,
            "degraded": made.degraded,
            "rejudge": made.rejudge,
            "summary_rev": session.summary_rev + 1,
            "pin_rev": max(pin_rev, session.pin_rev) + 1,
            "pin_count": len(memory.pins),
            "revision": session.revision + 1,
            "rebuild": False,
        }
        if session.status is SessionStatus.LIVE:
            return sets
        profile = memory.profile
        return sets | {
            "next_turn": session.next_turn,
            "last_sha256": session.last_sha256,
            "archived_through": session.archived_through,
            "user_id": session.user_id,
            "settings": session.settings,
            "system_sha256": system_hash(profile.system),
            "updated_at": self.clock(),
        }
