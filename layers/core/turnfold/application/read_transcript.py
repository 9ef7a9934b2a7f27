"""Reading the transcript: the records that count, in order."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from turnfold.application.ports import Archive
from turnfold.domain.errors import StoreUnavailableError
from turnfold.domain.sessions import Session, SessionKey
from turnfold.domain.transcript import read_record
from turnfold.domain.turns import Turn

LOOK_AHEAD = 20
"""Records listed beyond the range to find one that has no rival: rivals come in short runs."""

PARALLEL_READS = 8


@dataclass(frozen=True, slots=True)
class Transcript:
    """The archived turns of sessions, rivals resolved.

    A commit that lost its race leaves a record of the same number. Each record names the hash of
    the one before it, and the session that of its newest, so the chain tells which record counts.
    """

    archive: Archive

    def turns(self, session: Session, from_turn: int, to_turn: int) -> tuple[Turn, ...]:
        """The turns of a range, both inclusive, as far as they are committed.

        Raises `StoreUnavailableError` if a record cannot be found.
        """
        last = min(to_turn, session.committed_through)
        first = max(1, from_turn)
        if first > last:
            return ()
        found = self._with_anchor(session, first, last)
        turns = self._read(session.key, ((n, one) for n, ids in found.items() for one in ids))
        expected = session.last_sha256 if max(found) == session.committed_through else None
        chosen: dict[int, Turn] = {}
        for number in sorted(found, reverse=True):
            rivals = [turns[number, turn_id] for turn_id in found[number]]
            if len(rivals) > 1:
                rivals = [one for one in rivals if one.sha256 == expected]
            if len(rivals) != 1:
                raise StoreUnavailableError(f"the record of turn {number} cannot be told")
            chosen[number] = rivals[0]
            expected = rivals[0].prev_sha256
        return tuple(chosen[number] for number in range(first, last + 1))

    def _with_anchor(self, session: Session, first: int, last: int) -> dict[int, list[str]]:
        """The listed records from `first` to one without rivals, at or after `last`."""
        end = last
        while True:
            found: dict[int, list[str]] = {number: [] for number in range(first, end + 1)}
            for number, turn_id in self.archive.list_records(session.key, first, end):
                found[number].append(turn_id)
            missing = [number for number, ids in found.items() if not ids]
            if missing:
                raise StoreUnavailableError(f"the record of turn {missing[0]} is missing")
            anchor = next((n for n in range(last, end + 1) if len(found[n]) == 1), None)
            if anchor is None and end < session.committed_through:
                end = min(end + LOOK_AHEAD, session.committed_through)
                continue
            return {number: ids for number, ids in found.items() if number <= (anchor or end)}

    def _read(
        self, key: SessionKey, wanted: Iterable[tuple[int, str]]
    ) -> dict[tuple[int, str], Turn]:
        names = list(wanted)
        if len(names) == 1:
            records: Sequence[bytes | None] = [self.archive.get_record(key, *names[0])]
        else:
            with ThreadPoolExecutor(min(PARALLEL_READS, len(names))) as pool:
                records = list(pool.map(lambda name: self.archive.get_record(key, *name), names))
        if None in records:
            raise StoreUnavailableError("a record of the transcript is missing")
        return {
            name: read_record(raw)
            for name, raw in zip(names, records, strict=True)
            if raw is not None
        }
