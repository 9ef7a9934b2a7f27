"""Vectors as pieces of the search index, compared one by one: exact, and with any dimensions."""

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from turnfold.application.bounded_cache import BoundedCache
from turnfold.application.live_pieces import LivePieces
from turnfold.application.ports.recall import PieceName, RecallIndex
from turnfold.application.read_pieces import read_pieces
from turnfold.domain.recall.ranges import cover_all, tiling
from turnfold.domain.recall.vectors import VECTORS_VERSION, VectorPiece, closest, decode_vectors
from turnfold.domain.sessions import Session, TurnRange

KIND = "vectors-"


def vectors_shelf(model: str) -> str:
    """The shelf of a model's vectors: those of another model are of no use with them."""
    return f"{KIND}{VECTORS_VERSION}-{hashlib.sha256(model.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class PieceVectors:
    """A `VectorIndex` over the pieces of a `RecallIndex`. `cache` is of one process."""

    pieces: LivePieces
    cache: BoundedCache[VectorPiece]

    def resume(self, session: Session, model: str) -> int:
        """See `VectorIndex`; one listing."""
        shelf = vectors_shelf(model)
        there = self._index.list_pieces(session.key, session.epoch)
        used = _from_the_first(there, shelf, session.committed_through)
        self.pieces.clear(session, there, KIND, shelf, used)
        return used[-1].to_turn if used else 0

    def put(
        self, session: Session, model: str, first_turn: int, vectors: Sequence[array[float]]
    ) -> bool:
        """See `VectorIndex`; a listing, and a piece for each range that changes.

        Also the newest turns get a piece: nothing else finds them by meaning.
        """
        shelf = vectors_shelf(model)
        there = self._index.list_pieces(session.key, session.epoch)
        parts = _from_the_first(there, shelf, first_turn - 1)
        if first_turn > 1 and (not parts or parts[-1].to_turn < first_turn - 1):
            return False
        added = VectorPiece(TurnRange(first_turn, first_turn + len(vectors) - 1), vectors)
        wanted = cover_all(added.covers.to_turn)
        on_shelf = [name.covers for name in there if name.shelf == shelf]
        for covers in wanted:
            if covers in on_shelf:
                continue
            piece = self._joined(session, shelf, covers, parts, added)
            if piece is None or not self.pieces.put(
                session, PieceName(shelf, covers), piece.encode()
            ):
                return False
        self.pieces.clear(session, there, KIND, shelf, wanted)
        return True

    def closest(
        self, session: Session, model: str, query: array[float], limit: int
    ) -> Sequence[tuple[int, float]]:
        """See `VectorIndex`; exact. Reads all vectors once, then what is new."""
        shelf = vectors_shelf(model)
        read = read_pieces(self._index, session, shelf, decode_vectors, self.cache, _size)
        return closest(query, read, limit)

    @property
    def _index(self) -> RecallIndex:
        return self.pieces.index

    def _joined(
        self,
        session: Session,
        shelf: str,
        covers: TurnRange,
        parts: Sequence[TurnRange],
        added: VectorPiece,
    ) -> VectorPiece | None:
        """The vectors of a range; None if a piece is lost, whose turns are then made anew."""
        found: list[array[float]] = []
        for part in parts:
            if part.to_turn < covers.from_turn or covers.to_turn < part.from_turn:
                continue
            name = PieceName(shelf, part)
            raw = self._index.get_piece(session.key, session.epoch, name)
            piece = decode_vectors(raw) if raw else None
            if piece is None:
                self._index.remove_pieces(session.key, session.epoch, [name])
                return None
            found += _cut(piece, covers)
        return VectorPiece(covers, [*found, *_cut(added, covers)])


def _from_the_first(there: Sequence[PieceName], shelf: str, last: int) -> list[TurnRange]:
    """Ranges on a shelf that follow one another from turn 1 on, at most through `last`."""
    found: list[TurnRange] = []
    if last < 1:
        return found
    on_shelf = (name.covers for name in there if name.shelf == shelf)
    for covers in tiling(TurnRange(1, last), on_shelf):
        if covers.from_turn != (found[-1].to_turn + 1 if found else 1):
            break
        found.append(covers)
    return found


def _cut(piece: VectorPiece, covers: TurnRange) -> Sequence[array[float]]:
    """Those of a piece's vectors whose turns are in a range."""
    start = max(covers.from_turn - piece.covers.from_turn, 0)
    return piece.vectors[start : max(covers.to_turn - piece.covers.from_turn + 1, 0)]


def _size(piece: VectorPiece) -> int:
    return sum(100 + 4 * len(vector) for vector in piece.vectors)
