"""Folding pins without a model: short facts of the same trust are put side by side in one pin.

Every word stays; only the number of pins falls.
"""

from collections.abc import Sequence
from itertools import pairwise

from turnfold.domain.judgement import FoldedFact
from turnfold.domain.pin_slots import states_nothing_else
from turnfold.domain.pins import Pin

MAX_JOINED_CHARACTERS = 500
"""Room for two of the longest sentences that the rules pin; more would be hard to correct."""

_FULL_STOPS = "。！？…"
_STOPS = ".!?;" + _FULL_STOPS


def join_pins(pins: Sequence[Pin], most: int) -> tuple[FoldedFact, ...]:
    """One fact for each group of pins; as many groups as `most`, or more if joining cannot help.

    A name, a home and the like stay alone: a later one takes their place.
    """
    groups: list[tuple[Pin, ...]] = [(pin,) for pin in pins]
    while len(groups) > most:
        sizes = {
            at: _size((*left, *right))
            for at, (left, right) in enumerate(pairwise(groups))
            if _may_stand_together((*left, *right))
        }
        if not sizes:
            break
        at = min(sizes, key=lambda one: (sizes[one], one))
        groups[at : at + 2] = [(*groups[at], *groups[at + 1])]
    return tuple(FoldedFact(_text(group), tuple(pin.pin_id for pin in group)) for group in groups)


def _size(group: Sequence[Pin]) -> int:
    return len(_text(group))


def _may_stand_together(group: Sequence[Pin]) -> bool:
    return (
        len({pin.trust for pin in group}) == 1
        and not any(states_nothing_else(pin.text) for pin in group)
        and _size(group) <= MAX_JOINED_CHARACTERS
    )


def _text(group: Sequence[Pin]) -> str:
    text = group[0].text.strip()
    for pin in group[1:]:
        if not text.endswith(tuple(_STOPS)):
            text += ";"
        text += ("" if text.endswith(tuple(_FULL_STOPS)) else " ") + pin.text.strip()
    return text
