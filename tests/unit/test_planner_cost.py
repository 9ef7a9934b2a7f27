"""What planning costs: a window may hold thousands of raw turns, and every read plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, override

import pytest

from support.planning import Conversation
from support.service import count_words
from turnfold.domain.measure import Measure
from turnfold.domain.planner import Fold, next_step, pending_turns
from turnfold.domain.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnfold.domain.turns import Turn

TURNS = 1000


class CountingMeasure(Measure):
    """Counts how many turns it was asked about."""

    def __init__(self) -> None:
        super().__init__(count_words)
        self.looks = 0

    @override
    def exceeds(self, turns: Iterable[Turn], limit: int) -> bool:
        asked = tuple(turns)
        self.looks += len(asked)
        return super().exceeds(asked, limit)


@pytest.mark.parametrize("schedule", ["tiered", "whole"])
@pytest.mark.parametrize("window_max_size", [1, 5, 1000])
def test_each_turn_of_a_long_window_is_looked_at_a_few_times(
    schedule: str, window_max_size: int
) -> None:
    settings = Settings(
        pin_mode="off", auto_compression=False, schedule=schedule, window_max_size=window_max_size
    )
    talk = Conversation(settings)
    for _ in range(TURNS):
        talk.commit(20)
    planning, reading = CountingMeasure(), CountingMeasure()
    assert isinstance(next_step(talk.memory, planning, forced=True), Fold)
    assert pending_turns(talk.memory, reading)
    assert planning.looks <= 6 * TURNS
    assert reading.looks <= 12 * TURNS
