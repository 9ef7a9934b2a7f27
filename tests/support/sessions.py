"""Sessions, turns and summaries to store, and commits as the use cases make them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from turnfold.application.ports.memory import Change, IdempotencyRecord, MemoryStore
from turnfold.domain.errors import GuardFailedError
from turnfold.domain.pins import Pin, PinStatus, Trust
from turnfold.domain.sessions import Profile, Session, SessionKey, SummaryRef
from turnfold.domain.summaries import Summary
from turnfold.domain.transcript import make_record
from turnfold.domain.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnfold.application.ports.archive import Archive
    from turnfold.domain.turns import Turn

START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
A_USAGE = Usage("round_summary", "model-1", prompt_tokens=100, completion_tokens=10)


def a_session(key: SessionKey, **fields: object) -> Session:
    """A new session."""
    values: dict[str, Any] = {"epoch": "e1", "created_at": START, "updated_at": START}
    values.update(fields)
    return Session(key=key, **values)


def a_turn(number: int, *texts: str, turn_id: str = "", prev: str = "0" * 64) -> tuple[Turn, bytes]:
    """A turn of a question and an answer, and its record."""
    question, answer = (*texts, f"question {number}", f"answer {number}")[:2]
    messages = ({"role": "user", "content": question}, {"role": "assistant", "content": answer})
    return make_record(
        number=number,
        turn_id=turn_id or f"turn-{number}",
        committed_at=START,
        messages=messages,
        prev_sha256=prev,
    )


def a_pin(pin_id: str, status: PinStatus = PinStatus.ACTIVE, **fields: object) -> Pin:
    """A pin."""
    values: dict[str, Any] = {
        "pin_id": pin_id,
        "text": f"fact {pin_id}",
        "tokens": 3,
        "status": status,
        "trust": Trust.USER,
        "confidence": 0.9,
        "sources": (1,),
        "created_at": START,
        "updated_at": START,
        "rev": 1,
    }
    values.update(fields)
    return Pin(**values)


def a_summary(from_turn: int, to_turn: int, level: int = 1, text: str = "in short") -> Summary:
    """A summary."""
    return Summary(
        from_turn=from_turn,
        to_turn=to_turn,
        level=level,
        text=text,
        tokens=2,
        source_tokens=40,
        model="model-1",
        prompt_version="1",
        created_at=START,
    )


def a_record(key_hash: str = "k1", **fields: object) -> IdempotencyRecord:
    """An idempotency record that expires in two days."""
    values: dict[str, Any] = {
        "key_hash": key_hash,
        "request_hash": "r1",
        "status": 201,
        "body": {"turn": 1, "ratio": 0.1, "big": 2**60},
        "expires_at": START + timedelta(days=2),
    }
    values.update(fields)
    return IdempotencyRecord(**values)


@dataclass
class Writer:
    """Commits and folds turns of one session, as the use cases do."""

    store: MemoryStore
    archive: Archive
    key: SessionKey
    made: int = 0
    committed: list[Turn] = field(default_factory=list)

    def create(self, **fields: object) -> Session:
        """Create the session; without a turn."""
        session = a_session(self.key, **fields)
        self.store.write(Change(key=self.key, creates=session, profile=Profile()))
        return session

    def try_commit(self, *texts: str, turn_id: str = "", record: bool = True) -> Turn:
        """One attempt. Raises `GuardFailedError` if another writer was faster."""
        session, _ = self.store.read_session(self.key, None)
        before = session or a_session(self.key)
        number = before.next_turn
        turn, raw = a_turn(number, *texts, turn_id=turn_id, prev=before.last_sha256)
        if record:
            self.archive.put_record(self.key, number, turn.turn_id, raw)
        sets: dict[str, Any] = {"next_turn": number + 1, "last_sha256": turn.sha256}
        if session is None:
            change = Change(key=self.key, creates=replace(before, **sets), turn=turn)
        else:
            guards = {"next_turn": number}
            change = Change(key=self.key, epoch=session.epoch, guards=guards, sets=sets, turn=turn)
        self.store.write(change)
        self.committed.append(turn)
        return turn

    def commit(self, *texts: str, turn_id: str = "") -> Turn:
        """Commit, again until it works."""
        while True:
            try:
                return self.try_commit(*texts, turn_id=turn_id)
            except GuardFailedError:
                continue

    def fold(self, number: int) -> None:
        """Replace one turn by a summary, or extend the one summary by it."""
        session, _ = self.store.read_session(self.key, None)
        assert session is not None
        old = session.manifest
        start = old[0].from_turn if old else number
        summary = a_summary(start, number, level=1 if start == number else 2)
        self.store.write(
            Change(
                key=self.key,
                epoch=session.epoch,
                guards={"compacted_through": session.compacted_through, "manifest": old},
                sets={
                    "compacted_through": number,
                    "manifest": (SummaryRef(start, number, summary.level),),
                    "summary_rev": session.summary_rev + 1,
                },
                summaries=(summary,),
                removes_turns=(number,),
                removes_summaries=old,
            )
        )


def big_text(characters: int) -> str:
    """A text of varied characters."""
    return ("0123456789 abcdefghij 漢字かな交じり文 \u2028 " * (characters // 30 + 1))[:characters]


def messages_of(turns: Sequence[Turn]) -> list[tuple[Any, ...]]:
    """The messages of turns, to compare."""
    return [turn.messages for turn in turns]
