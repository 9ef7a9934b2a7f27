"""The indexes that searches read, and the model that makes vectors."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from turnfold.domain.sessions import Session, SessionKey, TurnRange


@dataclass(frozen=True, slots=True)
class PieceName:
    """Names a piece of a session's search index.

    `shelf` says what the pieces on it hold and in which version (letters, digits, dots and dashes);
    the range is that of its turns.
    """

    shelf: str
    covers: TurnRange


class RecallIndex(Protocol):
    """Pieces of search indexes, kept by session and epoch. A piece is never changed, only removed.

    Raises `ThrottledError`, `StoreUnavailableError` and `StoreError`.
    """

    def list_pieces(self, key: SessionKey, epoch: str) -> Sequence[PieceName]:
        """The pieces that there are, in the order of shelf and range."""
        ...

    def get_piece(self, key: SessionKey, epoch: str, name: PieceName) -> bytes | None:
        """One piece; None if it is not there (any more)."""
        ...

    def put_piece(self, key: SessionKey, epoch: str, name: PieceName, body: bytes) -> None:
        """Store a piece; the same name always gets the same content, so it may be put again."""
        ...

    def remove_pieces(self, key: SessionKey, epoch: str, names: Sequence[PieceName]) -> None:
        """Remove pieces, whether or not they are there."""
        ...


class VectorIndex(Protocol):
    """Vectors of turns, by session, its epoch and the model; of turns 1 through n, without gaps.

    Raises `VectorsUnavailableError` where the index cannot take or search them, and `StoreError`.
    """

    def resume(self, session: Session, model: str) -> int:
        """The last turn that was put, 0 if none was; writing goes on after it.

        Also removes what other models, and runs that were cut off, have left behind.
        """
        ...

    def put(
        self, session: Session, model: str, first_turn: int, vectors: Sequence[array[float]]
    ) -> bool:
        """Store the vectors of the turns that follow the last one that was put.

        They have length 1; one without numbers, or with only zeros, is that of a turn without text,
        which is never found. False if they were not stored, or not all of them: the session is not
        live any more or has begun anew, or another indexer was faster. May be called again.
        """
        ...

    def closest(
        self, session: Session, model: str, query: array[float], limit: int
    ) -> Sequence[tuple[int, float]]:
        """(turn, cosine) of the turns whose cosine with `query` is above 0, the closest first.

        At most `limit`, which is 1 to 100, and only committed turns of this session and epoch.
        """
        ...


class Embedder(Protocol):
    """The model that turns texts into vectors."""

    @property
    def name(self) -> str:
        """What tells its vectors from those of another: model and dimensions."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, none of which is blank, in their order.

        All have the same length. Raises `ModelFailedError`.
        """
        ...
