"""Committing a turn: the only way into a session's memory.

Four calls, flat in the session's length: read the session and the idempotency record, put the
transcript's record, write all of the turn in one transaction, ring the doorbell. The record goes
first, so a committed turn is always archived; a process that dies in between leaves a record that
the hash chain does not name. No model is called here and no tokenizer is loaded.
"""

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.due_work import is_due, pending_bound, with_due_time
from turnfold.application.metrics import NO_METRICS, Metrics
from turnfold.application.ports.archive import Archive
from turnfold.application.ports.bells import Doorbell
from turnfold.application.ports.clock import Clock, NewId, Pause
from turnfold.application.ports.memory import Change, IdempotencyRecord, MemoryStore
from turnfold.application.ringing import ring_gently
from turnfold.application.same_session import check_same
from turnfold.application.views import watermark_view
from turnfold.domain.errors import (
    CommitConflictError,
    GuardFailedError,
    SessionErasingError,
    SessionNotFoundError,
    TurnTooLargeError,
    UserMismatchError,
)
from turnfold.domain.limits import MAX_PROFILE_BYTES, MAX_TURN_BYTES
from turnfold.domain.measurements import Metric
from turnfold.domain.message_rules import check_turn
from turnfold.domain.messages import Message, content_texts, split_leading
from turnfold.domain.open_turn import OpenTurnRef
from turnfold.domain.sessions import Profile, Session, SessionKey, SessionStatus
from turnfold.domain.settings import Settings
from turnfold.domain.tokens import estimate
from turnfold.domain.transcript import canonical, format_time, make_record, sha256_of
from turnfold.domain.turns import Turn
from turnfold.domain.usage import Usage

ATTEMPTS = 12
"""Races for a turn's number that one request runs before it answers 409."""

PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 0.5
"""The longest pause after the first lost race, and after any: it doubles in between, and is drawn
between nothing and that, so that those who lost together do not meet again."""

PATIENCE_SECONDS = 5.0
"""After so long no other race is run: a request has 29 seconds, of which a model may take 20."""


@dataclass(frozen=True, slots=True)
class TurnToCommit:
    """A turn as it was sent. `check` refuses what cannot be committed."""

    messages: Sequence[Message]
    user_id: str | None = None
    metadata: Mapping[str, Any] | None = None

    def check(self) -> None:
        """Raise `InvalidMessagesError`, `IncompleteTurnError` or `TurnTooLargeError`."""
        check_turn(self.messages)
        self.check_size()

    def check_size(self) -> None:
        """Raise `TurnTooLargeError`."""
        size = len(canonical(list(self.messages))) + len(canonical(self.metadata))
        if size > MAX_TURN_BYTES:
            raise TurnTooLargeError(
                f"messages and metadata of a turn may have {MAX_TURN_BYTES} bytes, not {size}"
            )
        if len(canonical(list(split_leading(self.messages)[0]))) > MAX_PROFILE_BYTES // 2:
            raise TurnTooLargeError(
                f"system messages may have {MAX_PROFILE_BYTES // 2} bytes together"
            )


class Committed(NamedTuple):
    """The answer, and what was stored: nothing where the answer is that of an earlier request."""

    answer: Answer
    turn: Turn | None = None
    session: Session | None = None


def system_hash(system: Sequence[Message]) -> str:
    """What tells whether system messages say the same; empty for none."""
    said = [(one["role"], list(content_texts(one))) for one in system]
    return sha256_of(said) if said else ""


@dataclass(frozen=True, slots=True)
class CommitTurn:
    """Appends a turn to a session, and creates the session with the first one."""

    store: MemoryStore
    archive: Archive
    doorbell: Doorbell
    clock: Clock
    new_id: NewId
    defaults: Settings
    metrics: Metrics = NO_METRICS
    pause: Pause = time.sleep

    def __call__(
        self,
        key: SessionKey,
        sent: TurnToCommit,
        request: IdempotentRequest,
        *,
        extra: Mapping[str, Any] | None = None,
        closes: OpenTurnRef | None = None,
        judged_next: bool = False,
        usage: Usage | None = None,
        epoch: str | None = None,
    ) -> Committed:
        """The answer of the contract (201), and the turn with the session after it.

        `extra` are further members of the answer, with which it is 200 (chat). `closes` is the open
        turn that is committed. With `judged_next` the caller goes on to judge the turn of a session
        that judges at once, and calls `ring` after that: else the compactor would judge it too.
        `usage` is what the turn has cost. `epoch` is that of the session that the turn was made
        from: what was said by an erased session's memory does not go into a later one.

        Raises the errors of `TurnToCommit.check`, `UserMismatchError`, `IdempotencyMismatchError`,
        `SessionErasingError`, or `CommitConflictError` when other commits were faster each time;
        `GuardFailedError` if the open turn is not as it was.
        """
        sent.check()
        started = time.perf_counter()
        for attempt in range(ATTEMPTS):
            if attempt:
                longest = min(LONGEST_PAUSE_SECONDS, PAUSE_SECONDS * 2 ** (attempt - 1))
                self.pause(random.uniform(0, longest))  # noqa: S311 - jitter
                if time.perf_counter() - started > PATIENCE_SECONDS:
                    break
            session, record = self.store.read_session(key, request.key_hash)
            if record:
                return Committed(request.replay(record))
            check_same(session, epoch)
            try:
                committed = self._commit(key, session, sent, request, extra, closes, usage)
            except GuardFailedError as error:
                if "open_turn" in error.failed:
                    raise
                continue
            milliseconds = (time.perf_counter() - started) * 1000
            self.metrics.record({Metric.COMMITS: 1, Metric.COMMIT_LATENCY: milliseconds})
            settings = committed.session.settings if committed.session else self.defaults
            if not (judged_next and settings.judges_at_once):
                self.ring(committed)
            return committed
        raise CommitConflictError("other commits to this session were faster; try again")

    def ring(self, committed: Committed) -> None:
        """Ring the doorbell if the turn may have left work; best effort, the sweeper rings too."""
        turn, session = committed.turn, committed.session
        if turn and session and is_due(session):
            ring_gently(self.doorbell, session.key, turn.turn_id, turn.number)

    def _commit(
        self,
        key: SessionKey,
        session: Session | None,
        sent: TurnToCommit,
        request: IdempotentRequest,
        extra: Mapping[str, Any] | None,
        closes: OpenTurnRef | None,
        usage: Usage | None,
    ) -> Committed:
        if session and session.status is SessionStatus.ERASING:
            raise SessionErasingError
        now = self.clock()
        before = session or Session(
            key=key,
            epoch=self.new_id(),
            created_at=now,
            updated_at=now,
            settings=self.defaults,
            profile_rev=0,
        )
        turn, raw = make_record(
            number=before.next_turn,
            turn_id=self.new_id(),
            committed_at=now,
            messages=sent.messages,
            prev_sha256=before.last_sha256,
            metadata=sent.metadata,
            user_id=_one_user(before.user_id, sent.user_id),
        )
        after = self._after(before, turn, sent)
        answer = Answer(200 if extra else 201, {**self._body(after, turn), **(extra or {})})
        record = request.record(answer.status, answer.body, now)
        self.archive.put_record(key, turn.number, turn.turn_id, raw)
        change = self._change(session, before, after, turn, sent, record)
        self.store.write(replace(change, closes=closes, usage=usage))
        return Committed(answer, turn, after)

    def _after(self, before: Session, turn: Turn, sent: TurnToCommit) -> Session:
        leading, _ = split_leading(sent.messages)
        digest = system_hash(leading) if leading else before.system_sha256
        after = replace(
            before,
            next_turn=turn.number + 1,
            updated_at=turn.committed_at,
            last_sha256=turn.sha256,
            user_id=_one_user(before.user_id, sent.user_id),
            system_sha256=digest,
            profile_rev=before.profile_rev + (digest != before.system_sha256),
        )
        return with_due_time(before, after, turn.committed_at)

    def _change(
        self,
        session: Session | None,
        before: Session,
        after: Session,
        turn: Turn,
        sent: TurnToCommit,
        record: IdempotencyRecord,
    ) -> Change:
        system = split_leading(sent.messages)[0]
        if session is None:
            return Change(
                key=after.key,
                creates=after,
                turn=turn,
                profile=Profile(system=system),
                idempotency=record,
            )
        changed = {
            name: getattr(after, name)
            for name in (
                "next_turn",
                "updated_at",
                "last_sha256",
                "user_id",
                "system_sha256",
                "profile_rev",
                "due_at",
                "sweeps",
            )
            if getattr(after, name) != getattr(before, name)
        }
        if is_due(after):
            # Also when it was due before: the compactor may say meanwhile that it is not any more.
            changed["due_at"] = after.due_at
        profile = None
        # Settings are part of the profile's revision, and by them it was decided whether to ring.
        guards: dict[str, Any] = {
            "next_turn": before.next_turn,
            "profile_rev": before.profile_rev,
        }
        if "user_id" in changed:
            guards["user_id"] = before.user_id
        if after.profile_rev != before.profile_rev:
            profile = replace(self._profile(after.key), system=system)
        return Change(
            key=after.key,
            epoch=before.epoch,
            guards=guards,
            sets=changed,
            turn=turn,
            profile=profile,
            idempotency=record,
        )

    def _profile(self, key: SessionKey) -> Profile:
        memory = self.store.load(key)
        if memory is None:
            raise SessionNotFoundError("the session vanished while the turn was committed")
        return memory.profile

    def _body(self, after: Session, turn: Turn) -> dict[str, Any]:
        return {
            "session_id": after.key.session_id,
            "turn": turn.number,
            "turn_id": turn.turn_id,
            "committed_at": format_time(turn.committed_at),
            "tokens": estimate(turn.conversation),
            "tokens_estimated": True,
            "watermark": watermark_view(after, pending_bound(after)),
            **({"pins": [], "pins_pending": True} if after.settings.judges_at_once else {}),
        }


def _one_user(known: str | None, sent: str | None) -> str | None:
    if known is not None and sent is not None and known != sent:
        raise UserMismatchError("the session belongs to another user_id, which is set once")
    return known if sent is None else sent
