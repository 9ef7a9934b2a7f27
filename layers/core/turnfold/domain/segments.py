"""Segments: many records of a transcript in one compressed object, and when to make them.

A segment is gzip of JSON Lines: the records of turns `first` to `last` byte for byte, one for each
number, divided by line feeds alone (JSON escapes a line feed in a text; U+2028 and U+0085 stay as
they are). The same records give the same bytes, so of two writers either may be the first.
"""

import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

BASE_TURNS = 32
"""Turns of a new segment."""

FAN = 6
"""So many equal segments are merged into one. With 32, 192 and 1,152 turns, a thousand turns cost
38 PUTs beside those of their records, and 5,000 turns are read with at most 55 GETs: 39 single
records, 5 + 5 smaller segments and 4 of the largest (and fewer on average)."""

KEPT_RECORDS = 8
"""The newest records stay single: commits that race for a number are settled behind them."""

MAX_RECORD_BYTES = 8 * 1024 * 1024
"""Records of a new segment; with large turns it holds fewer of them, but at least one."""

MAX_SEGMENT_BYTES = 2 * 1024 * 1024
"""Compressed. A reader of one turn takes the whole segment, so there is an end to merging."""


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """Names a segment by the turns that it holds, both inclusive.

    `size` is what it takes in bytes, where a list told it.
    """

    first: int
    last: int
    size: int = field(default=0, compare=False)

    @property
    def turns(self) -> int:
        """How many turns it holds."""
        return self.last - self.first + 1


def pack_segment(records: Iterable[bytes]) -> bytes:
    """The segment of these records."""
    return gzip.compress(b"".join(record + b"\n" for record in records), mtime=0)


def unpack_segment(data: bytes, segment: Segment) -> list[bytes]:
    """The records of a segment. Raises `ValueError` if it is damaged."""
    try:
        lines = gzip.decompress(data).split(b"\n")
    except (OSError, EOFError) as error:
        raise ValueError("the segment is not gzip") from error
    if len(lines) != segment.turns + 1 or lines[-1]:
        raise ValueError("the segment has another number of records than its name says")
    return lines[:-1]


def covering(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """The segments that are not part of a larger one, ascending.

    While segments are merged, the parts and the whole stand side by side for a moment.
    """
    kept: list[Segment] = []
    for one in sorted(segments, key=lambda one: (one.first, -one.last)):
        if not kept or one.last > kept[-1].last:
            kept.append(one)
    return tuple(kept)


def next_segment(committed_through: int, archived_through: int) -> Segment | None:
    """The turns of the next segment to make; None while there are too few."""
    last = archived_through + BASE_TURNS
    return Segment(archived_through + 1, last) if last <= committed_through - KEPT_RECORDS else None


def fitting(records: Sequence[bytes]) -> Sequence[bytes]:
    """As many of the first records as one new segment takes; at least one."""
    size = 0
    for count, record in enumerate(records):
        size += len(record) + 1
        if count and size > MAX_RECORD_BYTES:
            return records[:count]
    return records


def holder(segments: Iterable[Segment], number: int) -> Segment | None:
    """The segment that holds a turn; the largest, if there are several."""
    holders = [one for one in segments if one.first <= number <= one.last]
    return max(holders, key=lambda one: one.turns, default=None)


def to_merge(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """The oldest run of `FAN` neighbours of one size that make the next size, if there is one.

    `segments` are disjoint and ascending. The largest size is `BASE_TURNS` × `FAN`² turns.
    """
    for turns in (BASE_TURNS, BASE_TURNS * FAN):
        for start in range(len(segments) - FAN + 1):
            run = segments[start : start + FAN]
            neighbours = run[-1].last - run[0].first + 1 == FAN * turns
            small = sum(one.size for one in run) <= MAX_SEGMENT_BYTES
            if neighbours and small and all(one.turns == turns for one in run):
                return tuple(run)
    return ()
