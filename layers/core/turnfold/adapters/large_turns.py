"""Turns whose messages are too large for the table, read from the archive."""

from collections.abc import Sequence

from turnfold.adapters.dynamo_items import ArchivedTurn
from turnfold.application.ports.archive import Archive
from turnfold.domain.errors import StoreUnavailableError
from turnfold.domain.segments import holder, unpack_segment
from turnfold.domain.sessions import SessionKey
from turnfold.domain.transcript import read_record
from turnfold.domain.turns import Turn

ARCHIVE_THREADS = 8
"""Large turns read at once: fewer than the S3 client's connections."""


class LargeTurns:
    """Reads turns by their records. Raises `StoreUnavailableError` where the record is not there.

    Beside it all raise what the archive raises.
    """

    def __init__(self, archive: Archive) -> None:
        """Use that archive."""
        self._archive = archive

    def read_all(self, key: SessionKey, turns: Sequence[ArchivedTurn]) -> list[Turn]:
        """The turns, in their order; some are read at once."""
        if len(turns) <= 1:
            return [self.read(key, turn) for turn in turns]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(ARCHIVE_THREADS, len(turns))) as pool:
            return list(pool.map(lambda turn: self.read(key, turn), turns))

    def read(self, key: SessionKey, turn: ArchivedTurn) -> Turn:
        """One turn; one GetObject, or with its segment a listing and one more."""
        record = self._archive.get_record(key, turn.number, turn.turn_id)
        record = record or self._from_segment(key, turn.number)
        restored = None if record is None else read_record(record)
        if restored is None or restored.sha256 != turn.sha256:
            raise StoreUnavailableError(f"load: the transcript lacks turn {turn.number}")
        return restored

    def _from_segment(self, key: SessionKey, number: int) -> bytes | None:
        """The record of a turn that is not by itself any more: working memory was built anew."""
        segment = holder(self._archive.list_segments(key), number)
        data = None if segment is None else self._archive.get_segment(key, segment)
        if segment is None or data is None:
            return None
        return unpack_segment(data, segment)[number - segment.first]
