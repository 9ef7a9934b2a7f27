"""Several rankings of the same things as one: reciprocal rank fusion (Cormack and others, 2009)."""

from collections import defaultdict
from collections.abc import Hashable, Sequence

RANK_OFFSET = 60
"""The paper's constant: how little the first few places differ."""


def fuse[Thing: Hashable](*rankings: Sequence[Thing]) -> list[tuple[Thing, float]]:
    """All things of the rankings with scores above 0, best first.

    A thing scores 1 / (60 + its place) in each ranking that names it. Equal scores stand in the
    order in which they are met: by place, and in a place by ranking.
    """
    scores: dict[Thing, float] = defaultdict(float)
    places = max((len(ranking) for ranking in rankings), default=0)
    for place in range(places):
        for ranking in rankings:
            if place < len(ranking):
                scores[ranking[place]] += 1 / (RANK_OFFSET + place + 1)
    return sorted(scores.items(), key=lambda one: -one[1])
