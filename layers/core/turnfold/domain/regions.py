"""Regions are watermarks, not moves: head, window and tail follow from the numbers (design, 3)."""

from dataclasses import dataclass

from turnfold.domain.memory import WorkingMemory
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn

type Entry = Summary | Turn
"""What the window holds."""


def first_turn(entry: Entry) -> int:
    """The first turn that an entry stands for."""
    return entry.number if isinstance(entry, Turn) else entry.from_turn


def last_turn(entry: Entry) -> int:
    """The last turn that an entry stands for."""
    return entry.number if isinstance(entry, Turn) else entry.to_turn


@dataclass(frozen=True, slots=True)
class Regions:
    """Working memory by region, each in order. `window` is all between head and tail."""

    head: tuple[Turn, ...]
    window: tuple[Entry, ...]
    tail: tuple[Turn, ...]

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """The window's summaries."""
        return tuple(one for one in self.window if isinstance(one, Summary))

    @property
    def raw(self) -> tuple[Turn, ...]:
        """The window's turns that still stand word for word.

        A short turn may stand before the summary of a long one that came after it.
        """
        return tuple(one for one in self.window if isinstance(one, Turn))


def split_regions(memory: WorkingMemory) -> Regions:
    """The regions of a working memory."""
    session = memory.session
    middle = [turn for turn in memory.turns if session.head_end < turn.number < session.tail_start]
    return Regions(
        head=tuple(turn for turn in memory.turns if turn.number <= session.head_end),
        window=tuple(sorted([*memory.summaries, *middle], key=first_turn)),
        tail=tuple(turn for turn in memory.turns if turn.number >= session.tail_start),
    )
