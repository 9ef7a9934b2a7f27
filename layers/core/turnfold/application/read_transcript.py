"""Reading the transcript: the records that count, in order, wherever they stand.

A turn has a record by itself, and later one in a segment. The archivist writes a segment before it
removes the single records, and a larger segment before its parts; so whoever lists the single
records first and the segments after that sees every turn at least once. Where a listed object is
gone when it is read, it has been moved meanwhile, and the whole read begins anew.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from turnfold.application.ports.archive import Archive
from turnfold.domain.errors import DamagedRecordError, StoreUnavailableError
from turnfold.domain.segments import KEPT_RECORDS, Segment, covering, unpack_segment
from turnfold.domain.sessions import Session, SessionKey
from turnfold.domain.transcript import Record, is_intact
from turnfold.domain.turns import Turn

LOOK_AHEAD = 20
"""Records listed beyond the range to find one that has no rival: rivals come in short runs."""

PARALLEL_READS = 8

ATTEMPTS = 4
"""Reads begun anew because records were moved meanwhile; each turn is moved three times in all."""

FIRST_CHUNK_TURNS = 16
CHUNK_TURNS = 128
CHUNK_BYTES = 8 * 1024 * 1024
"""Turns of a long read that are in memory at once: few at first, then more as long as they are
small. A turn may have a megabyte, and a function has one gigabyte."""

CACHED_SEGMENTS = 3
"""Segments kept for the next page of the same reader."""


class _MovedError(Exception):
    """A listed object was gone when it was read."""


@dataclass(frozen=True, slots=True)
class ArchivedRecord:
    """A record that counts, and the turn that it tells of."""

    turn: Turn
    raw: bytes


@dataclass(frozen=True, slots=True)
class Transcript:
    """The archived turns of sessions, rivals resolved.

    A commit that lost its race leaves a record of the same number. Each record names the hash of
    the one before it, and the session that of its newest, so the chain tells which record counts.
    """

    archive: Archive
    _cache: dict[tuple[SessionKey, str, Segment], list[bytes]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def turns(self, session: Session, from_turn: int, to_turn: int) -> tuple[Turn, ...]:
        """The turns of a range, both inclusive, as far as they are committed.

        Raises `DamagedRecordError` or `StoreUnavailableError` if a record cannot be found or read.
        """
        return tuple(one.turn for one in self.records(session, from_turn, to_turn))

    def stream(
        self, session: Session, from_turn: int = 1, to_turn: int | None = None
    ) -> Iterator[ArchivedRecord]:
        """The records of a range of any length, of which few are in memory at once.

        Raises the same as `turns`, between two records.
        """
        last = session.committed_through if to_turn is None else to_turn
        last = min(last, session.committed_through)
        first, turns = max(1, from_turn), FIRST_CHUNK_TURNS
        while first <= last:
            records = self.records(session, first, min(first + turns - 1, last))
            yield from records
            first += turns
            turns = _next_chunk(turns, sum(len(one.raw) for one in records))

    def records(self, session: Session, from_turn: int, to_turn: int) -> tuple[ArchivedRecord, ...]:
        """The records that count of a range. Raises the same as `turns`."""
        last = min(to_turn, session.committed_through)
        first = max(1, from_turn)
        if first > last:
            return ()
        for attempt in range(ATTEMPTS):
            try:
                return self._chosen(session, first, last, thorough=attempt > 0)
            except _MovedError:
                continue
            except DamagedRecordError:
                # The session as it was read may not know yet that a turn was moved.
                if attempt:
                    raise
        raise StoreUnavailableError("records of the transcript were moved again and again")

    def candidates(self, session: Session, from_turn: int, to_turn: int) -> dict[int, list[Record]]:
        """All records there are of each number of a range, read anew and not judged.

        What is missing or stands in a damaged segment is left out.
        """
        for _ in range(ATTEMPTS):
            found, segments = self._listed(session, from_turn, to_turn, thorough=True)
            names = [(number, one) for number, ids in found.items() for one in ids]
            try:
                records = self._read(session.key, names)
                in_segments = self._read_segments(session, segments, cached=False)
            except _MovedError:
                continue
            gathered: dict[int, list[Record]] = {n: [] for n in range(from_turn, to_turn + 1)}
            for (number, _), record in records.items():
                gathered[number].append(record)
            for number, record in in_segments.items():
                if number in gathered:
                    gathered[number] = [record]
            return gathered
        raise StoreUnavailableError("records of the transcript were moved again and again")

    def _chosen(
        self, session: Session, first: int, last: int, *, thorough: bool
    ) -> tuple[ArchivedRecord, ...]:
        """The records of the chain, found from an anchor downwards."""
        found, segments = self._with_anchor(session, first, last, thorough=thorough)
        whole = self._read_segments(session, segments)
        names = [(n, one) for n, ids in found.items() if n not in whole for one in ids]
        single = self._read(session.key, names)
        end = max(found)
        expected = session.last_sha256 if end == session.committed_through else None
        chosen: list[ArchivedRecord] = []
        for number in range(end, first - 1, -1):
            record = whole.get(number)
            records = [record] if record else [single[number, one] for one in found[number]]
            rivals = [ArchivedRecord(one.turn, one.raw) for one in records]
            if expected is not None:
                rivals = [one for one in rivals if one.turn.sha256 == expected]
            if len(rivals) > 1:
                # One of them says of itself the hash of another.
                rivals = [one for one in rivals if is_intact(one.raw)]
            if len(rivals) != 1:
                raise DamagedRecordError(f"the record of turn {number} cannot be told")
            expected = rivals[0].turn.prev_sha256
            if number <= last:
                chosen.append(rivals[0])
        return tuple(reversed(chosen))

    def _with_anchor(
        self, session: Session, first: int, last: int, *, thorough: bool
    ) -> tuple[dict[int, list[str]], tuple[Segment, ...]]:
        """What is listed from `first` to a number without rivals, at or after `last`."""
        end = last
        while True:
            found, segments = self._listed(session, first, end, thorough=thorough)
            held = {n for one in segments for n in range(one.first, one.last + 1)}
            missing = [n for n, ids in found.items() if not ids and n not in held]
            if missing:
                raise DamagedRecordError(f"the record of turn {missing[0]} is missing")
            alone = (n for n in range(last, end + 1) if n in held or len(found[n]) == 1)
            anchor = next(alone, None)
            if anchor is None and end < session.committed_through:
                end = min(end + LOOK_AHEAD, session.committed_through)
                continue
            reached = anchor or end
            return (
                {number: ids for number, ids in found.items() if number <= reached},
                tuple(one for one in segments if one.first <= reached),
            )

    def _listed(
        self, session: Session, first: int, last: int, *, thorough: bool
    ) -> tuple[dict[int, list[str]], tuple[Segment, ...]]:
        """Turn ids by number, and the segments that hold turns of the range.

        Numbers that the session says to be in segments are not looked for among the single records,
        and the newest numbers not among the segments, unless the read is thorough.
        """
        found: dict[int, list[str]] = {number: [] for number in range(first, last + 1)}
        start = max(first, session.archived_through + 1)
        if start <= last:
            for number, turn_id in self.archive.list_records(session.key, start, last):
                found[number].append(turn_id)
        newest = first > session.committed_through - KEPT_RECORDS
        if newest and not thorough and all(found.values()):
            return found, ()
        listed = covering(self.archive.list_segments(session.key))
        return found, tuple(one for one in listed if one.first <= last and one.last >= first)

    def _read(
        self, key: SessionKey, names: Sequence[tuple[int, str]]
    ) -> dict[tuple[int, str], Record]:
        if len(names) <= 1:
            raws = [self.archive.get_record(key, *name) for name in names]
        else:
            with ThreadPoolExecutor(min(PARALLEL_READS, len(names))) as pool:
                raws = list(pool.map(lambda name: self.archive.get_record(key, *name), names))
        if None in raws:
            raise _MovedError
        return {
            name: Record(name[0], raw)
            for name, raw in zip(names, raws, strict=True)
            if raw is not None
        }

    def _read_segments(
        self, session: Session, segments: Sequence[Segment], *, cached: bool = True
    ) -> dict[int, Record]:
        """The records of segments by number. A damaged segment gives none."""
        records: dict[int, Record] = {}
        for segment in segments:
            lines = self._lines(session, segment, cached=cached)
            records |= {
                number: Record(number, raw) for number, raw in enumerate(lines, segment.first)
            }
        return records

    def _lines(self, session: Session, segment: Segment, *, cached: bool) -> list[bytes]:
        name = (session.key, session.epoch, segment)
        known = self._cache.get(name) if cached else None
        if known is not None:
            return known
        data = self.archive.get_segment(session.key, segment)
        if data is None:
            raise _MovedError
        try:
            lines = unpack_segment(data, segment)
        except ValueError:
            return []
        if cached:
            while len(self._cache) >= CACHED_SEGMENTS:
                self._cache.pop(next(iter(self._cache)), None)
            self._cache[name] = lines
        return lines


def _next_chunk(turns: int, size: int) -> int:
    """How many turns to read next, after so many that had so many bytes."""
    if 2 * size <= CHUNK_BYTES:
        return min(2 * turns, CHUNK_TURNS)
    return turns if size <= CHUNK_BYTES else max(1, turns * CHUNK_BYTES // size)
