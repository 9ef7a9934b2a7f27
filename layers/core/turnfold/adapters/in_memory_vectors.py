"""Vectors in this process, for tests, beside an `InMemoryStore`: as the table keeps them."""

from array import array
from collections.abc import Sequence

from turnfold.adapters.in_memory_store import InMemoryStore, StoredSession
from turnfold.domain.recall.vectors import VectorPiece, closest
from turnfold.domain.sessions import Session, SessionStatus, TurnRange


class InMemoryVectors:
    """A `VectorIndex` under the lock of the store, with one model's vectors for each session."""

    def __init__(self, store: InMemoryStore) -> None:
        """Keep vectors beside what that store holds."""
        self._store = store

    def resume(self, session: Session, model: str) -> int:
        """See `VectorIndex`."""
        with self._store.lock:
            stored = self._stored(session)
            return 0 if stored is None else stored.vector_marks.get(model, 0)

    def put(
        self, session: Session, model: str, first_turn: int, vectors: Sequence[array[float]]
    ) -> bool:
        """See `VectorIndex`."""
        with self._store.lock:
            stored = self._stored(session)
            if stored is None or stored.session.status is not SessionStatus.LIVE:
                return False
            if stored.vector_marks.get(model, 0) != first_turn - 1:
                return False
            if first_turn == 1:
                stored.vectors.clear()
                stored.vector_marks.clear()
            stored.vectors.update(
                {turn: vector for turn, vector in enumerate(vectors, first_turn) if any(vector)}
            )
            stored.vector_marks[model] = first_turn + len(vectors) - 1
            return True

    def closest(
        self, session: Session, model: str, query: array[float], limit: int
    ) -> Sequence[tuple[int, float]]:
        """See `VectorIndex`."""
        with self._store.lock:
            stored = self._stored(session)
            if stored is None or model not in stored.vector_marks:
                return []
            pieces = [
                VectorPiece(TurnRange(turn, turn), [vector])
                for turn, vector in stored.vectors.items()
                if turn <= session.committed_through
            ]
        return closest(query, pieces, limit)

    def _stored(self, session: Session) -> StoredSession | None:
        stored = self._store.sessions.get(session.key)
        return stored if stored and stored.session.epoch == session.epoch else None
