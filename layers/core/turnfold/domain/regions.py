"""Regions are watermarks, not moves: head, window and tail follow from the numbers (design, 3)."""

from dataclasses import dataclass

from turnfold.domain.memory import WorkingMemory
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn


@dataclass(frozen=True, slots=True)
class Regions:
    """Working memory by region, each in order. `window` is all between head and tail."""

    head: tuple[Turn, ...]
    window: tuple[Summary | Turn, ...]
    tail: tuple[Turn, ...]

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """The window's summaries; they always precede its raw turns."""
        return tuple(one for one in self.window if isinstance(one, Summary))

    @property
    def raw(self) -> tuple[Turn, ...]:
        """The window's turns that still stand word for word."""
        return tuple(one for one in self.window if isinstance(one, Turn))


def split_regions(memory: WorkingMemory) -> Regions:
    """The regions of a working memory."""
    session = memory.session
    middle = (
        turn for turn in memory.turns if session.raw_start <= turn.number < session.tail_start
    )
    return Regions(
        head=tuple(turn for turn in memory.turns if turn.number <= session.head_end),
        window=(*memory.summaries, *middle),
        tail=tuple(turn for turn in memory.turns if turn.number >= session.tail_start),
    )
