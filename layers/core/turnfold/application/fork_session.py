"""Forking: a copy of a session up to a turn, which goes on by itself.

The copy's id is taken first, by a session that nobody can read yet. Then its transcript is written
(the same records byte for byte, as segments), then the snapshot of its working memory, and one
write opens it. Whoever dies on the way leaves a session that the archivist clears away, unless the
same request comes again and goes on: everything it writes is the same.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.copied_memory import cut_memory
from turnfold.application.due_work import due_time
from turnfold.application.ports.archive import Archive
from turnfold.application.ports.bells import Doorbell
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.memory import Change, MemoryStore
from turnfold.application.ports.shelf import Shelf, Snapshots
from turnfold.application.read_memory import require_memory
from turnfold.application.read_transcript import ArchivedRecord, Transcript
from turnfold.application.ringing import ring_gently
from turnfold.domain.errors import (
    GuardFailedError,
    SessionErasingError,
    SessionExistsError,
    StoreUnavailableError,
    ThrottledError,
    TurnNotFoundError,
)
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.pins import Pin, PinStatus
from turnfold.domain.segments import MAX_RECORD_BYTES, Segment, covering, pack_segment
from turnfold.domain.sessions import FIRST_PREV_SHA256, Session, SessionKey, SessionStatus
from turnfold.domain.snapshots import pack_snapshot
from turnfold.domain.transcript import sha256_of

SEGMENT_TURNS = 1152
"""As the largest segments that roll-up makes."""

ABANDONED_SECONDS = 3600
"""A copy that was not opened by then is cleared away."""

FORK = "fork-"
"""What the name of a copy's snapshot begins with."""

COPIED_FIELDS = (
    "next_turn",
    "last_sha256",
    "judged_through",
    "compacted_through",
    "manifest",
    "degraded",
    "rejudge",
    "pin_count",
)


@dataclass(frozen=True, slots=True)
class ForkSession:
    """Makes copies."""

    store: MemoryStore
    archive: Archive
    transcript: Transcript
    shelf: Shelf
    snapshots: Snapshots
    doorbell: Doorbell
    clock: Clock
    new_id: NewId

    def __call__(
        self,
        source: SessionKey,
        target: SessionKey,
        at_turn: int | None,
        request: IdempotentRequest,
        seconds_left: Callable[[], float] = lambda: 1e9,
    ) -> Answer:
        """Copy up to a turn, or all; the answer (201).

        A request that runs out of time raises `ThrottledError`, and the same request goes on.
        Raises `SessionNotFoundError`, `TurnNotFoundError` for a turn that there is not,
        `SessionExistsError` if the target is in use, and `SessionErasingError` if the original was
        erased between two requests and has begun anew.
        """
        session, record = self.store.read_session(target, request.key_hash)
        if record and not (session and session.status is SessionStatus.FORKING):
            return request.replay(record)
        if session and (record is None or session.status is not SessionStatus.FORKING):
            raise SessionExistsError("there is a session of that id already")
        memory = require_memory(self.store, source)
        if session and not session.epoch.endswith(_mark(memory.session)):
            raise SessionErasingError("the original was erased meanwhile; fork to another id")
        last = memory.session.committed_through if at_turn is None else at_turn
        if record:
            last = int(record.body["at_turn"])
        if not 0 <= last <= memory.session.committed_through:
            have = memory.session.committed_through
            raise TurnNotFoundError(f"the session has turns 1 to {have}")
        answer = Answer(201, self._body(source, target, last))
        if session is None:
            session = self._reserve(memory, target, request, answer)
        self._copy(memory, session, last, seconds_left)
        return answer

    def _body(self, source: SessionKey, target: SessionKey, last: int) -> dict[str, Any]:
        return {
            "session_id": target.session_id,
            "forked_from": source.session_id,
            "at_turn": last,
            "turns": last,
        }

    def _reserve(
        self, memory: WorkingMemory, target: SessionKey, request: IdempotentRequest, answer: Answer
    ) -> Session:
        """Take the target's id."""
        now = self.clock()
        original = memory.session
        session = Session(
            key=target,
            epoch=f"{self.new_id()}{_mark(original)}",
            created_at=now,
            updated_at=now,
            settings=original.settings,
            status=SessionStatus.FORKING,
            user_id=original.user_id,
            system_sha256=original.system_sha256,
            due_at=now + timedelta(seconds=ABANDONED_SECONDS),
        )
        record = request.record(answer.status, answer.body, now)
        try:
            self.store.write(
                Change(key=target, creates=session, profile=memory.profile, idempotency=record)
            )
        except GuardFailedError:
            raise SessionExistsError("there is a session of that id already") from None
        return session

    def _copy(
        self,
        memory: WorkingMemory,
        session: Session,
        last: int,
        seconds_left: Callable[[], float],
    ) -> None:
        original, target = memory.session, session.key
        prev, archived = self._copied(original, target)
        for records in _grouped(self.transcript.stream(original, archived + 1, last)):
            segment = Segment(archived + 1, archived + len(records))
            data = pack_segment(one.raw for one in records)
            self.archive.put_segment(target, segment, data)
            if self.archive.get_segment(target, segment) != data:
                raise StoreUnavailableError("a segment is not what was written")
            prev, archived = records[-1].turn.sha256, segment.last
            # Looked at behind a segment, so that every request gets further.
            if archived < last and seconds_left() <= 0:
                raise ThrottledError("copying takes long; send the same request again to go on")
        copy = cut_memory(
            replace(memory, pins=self._pins_then(memory, last)),
            last,
            prev,
            lambda first, end: self.transcript.turns(original, first, end),
        )
        pin_rev = max((pin.rev for pin in copy.pins), default=0)
        # A hold is on the original alone, and the revision is for states of the copy.
        opened = replace(
            copy.session,
            key=target,
            profile_rev=session.profile_rev,
            revision=session.revision,
            legal_hold=False,
        )
        name = f"{FORK}{session.epoch}"
        self.snapshots.put(target, name, pack_snapshot(replace(copy, session=opened)))
        sets = {field: getattr(opened, field) for field in COPIED_FIELDS}
        sets |= {"archived_through": archived, "pin_rev": pin_rev, "pins_settled_rev": 0}
        due_at = due_time(self.clock())
        try:
            self.shelf.open(session, name, due_at, sets)
        except GuardFailedError:
            # The same request, sent twice, has opened it; or it was cleared away meanwhile.
            now, _ = self.store.read_session(target, None)
            if now is None or now.epoch != session.epoch:
                raise StoreUnavailableError("the copy was cleared away; ask again") from None
        ring_gently(self.doorbell, target, self.new_id(), last)

    def _pins_then(self, memory: WorkingMemory, last: int) -> tuple[Pin, ...]:
        """The facts that were known by a turn.

        Those that later ones have replaced, or were folded into one with later ones, are back. What
        was taken back without another fact is not: no pin tells by which turn. Nor is what stands
        behind a pin that was changed by hand: it may have been corrected.
        """
        known: dict[str, Pin] = {}
        looked_at: set[str] = set()
        waiting = list(memory.pins)
        while waiting:
            pin = waiting.pop()
            looked_at.add(pin.pin_id)
            if all(number <= last for number in pin.sources):
                known[pin.pin_id] = replace(pin, status=PinStatus.ACTIVE)
                continue
            if pin.status is PinStatus.ACTIVE and pin.updated_at != pin.created_at:
                continue
            before = {*pin.folded_from, pin.replaces or ""} - looked_at - {""}
            former = (self.store.get_pin(memory.session.key, one) for one in sorted(before))
            waiting += filter(None, former)
        return tuple(known[pin_id] for pin_id in sorted(known))

    def _copied(self, original: Session, target: SessionKey) -> tuple[str, int]:
        """How far an earlier request came: the hash of the last record there, and its number."""
        last = 0
        for segment in covering(self.archive.list_segments(target)):
            if segment.first != last + 1:
                break
            last = segment.last
        if last == 0:
            return FIRST_PREV_SHA256, 0
        return self.transcript.turns(original, last, last)[0].sha256, last


def _mark(original: Session) -> str:
    """What the epoch of a copy ends with: it tells one life of the original from the next one."""
    return sha256_of(original.epoch)[:16]


def _grouped(records: Iterator[ArchivedRecord]) -> Iterator[Sequence[ArchivedRecord]]:
    """The records in groups that a segment takes."""
    group: list[ArchivedRecord] = []
    size = 0
    for record in records:
        if group and (len(group) >= SEGMENT_TURNS or size + len(record.raw) > MAX_RECORD_BYTES):
            yield group
            group, size = [], 0
        group.append(record)
        size += len(record.raw)
    if group:
        yield group
