"""Open turns: two writers, and a process that dies between two calls."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from support.service import KEY, Service
from turnfold.adapters.in_memory_open_turns import InMemoryOpenTurns
from turnfold.application.answer import IdempotentRequest
from turnfold.application.open_turns import OpenTurns
from turnfold.domain.errors import CommitConflictError, OpenTurnNotFoundError

_keys = itertools.count(1)


class Interrupting:
    """Open turns, with something of another writer just before the n-th call of a method."""

    def __init__(self, drafts: InMemoryOpenTurns) -> None:
        self._drafts = drafts
        self.before: dict[str, list[Any]] = {}

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            waiting = self.before.get(name) or []
            if waiting:
                waiting.pop(0)()
            return getattr(self._drafts, name)(*arguments, **named)

        return call


class Desk:
    """Two writers of one session's open turn: one through `turns`, which can be interrupted."""

    def __init__(self) -> None:
        self.service = Service(pin_mode="off")
        plain = InMemoryOpenTurns(self.service.raw_store, self.service.clock)
        self.interrupting = Interrupting(plain)
        parts = (self.service.commit_turn, self.service.clock, self.service.new_id)
        self.turns = OpenTurns(self.interrupting, *parts)
        self.other = OpenTurns(plain, *parts)

    def append(self, turns: OpenTurns, text: str, role: str = "user") -> None:
        messages = [{"role": role, "content": text}]
        turns.append(KEY, messages, request("append", messages))


def request(route: str, body: Any) -> IdempotentRequest:
    return IdempotentRequest.of(route, f"key-{next(_keys)}", body)


def test_an_append_that_lost_a_race_is_appended_behind() -> None:
    desk = Desk()
    desk.append(desk.other, "first")
    desk.interrupting.before["append_open_turn"] = [lambda: desk.append(desk.other, "second")]
    desk.append(desk.turns, "third")
    assert [one["content"] for one in desk.turns.get(KEY).messages] == ["first", "second", "third"]


def test_an_append_during_a_commit_is_committed_with_it() -> None:
    desk = Desk()
    desk.append(desk.other, "question")
    done = {"role": "assistant", "content": "answer"}
    late = [lambda: desk.append(desk.other, "one thing more")]
    desk.service.raw_store.read_session = _before(desk.service.raw_store.read_session, late, 1)  # type: ignore[method-assign]  # something happens before the call
    desk.turns.commit(KEY, [done], request("commit", [done]))
    (turn,) = desk.service.memory().turns
    assert [one["content"] for one in turn.messages] == ["question", "one thing more", "answer"]
    with pytest.raises(OpenTurnNotFoundError):
        desk.turns.get(KEY)


def test_two_commits_of_one_open_turn_make_one_turn() -> None:
    desk = Desk()
    desk.append(desk.other, "question")
    done = [{"role": "assistant", "content": "answer"}]
    first = [lambda: desk.other.commit(KEY, done, request("commit", done))]
    desk.service.raw_store.read_session = _before(desk.service.raw_store.read_session, first, 1)  # type: ignore[method-assign]  # something happens before the call
    with pytest.raises((OpenTurnNotFoundError, CommitConflictError)):
        desk.turns.commit(KEY, done, request("commit", done))
    assert desk.service.memory().session.committed_through == 1


def _before(real: Any, waiting: list[Any], skip: int) -> Any:
    """The method, with something else before its call number `skip` + 1."""
    calls = itertools.count()

    def call(*arguments: Any) -> Any:
        if next(calls) == skip and waiting:
            waiting.pop(0)()
        return real(*arguments)

    return call
