"""Importing turns and pins into a session, new or not.

Turns go in by parts of at most 80, each of which goes in completely or not at all, under an
idempotency key of its own. So an import that was interrupted goes on where it was when the request
is repeated, and nothing goes in twice.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.commit_turn import system_hash
from turnfold.application.due_work import is_due, with_due_time
from turnfold.application.import_content import ImportContent, TurnToImport, cut_size
from turnfold.application.import_pins import ImportPins
from turnfold.application.keep_by_hand import KeepByHand
from turnfold.application.ports.archive import Archive
from turnfold.application.ports.bells import ArchiveBell, Doorbell
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.memory import Change, MemoryStore
from turnfold.application.ports.models import TokenCounter
from turnfold.application.ringing import ring_archivist_gently, ring_gently
from turnfold.application.same_session import check_same
from turnfold.application.sessions import new_session, session_input
from turnfold.domain.errors import (
    CommitConflictError,
    GuardFailedError,
    InvalidInputError,
    SessionErasingError,
)
from turnfold.domain.limits import MAX_INLINE_TURN_BYTES
from turnfold.domain.messages import split_leading
from turnfold.domain.portable import read_settings
from turnfold.domain.sessions import Profile, Session, SessionKey, SessionStatus
from turnfold.domain.settings import Settings
from turnfold.domain.transcript import make_record
from turnfold.domain.turns import Turn

PART_TURNS = 80
PART_BYTES = 3_000_000
"""A transaction has 100 items and 4 MB; larger turns lie in the archive alone."""

ATTEMPTS = 8
PARALLEL_WRITES = 8
SHOWN_FAULTS = 100

CHANGED_FIELDS = (
    "next_turn",
    "updated_at",
    "last_sha256",
    "judged_through",
    "due_at",
    "sweeps",
    "system_sha256",
    "profile_rev",
)


@dataclass(frozen=True, slots=True)
class ImportSession:
    """Takes in what `read_import` has read."""

    store: MemoryStore
    archive: Archive
    doorbell: Doorbell
    archive_bell: ArchiveBell
    counter: TokenCounter
    clock: Clock
    new_id: NewId
    defaults: Settings
    keep: KeepByHand | None = None

    def __call__(
        self,
        key: SessionKey,
        content: ImportContent,
        request: IdempotentRequest,
        seconds_left: Callable[[], float] = lambda: 1e9,
    ) -> Answer:
        """The answer (201): what went in, and what did not, by line.

        With `complete` false time ran out: the same request goes on. Settings, system messages and
        user id of an exported session count only where the import creates the session. Raises
        `SessionErasingError` or `CommitConflictError`; what went in until then stays.
        """
        session, record = self.store.read_session(key, request.key_hash)
        if record:
            return request.replay(record)
        if session and session.status is SessionStatus.ERASING:
            raise SessionErasingError
        epoch = session.epoch if session else None
        numbers: dict[int, int] = {}
        done = 0
        for index, part in enumerate(_parts(content.turns)):
            if seconds_left() <= 0:
                break
            part_request = _part_request(request, index)
            epoch, first = self._put_part(key, epoch, content, part, part_request)
            numbers |= {
                turn.number: number
                for number, turn in enumerate(part, start=first)
                if turn.number is not None
            }
            done += len(part)
            session, _ = self.store.read_session(key, None)
            if session is not None:
                ring_archivist_gently(self.archive_bell, session)
        complete = done == len(content.turns)
        faults = [{"line": one.place, "msg": one.reason} for one in content.faults]
        pins = 0
        if complete:
            epoch = self._ensure_session(key, epoch, content)
            pins, refused = ImportPins(self.store, self.counter)(key, epoch, content, numbers)
            faults += refused
        session, _ = self.store.read_session(key, None)
        check_same(session, epoch)
        if session is None:
            raise CommitConflictError("the session was erased while it was imported")
        body: dict[str, Any] = {
            "session_id": key.session_id,
            "turns_imported": done,
            "pins_imported": pins,
            "turns": session.committed_through,
            "complete": complete,
            "errors": sorted(faults, key=lambda one: int(str(one["line"])))[:SHOWN_FAULTS],
            "error_count": len(faults),
        }
        if not complete:
            return Answer(202, body)
        if self.keep is not None and (pins or content.session):
            self.keep(key)
        self._remember(session, request, body)
        if is_due(session):
            ring_gently(self.doorbell, key, self.new_id(), session.committed_through)
        return Answer(201, body)

    def _put_part(
        self,
        key: SessionKey,
        epoch: str | None,
        content: ImportContent,
        part: Sequence[TurnToImport],
        request: IdempotentRequest,
    ) -> tuple[str, int]:
        """Store some turns, unless they are stored already; the epoch, and the first one's number.

        With an epoch the session must still be that one: an erasure ends an import.
        """
        for _ in range(ATTEMPTS):
            session, record = self.store.read_session(key, request.key_hash)
            check_same(session, epoch)
            if session and record:
                return session.epoch, int(record.body["first_turn"])
            try:
                return self._try_part(key, session, content, part, request)
            except GuardFailedError:
                continue
        raise CommitConflictError("other commits to this session were faster; try again")

    def _try_part(
        self,
        key: SessionKey,
        session: Session | None,
        content: ImportContent,
        part: Sequence[TurnToImport],
        request: IdempotentRequest,
    ) -> tuple[str, int]:
        if session and session.status is SessionStatus.ERASING:
            raise SessionErasingError
        now = self.clock()
        profile = Profile()
        before = session
        if before is None:
            before, profile = self._new_session(key, content, now)
        turns, records = self._records(before, part, now)
        with ThreadPoolExecutor(PARALLEL_WRITES) as pool:
            list(pool.map(lambda one: self.archive.put_record(key, *one), records))
        after = self._after(before, content, part, turns, now)
        if after.profile_rev != before.profile_rev:
            known = self.store.load(key) if session else None
            metadata = known.profile.metadata if known else profile.metadata
            system = next(
                leading for turn in reversed(turns) if (leading := split_leading(turn.messages)[0])
            )
            profile = Profile(system, metadata)
        remembered = request.record(201, {"first_turn": before.next_turn}, now)
        if session is None:
            self.store.write(
                Change(
                    key=key,
                    creates=replace(after, profile_rev=1),
                    profile=profile,
                    more_turns=turns,
                    idempotency=remembered,
                )
            )
            return before.epoch, before.next_turn
        changed = {
            name: getattr(after, name)
            for name in CHANGED_FIELDS
            if getattr(after, name) != getattr(before, name)
        }
        # Not by what does not change: a compactor that judges all along would win every race.
        guarded = {"judged_through", "profile_rev"} & changed.keys()
        guards = {name: getattr(before, name) for name in ("next_turn", *guarded)}
        if is_due(after):
            # Also when it was due before: the compactor may say meanwhile that it is not any more.
            changed["due_at"] = after.due_at
        self.store.write(
            Change(
                key=key,
                epoch=before.epoch,
                guards=guards,
                sets=changed,
                more_turns=turns,
                profile=profile if "profile_rev" in changed else None,
                idempotency=remembered,
            )
        )
        return before.epoch, before.next_turn

    def _records(
        self, before: Session, part: Sequence[TurnToImport], now: datetime
    ) -> tuple[tuple[Turn, ...], list[tuple[int, str, bytes]]]:
        """The turns and their records, chained to what is there. Times never go backwards."""
        turns: list[Turn] = []
        records = []
        prev = before.last_sha256
        last = self.store.get_turn(before.key, before.committed_through)
        earliest = None if last is None else last.committed_at
        for number, given in enumerate(part, start=before.next_turn):
            at = min(given.committed_at or now, now)
            at = at if earliest is None else max(at, earliest)
            turn, raw = make_record(
                number=number,
                turn_id=self.new_id(),
                committed_at=at,
                messages=given.sent.messages,
                prev_sha256=prev,
                metadata=given.sent.metadata,
                user_id=before.user_id,
            )
            turns.append(turn)
            records.append((number, turn.turn_id, raw))
            prev, earliest = turn.sha256, at
        return tuple(turns), records

    def _after(
        self,
        before: Session,
        content: ImportContent,
        part: Sequence[TurnToImport],
        turns: Sequence[Turn],
        now: datetime,
    ) -> Session:
        leading = [found for turn in turns if (found := split_leading(turn.messages)[0])]
        digest = system_hash(leading[-1]) if leading else before.system_sha256
        last = turns[-1].number
        after = replace(
            before,
            next_turn=last + 1,
            updated_at=now,
            last_sha256=turns[-1].sha256,
            judged_through=last if _judged(before, content, part) else before.judged_through,
            system_sha256=digest,
            profile_rev=before.profile_rev + (digest != before.system_sha256),
        )
        return with_due_time(before, after, now)

    def _new_session(
        self, key: SessionKey, content: ImportContent, now: datetime
    ) -> tuple[Session, Profile]:
        """The session that an import creates: as the file says, else by the defaults."""
        said = content.session or {}
        try:
            given = session_input(said.get("system"), said.get("user_id"), said.get("metadata"))
            settings = read_settings(said.get("settings"), self.defaults)
        except InvalidInputError:
            given, settings = session_input(), self.defaults
        return new_session(key, given, settings, self.new_id(), now)

    def _ensure_session(self, key: SessionKey, epoch: str | None, content: ImportContent) -> str:
        """The epoch of the session, which may have no turns at all."""
        for _ in range(ATTEMPTS):
            known, _ = self.store.read_session(key, None)
            check_same(known, epoch)
            if known is not None:
                return known.epoch
            session, profile = self._new_session(key, content, self.clock())
            try:
                self.store.write(Change(key=key, creates=session, profile=profile))
            except GuardFailedError:
                continue
            return session.epoch
        raise CommitConflictError("other commits to this session were faster; try again")

    def _remember(self, session: Session, request: IdempotentRequest, body: dict[str, Any]) -> None:
        """Keep the answer for a repetition; its parts are known anyway, so this is best effort."""
        record = request.record(201, body, self.clock())
        change = Change(key=session.key, epoch=session.epoch, idempotency=record, visible=False)
        try:
            self.store.write(change)
        except GuardFailedError:
            return


def _judged(before: Session, content: ImportContent, part: Sequence[TurnToImport]) -> bool:
    """Whether the turns were judged in their former life, and nothing before them is unjudged."""
    through = (content.session or {}).get("judged_through")
    if type(through) is not int or before.judged_through < before.committed_through:
        return False
    return all(turn.number is not None and turn.number <= through for turn in part)


def _parts(turns: Sequence[TurnToImport]) -> list[list[TurnToImport]]:
    """The turns in parts that one write takes: the same ones each time."""
    parts: list[list[TurnToImport]] = []
    size = 0
    for turn in turns:
        bytes_ = min(cut_size(turn) * 4, MAX_INLINE_TURN_BYTES)
        if not parts or len(parts[-1]) >= PART_TURNS or size + bytes_ > PART_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(turn)
        size += bytes_
    return parts


def _part_request(request: IdempotentRequest, index: int) -> IdempotentRequest:
    """The idempotency of one part: under the key and the content of the whole."""
    return IdempotentRequest.of("import part", f"{request.key_hash}-{index}", request.request_hash)
