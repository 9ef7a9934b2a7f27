"""Cutting a list of messages into finished turns, repairing what can be repaired.

A turn begins with the user's messages (and the system messages before them) and ends before the
next ones. Repaired is what a log often lacks and nothing hangs on: a tool call that nobody
answered gets an empty answer. Left out, and reported by number, is what cannot be part of a turn:
malformed messages, answers to no call, what comes before the first user message, and a turn without
a final answer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from turnfold.domain.errors import InvalidMessagesError
from turnfold.domain.message_rules import check_messages, check_turn
from turnfold.domain.messages import LEADING_ROLES, Message, tool_calls


@dataclass(frozen=True, slots=True)
class Fault:
    """What could not be taken: the number of its line or entry, from 1, and why."""

    place: int
    reason: str


@dataclass(frozen=True, slots=True)
class CutTurn:
    """A finished turn, and the number of the entry that it begins with."""

    place: int
    messages: tuple[Message, ...]


@dataclass(slots=True)
class _Open:
    """A turn that is being gathered."""

    place: int
    messages: list[Message] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    answered: bool = False


def cut_turns(messages: Iterable[tuple[int, Any]]) -> tuple[list[CutTurn], list[Fault]]:
    """The turns of numbered messages, and what was left out."""
    cutter = _Cutter()
    for place, message in messages:
        cutter.add(place, message)
    cutter.close()
    return cutter.turns, cutter.faults


class _Cutter:
    def __init__(self) -> None:
        self.turns: list[CutTurn] = []
        self.faults: list[Fault] = []
        self._open: _Open | None = None

    def add(self, place: int, value: Any) -> None:  # noqa: ANN401 - checked here
        """Take the next message."""
        try:
            (message,) = check_messages([value])
        except InvalidMessagesError as error:
            reason = "; ".join(msg for _, msg in error.errors[:2])
            self.faults.append(Fault(place, reason))
            return
        match message["role"]:
            case "tool":
                self._add_answer(place, message)
            case "assistant":
                self._add_assistant(place, message)
            case role:
                self._add_question(place, message, leading=role in LEADING_ROLES)

    def close(self) -> None:
        """End the turn that is open."""
        turn, self._open = self._open, None
        if turn is None:
            return
        self._repair(turn)
        try:
            check_turn(turn.messages)
        except InvalidMessagesError as error:
            reason = "; ".join(msg for _, msg in error.errors[:2])
            self.faults.append(Fault(turn.place, f"no finished turn begins here: {reason}"))
            return
        self.turns.append(CutTurn(turn.place, tuple(turn.messages)))

    def _add_question(self, place: int, message: Message, *, leading: bool) -> None:
        """A system or user message: it begins another turn after an answer.

        So does a system message after a user's.
        """
        turn = self._open
        asked = turn is not None and any(one["role"] == "user" for one in turn.messages)
        if turn is None or turn.answered or (leading and asked):
            self.close()
            turn = self._open = _Open(place)
        turn.messages.append(message)

    def _add_assistant(self, place: int, message: Message) -> None:
        turn = self._open
        if turn is None or not any(one["role"] == "user" for one in turn.messages):
            self.faults.append(Fault(place, "an answer without a question before it"))
            return
        self._repair(turn)
        turn.messages.append(message)
        turn.answered = True
        turn.unanswered = [call["id"] for call in tool_calls(message)]

    def _add_answer(self, place: int, message: Message) -> None:
        turn = self._open
        if turn is None or message["tool_call_id"] not in turn.unanswered:
            self.faults.append(Fault(place, "answers no open tool call"))
            return
        turn.unanswered.remove(message["tool_call_id"])
        turn.messages.append(message)

    def _repair(self, turn: _Open) -> None:
        """Answer the calls that nobody answered."""
        for call_id in turn.unanswered:
            answer: Mapping[str, Any] = {"role": "tool", "tool_call_id": call_id, "content": ""}
            turn.messages.append(answer)
        turn.unanswered = []
