"""Working memory by region, and what of a mixed read belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.planning import KEY, a_turn
from support.sessions import a_pin, a_session, a_summary
from turnfold.domain.memory import assemble_memory, raw_numbers
from turnfold.domain.regions import split_regions
from turnfold.domain.sessions import Profile
from turnfold.domain.summaries import Summary

if TYPE_CHECKING:
    from turnfold.domain.memory import WorkingMemory
    from turnfold.domain.sessions import Session

SUMMARIES = [a_summary(3, 3, 1), a_summary(4, 7, 2)]


def session() -> Session:
    """Head 1, raw 2, summaries of 3 and 4-7, raw 8, tail 9 and 10, two pins."""
    return a_session(
        KEY,
        next_turn=11,
        manifest=tuple(one.ref for one in SUMMARIES),
        compacted_through=7,
        pin_rev=5,
        pin_count=2,
    )


def read(
    turns: tuple[int, ...] = (1, 2, 8, 9, 10),
    summaries: list[Summary] | None = None,
    pins: tuple[str, ...] = ("p2", "p1"),
    rev: int = 5,
) -> WorkingMemory | None:
    return assemble_memory(
        session(),
        Profile(),
        [a_turn(number) for number in turns],
        SUMMARIES if summaries is None else summaries,
        [a_pin(name, rev=rev) for name in pins],
    )


def test_regions_in_order() -> None:
    memory = read()
    assert memory is not None
    regions = split_regions(memory)
    assert [turn.number for turn in regions.head] == [1]
    window = [one.from_turn if isinstance(one, Summary) else one.number for one in regions.window]
    assert window == [2, 3, 4, 8]
    assert [one.from_turn for one in regions.summaries] == [3, 4]
    assert [turn.number for turn in regions.raw] == [2, 8]
    assert [turn.number for turn in regions.tail] == [9, 10]
    assert [pin.pin_id for pin in memory.pins] == ["p1", "p2"]


def test_what_the_session_does_not_name_is_left_out() -> None:
    memory = read(turns=tuple(range(1, 14)), summaries=[*SUMMARIES, a_summary(3, 7, 3)])
    assert memory is not None
    assert [turn.number for turn in memory.turns] == list(raw_numbers(session()))
    assert list(memory.summaries) == SUMMARIES


@pytest.mark.parametrize("missing", [1, 2, 8, 9, 10])
def test_a_missing_turn_makes_a_read_incomplete(missing: int) -> None:
    assert read(turns=tuple(n for n in (1, 2, 8, 9, 10) if n != missing)) is None


def test_a_missing_summary_or_pin_makes_a_read_incomplete() -> None:
    assert read(summaries=SUMMARIES[:1]) is None
    assert read(summaries=[SUMMARIES[0], a_summary(4, 7, 3)]) is None
    assert read(pins=("p1",)) is None
    assert read(pins=("p1", "p2", "p3")) is None


def test_a_pin_that_is_newer_than_the_session_makes_a_read_incomplete() -> None:
    assert read(rev=6) is None
