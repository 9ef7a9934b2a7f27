"""Making working memory anew from the transcript.

The turns are committed once more, in order, to a store in this process, and compacted there by the
very rules and models that compact a session; then the result is put in the place of the old working
memory by one guarded write. It is the way back from a damaged working memory, from other limits,
and from a lost table: then the session itself is recovered from its records first. Facts that were
confirmed stay, where they are known; turns that were judged are not judged again, unless the facts
from them are lost.

A run that is cut off leaves a checkpoint, from which the next one goes on.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import batched
from typing import TYPE_CHECKING, Any

from turnfold.application.commit_turn import system_hash
from turnfold.application.compact_session import CompactSession, Ring
from turnfold.application.due_work import due_time
from turnfold.application.fork_session import FORK
from turnfold.application.keep_by_hand import KEPT
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.memory import Change, MemoryStore
from turnfold.application.ports.shelf import Shelf, Snapshots
from turnfold.application.put_away import snapshot_name
from turnfold.application.read_transcript import Transcript
from turnfold.application.recover_session import RecoverSession
from turnfold.application.restore import Restore
from turnfold.domain.errors import (
    GuardFailedError,
    StoreUnavailableError,
)
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.messages import split_leading
from turnfold.domain.pins import Pin
from turnfold.domain.portable import pin_object
from turnfold.domain.sessions import Profile, Session, SessionKey, SessionStatus
from turnfold.domain.snapshots import Snapshot, pack_snapshot, unpack_snapshot
from turnfold.domain.transcript import sha256_of
from turnfold.domain.turns import Turn

if TYPE_CHECKING:
    from turnfold.domain.summaries import Summary

logger = logging.getLogger("turnfold")

BATCH_TURNS = 16
"""Turns committed before the next compaction: as many as are judged in one call."""

WRITTEN_AT_ONCE = 40
"""Items that one write takes of a checkpoint."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a session besides its transcript.

    `revision` is that of the newest state which is known of: what is made now has to come behind.
    `told_through` is the turn by which the profile was as it is here.
    """

    session: Session
    profile: Profile
    revision: int
    told_through: int = 0
    pins: tuple[Pin, ...] = ()


def checkpoint_name(known: _Known) -> str:
    """The name of the checkpoint of rebuilds that begin with the same settings and facts."""
    session = known.session
    begins_with = [
        session.epoch,
        session.settings.to_json(),
        [pin_object(pin) for pin in known.pins],
    ]
    return f"checkpoint-{sha256_of(begins_with)[:32]}"


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
        due_at = due_time(self.clock())
        sets = self._sets(known, memory)
        made = replace(memory.session, revision=sets["revision"])
        name = snapshot_name(made, self.new_id())
        self._put(session, name, replace(memory, session=made))
        try:
            if session.status is SessionStatus.LIVE:
                self.shelf.put_away(session, name, due_at, sets)
            else:
                self.shelf.open(session, name, due_at, sets)
        except GuardFailedError:
            self.snapshots.discard(session.key, name)
            raise
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
                session = memory.session
                told = session.committed_through
                return _Known(session, memory.profile, session.revision, told, memory.pins)
        known = self._from_snapshot(session)
        session = known.session
        if session.committed_through == 0:
            found = self.recover(session)
            session = replace(
                session,
                next_turn=found.last_turn + 1,
                last_sha256=found.last_sha256,
                archived_through=found.archived_through,
                user_id=session.user_id or found.user_id,
            )
        return replace(known, session=session)

    def _from_snapshot(self, session: Session) -> _Known:
        """What the newest snapshot says, if there is one that can be read."""
        snapshot = self._newest(session.key)
        if snapshot is None:
            return _Known(replace(session, judged_through=0), Profile(), session.revision)
        # What was judged since then has left its facts nowhere, and is judged again.
        judged_through = min(session.judged_through, snapshot.judged_through)
        session = replace(session, judged_through=judged_through)
        if session.committed_through == 0:
            session = replace(
                session,
                settings=snapshot.settings,
                judged_through=snapshot.judged_through,
                user_id=snapshot.user_id,
                legal_hold=snapshot.legal_hold,
            )
        revision = max(session.revision, snapshot.revision)
        told = snapshot.committed_through
        return _Known(session, snapshot.profile, revision, told, snapshot.pins)

    def _newest(self, key: SessionKey) -> Snapshot | None:
        """The newest of the snapshots that can be read: of a rest, of a fork, or of a change."""
        names = sorted(self.snapshots.names(key), reverse=True)
        rests = [one for one in names if one[0].isdigit()]
        forks = [one for one in names if one.startswith(FORK)]
        rest = next(filter(None, (self._read(key, one) for one in (*rests, *forks))), None)
        kept = self._read(key, KEPT) if KEPT in names else None
        found = [one for one in (rest, kept) if one is not None]
        return max(found, key=lambda one: one.revision, default=None)

    def _read(self, key: SessionKey, name: str) -> Snapshot | None:
        data = self.snapshots.get(key, name)
        try:
            return unpack_snapshot(data) if data else None
        except ValueError:
            return None

    def _rebuilt(self, known: _Known, seconds_left: Callable[[], float]) -> WorkingMemory | None:
        """Working memory as the same turns would have made it; None if time runs out."""
        session, scratch = known.session, self.scratch()
        compact = self.compactor(scratch)
        start = self._begin(scratch, known)
        batch: list[Turn] = []
        for record in self.transcript.stream(session, start):
            batch.append(record.turn)
            if len(batch) < BATCH_TURNS and record.turn.number < session.committed_through:
                continue
            if seconds_left() <= 0:
                self._leave_checkpoint(scratch, known)
                return None
            for turn in batch:
                self._commit(scratch, known, turn)
            compact(session.key, Ring(turn=batch[-1].number))
            batch.clear()
        self.snapshots.remove(session.key, [checkpoint_name(known)])
        return scratch.load(session.key)

    def _put(self, session: Session, name: str, memory: WorkingMemory) -> None:
        """Store a snapshot of a session that is still there.

        Looked at before and after: an erasure that begins in between finds the snapshot, and one
        that was done in between has left nothing but it, which is then removed here.
        """
        self._require(session)
        self.snapshots.put(session.key, name, pack_snapshot(memory))
        try:
            self._require(session)
        except GuardFailedError:
            self.snapshots.discard(session.key, name)
            raise

    def _require(self, session: Session) -> None:
        now, _ = self.store.read_session(session.key, None)
        if now is None or now.epoch != session.epoch or now.status is not session.status:
            raise GuardFailedError("session")

    def _leave_checkpoint(self, scratch: MemoryStore, known: _Known) -> None:
        memory = scratch.load(known.session.key)
        if memory is not None:
            self._put(known.session, checkpoint_name(known), memory)

    def _checkpoint(self, known: _Known) -> Snapshot | None:
        """How far an earlier run came, if it began with the same."""
        snapshot = self._read(known.session.key, checkpoint_name(known))
        if snapshot is None or snapshot.committed_through == 0:
            return None
        number = snapshot.committed_through
        turns = self.transcript.turns(known.session, number, number)
        return snapshot if turns and turns[0].sha256 == snapshot.last_sha256 else None

    def _begin(self, scratch: MemoryStore, known: _Known) -> int:
        """Fill the store with what is known, or with a checkpoint; the turn to go on with."""
        session = known.session
        begun = Session(
            key=session.key,
            epoch=session.epoch,
            created_at=session.created_at,
            updated_at=session.updated_at,
            settings=session.settings,
            judged_through=session.judged_through,
            rejudge=session.rejudge,
            archived_through=session.archived_through,
            profile_rev=session.profile_rev,
        )
        profile, pins = known.profile, known.pins
        turns: tuple[Turn, ...] = ()
        summaries: tuple[Summary, ...] = ()
        checkpoint = self._checkpoint(known)
        if checkpoint is not None:
            profile, pins = checkpoint.profile, checkpoint.pins
            turns, summaries = checkpoint.turns, checkpoint.summaries
            begun = replace(
                begun,
                next_turn=checkpoint.committed_through + 1,
                last_sha256=checkpoint.last_sha256,
                judged_through=max(session.judged_through, checkpoint.judged_through),
                compacted_through=max((one.to_turn for one in summaries), default=0),
                manifest=tuple(one.ref for one in summaries),
                degraded=any(one.degraded for one in summaries),
            )
        pins = tuple(replace(pin, rev=1) for pin in pins)
        begun = replace(begun, pin_rev=1, pin_count=len(pins))
        scratch.write(Change(key=session.key, creates=begun, profile=profile))
        for some in batched(turns, WRITTEN_AT_ONCE):
            self._add(scratch, session, Change(key=session.key, more_turns=some))
        for few in batched(summaries, WRITTEN_AT_ONCE):
            self._add(scratch, session, Change(key=session.key, summaries=few))
        for facts in batched(pins, WRITTEN_AT_ONCE):
            self._add(scratch, session, Change(key=session.key, pins=facts))
        return begun.next_turn

    def _add(self, scratch: MemoryStore, session: Session, change: Change) -> None:
        scratch.write(replace(change, epoch=session.epoch, visible=False))

    def _commit(self, scratch: MemoryStore, known: _Known, turn: Turn) -> None:
        """A turn, with the system messages that it brings, where nothing newer tells of them."""
        session = known.session
        sets: dict[str, Any] = {"next_turn": turn.number + 1, "last_sha256": turn.sha256}
        profile = None
        system = split_leading(turn.messages)[0]
        is_news = turn.number > known.told_through
        if system and is_news and session.status is not SessionStatus.LIVE:
            profile = replace(known.profile, system=system)
            sets["profile_rev"] = session.profile_rev + turn.number
        change = Change(key=session.key, epoch=session.epoch, sets=sets, turn=turn, profile=profile)
        scratch.write(change)

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
            "revision": known.revision + 1,
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
            "legal_hold": session.legal_hold,
            "system_sha256": system_hash(profile.system),
            "profile_rev": made.profile_rev,
            "updated_at": self.clock(),
        }
