"""Which ranges of turns an index is made of: aligned, in sizes that grow by a factor.

The ranges follow from the number of turns alone. So two workers that index the same session write
the same objects, and a reader knows which to expect.
"""

from collections.abc import Iterable

from turnfold.domain.sessions import TurnRange, gaps

SMALLEST = 128
"""Turns of the smallest piece. Fewer would cost a session more writes: with 128, a thousand turns
cost 7. The newest, which no piece holds, are read from working memory and the transcript."""

FACTOR = 4
LARGEST = SMALLEST * FACTOR * FACTOR
"""2,048 turns: a few megabytes, which a function reads at once."""

SIZES = (LARGEST, SMALLEST * FACTOR, SMALLEST)


def cover(turns: int) -> tuple[TurnRange, ...]:
    """The ranges of full pieces of a session with that many turns, ascending.

    The newest turns, fewer than `SMALLEST`, are in none.
    """
    found: list[TurnRange] = []
    start = 0
    for size in SIZES:
        while start + size <= turns:
            found.append(TurnRange(start + 1, start + size))
            start += size
    return tuple(found)


def cover_all(turns: int) -> tuple[TurnRange, ...]:
    """The ranges of `cover`, and one of the newest turns."""
    full = cover(turns)
    start = full[-1].to_turn + 1 if full else 1
    return (*full, TurnRange(start, turns)) if start <= turns else full


def tiling(wanted: TurnRange, there: Iterable[TurnRange]) -> tuple[TurnRange, ...]:
    """Ranges of `there` within `wanted` that do not overlap, ascending; the longest of each start.

    What they leave out of `wanted` is `missing`.
    """
    inside = (
        one for one in there if wanted.from_turn <= one.from_turn and one.to_turn <= wanted.to_turn
    )
    found: list[TurnRange] = []
    reached = wanted.from_turn - 1
    for one in sorted(inside, key=lambda one: (one.from_turn, -one.to_turn)):
        if one.from_turn > reached:
            found.append(one)
            reached = one.to_turn
    return tuple(found)


def missing(wanted: TurnRange, tiles: Iterable[TurnRange]) -> tuple[TurnRange, ...]:
    """The runs of turns of `wanted` that are in no tile, ascending."""
    covered = ((one.from_turn, one.to_turn) for one in tiles)
    return gaps(covered, wanted.to_turn, first=wanted.from_turn)
