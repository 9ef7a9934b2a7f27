"""The index that searches read, and the model that makes vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from turnfold.domain.sessions import SessionKey, TurnRange


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
