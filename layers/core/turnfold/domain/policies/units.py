"""A conversation as units that stay or go together, and the repair of what is broken in it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from turnfold.domain.messages import MEMORY_NAME, Message, is_blank, is_leading, tool_calls


class Kind(Enum):
    """What a unit is. `FIXED` units (system messages, memory of this service) never go."""

    FIXED = "fixed"
    EXCHANGE = "exchange"
    USER = "user"
    ASSISTANT = "assistant"


class Unit(NamedTuple):
    """Messages that stay or go together, by their places in the list, ascending."""

    places: tuple[int, ...]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Conversation:
    """The live units of a list of messages in order, and the places of what is dead.

    Dead are tool results that answer no open call of the assistant message before them, and tool
    requests that were not fully answered before the next message: no provider takes them any more.
    A request at the end may still be answered and is alive.
    """

    units: tuple[Unit, ...]
    dead: tuple[int, ...]


class _Exchange:
    """A tool request under way, and its place among the units."""

    __slots__ = ("at", "places", "waiting")

    def __init__(self, at: int, place: int, message: Message) -> None:
        self.at = at
        self.places = [place]
        self.waiting = {call["id"] for call in tool_calls(message)}

    def takes(self, place: int, message: Message) -> bool:
        """Whether a tool message answers one of its open calls; then it belongs to it."""
        call_id = message.get("tool_call_id")
        if call_id not in self.waiting:
            return False
        self.places.append(place)
        self.waiting.discard(call_id)
        return True


def is_fixed(message: Message) -> bool:
    """Whether a message is never dropped: system and developer messages, and memory."""
    return is_leading(message) or message.get("name") == MEMORY_NAME


def read_units(messages: Sequence[Message], *, drop_blank: bool = False) -> Conversation:
    """The units of a list of messages. With `drop_blank` assistant messages without words die too.

    System messages do not interrupt an exchange: where they stand is the caller's affair.
    """
    units: list[Unit | None] = []
    dead: list[int] = []
    current: _Exchange | None = None
    for place, message in enumerate(messages):
        if is_fixed(message):
            units.append(Unit((place,), Kind.FIXED))
            continue
        role = message["role"]
        if role == "tool":
            if current is None or not current.takes(place, message):
                dead.append(place)
            continue
        if current is not None:
            _close(current, units, dead)
            current = None
        if role == "user":
            units.append(Unit((place,), Kind.USER))
        elif tool_calls(message):
            current = _Exchange(len(units), place, message)
            units.append(None)
        elif drop_blank and is_blank(message):
            dead.append(place)
        else:
            units.append(Unit((place,), Kind.ASSISTANT))
    if current is not None:
        current.waiting.clear()
        _close(current, units, dead)
    return Conversation(tuple(unit for unit in units if unit is not None), tuple(sorted(dead)))


def _close(exchange: _Exchange, units: list[Unit | None], dead: list[int]) -> None:
    """Put an exchange in its place among the units if it is whole, else among the dead."""
    if exchange.waiting:
        dead.extend(exchange.places)
    else:
        units[exchange.at] = Unit(tuple(exchange.places), Kind.EXCHANGE)


def repaired(messages: Sequence[Message]) -> list[Message]:
    """The messages without what is dead. The list itself is not changed."""
    dead = set(read_units(messages).dead)
    return [one for place, one in enumerate(messages) if place not in dead]


@dataclass(frozen=True, slots=True)
class NewestTurn:
    """The units of the newest turn, by their places among the units.

    `core` are never dropped: what the user asked, and the newest unit. `rest` are the others of
    the turn, which go last. `start` is the first of them all.
    """

    start: int
    core: frozenset[int]
    rest: tuple[int, ...]


def newest_turn(
    units: Sequence[Unit], *, finished_too: bool, protected_from: int | None = None
) -> NewestTurn:
    """The newest turn. One that ends with an answer counts only with `finished_too`.

    It begins with the newest user message, or with the first unit at or after the place
    `protected_from`, whichever comes first.
    """
    spoken = [at for at, unit in enumerate(units) if unit.kind is not Kind.FIXED]
    nothing = NewestTurn(len(units), frozenset(), ())
    if not spoken:
        return nothing
    newest = spoken[-1]
    if units[newest].kind is Kind.ASSISTANT and not finished_too:
        return nothing
    users = [at for at in spoken if units[at].kind is Kind.USER]
    start = users[-1] if users else newest
    if protected_from is not None:
        inside = (at for at in spoken if units[at].places[0] >= protected_from)
        start = min(start, next(inside, start))
    turn = [at for at in spoken if at >= start]
    core = {at for at in turn if units[at].kind is Kind.USER} | {newest}
    return NewestTurn(start, frozenset(core), tuple(at for at in turn if at not in core))


def places_of(units: Iterable[Unit]) -> list[int]:
    """All places of some units, ascending."""
    return sorted(place for unit in units for place in unit.places)
