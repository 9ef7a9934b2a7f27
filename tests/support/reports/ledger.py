"""What a case has committed, as the service must have kept it."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import Any

type Name = tuple[str, str]
"""Tenant and session id."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
LEADING = ("system", "developer")


def clean(value: Any) -> Any:
    """A value as it is stored: NUL and lone surrogates are U+FFFD (docs/decisions.md)."""
    if isinstance(value, str):
        whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return _UNSTORABLE.sub("\ufffd", whole)
    if isinstance(value, list):
        return [clean(one) for one in value]
    if isinstance(value, dict):
        return {clean(name): clean(one) for name, one in value.items()}
    return value


@dataclass
class SessionLedger:
    """One session: its turns by number, and the messages of its open turn."""

    turns: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    open: list[dict[str, Any]] = field(default_factory=list)
    deleted: bool = False
    earlier: list[SessionLedger] = field(default_factory=list)
    """The lives of the id before it was erased and begun anew."""
    foreign: bool = False
    """Whether turns came in by another way than commits."""

    def conversation(self) -> list[dict[str, Any]]:
        """All messages in their order, without system messages."""
        rows = [one for number in sorted(self.turns) for one in self.turns[number]]
        return [one for one in [*rows, *self.open] if one["role"] not in LEADING]


@dataclass
class Ledger:
    """All sessions of a case."""

    sessions: dict[Name, SessionLedger] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, name: Name) -> SessionLedger:
        with self._lock:
            return self.sessions.setdefault(name, SessionLedger())

    def living_texts(self) -> set[str]:
        """What was said in sessions that are not erased."""
        living = (one for one in self.sessions.values() if not one.deleted)
        said = (message for one in living for turn in one.turns.values() for message in turn)
        return {one["content"] for one in said if isinstance(one.get("content"), str)}

    def note_texts(self, messages: list[dict[str, Any]]) -> None:
        """Remember what was said, taken or not: no error and no log may repeat it."""
        for message in messages:
            content = message.get("content")
            if isinstance(content, str):
                self.texts.add(content)

    def note_turn(self, name: Name, number: int, messages: list[dict[str, Any]]) -> None:
        session = self.of(name)
        with self._lock:
            if session.deleted:
                session = SessionLedger(earlier=[*session.earlier, session])
                self.sessions[name] = session
            known = session.turns.setdefault(number, clean(messages))
            assert known == clean(messages), f"turn {number} was given to two commits"
