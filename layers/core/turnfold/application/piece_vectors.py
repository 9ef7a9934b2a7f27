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
        through = 0
        for covers in tiling(
            TurnRange(1, session.committed_through),
            [name.covers for name in there if name.shelf == shelf],
        ):
            if covers.from_turn != through + 1:
                break
            through = covers.to_turn
        self.pieces.clear(session, there, KIND, shelf, cover_all(through))
        return through

    def put(
        self, session: Session, model: str, first_turn: int, vectors: Sequence[array[float]]
    ) -> bool:
        """See `VectorIndex`; a piece for each range that changes, of the pieces that it replaces.

        Also the newest turns get a piece: nothing else finds them by meaning.
        """
        shelf = vectors_shelf(model)
        added = VectorPiece(TurnRange(first_turn, first_turn + len(vectors) - 1), vectors)
        before = cover_all(first_turn - 1)
        wanted = cover_all(added.covers.to_turn)
        for covers in wanted:
            if covers in before:
                continue
            piece = self._joined(session, shelf, covers, before, added)
            if piece is None or not self.pieces.put(
                session, PieceName(shelf, covers), piece.encode()
            ):
                return False
        there = [PieceName(shelf, covers) for covers in before]
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
        before: Sequence[TurnRange],
        added: VectorPiece,
    ) -> VectorPiece | None:
        """Smaller pieces and what is added; None if a piece is lost, whose turns are made anew."""
        found: list[array[float]] = []
        for part in tiling(covers, before):
            name = PieceName(shelf, part)
            raw = self._index.get_piece(session.key, session.epoch, name)
            piece = decode_vectors(raw) if raw else None
            if piece is None:
                self._index.remove_pieces(session.key, session.epoch, [name])
                return None
            found += piece.vectors
        start = covers.from_turn + len(found) - added.covers.from_turn
        found += added.vectors[start : covers.to_turn - added.covers.from_turn + 1]
        return VectorPiece(covers, found)


def _size(piece: VectorPiece) -> int:
    return sum(100 + 4 * len(vector) for vector in piece.vectors)
