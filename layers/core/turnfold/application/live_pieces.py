"""Writing pieces of a search index for sessions that live, and for no others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.recall import PieceName, RecallIndex
from turnfold.domain.sessions import Session, SessionStatus, TurnRange


@dataclass(frozen=True, slots=True)
class LivePieces:
    """Pieces in objects, whose writes no condition of the table can guard."""

    store: MemoryStore
    index: RecallIndex

    def put(self, session: Session, name: PieceName, body: bytes) -> bool:
        """Store a piece of a session that is still there; whether it is. Raises `StoreError`.

        Looked at before and after: an erasure that begins in between finds the piece, and one that
        was done in between has left nothing but it, which is then removed here.
        """
        if not self._is_live(session):
            return False
        self.index.put_piece(session.key, session.epoch, name, body)
        if self._is_live(session):
            return True
        self.index.remove_pieces(session.key, session.epoch, [name])
        return False

    def clear(
        self,
        session: Session,
        there: Iterable[PieceName],
        kind: str,
        shelf: str,
        kept: Sequence[TurnRange],
    ) -> None:
        """Remove pieces of other shelves of the kind, and those whose turns are in the ones kept.

        The ranges to be kept follow one another from turn 1 on.
        """
        through = kept[-1].to_turn if kept else 0
        unused = [
            name
            for name in there
            if name.shelf.startswith(kind)
            and (
                name.shelf != shelf or (name.covers.to_turn <= through and name.covers not in kept)
            )
        ]
        if unused:
            self.index.remove_pieces(session.key, session.epoch, unused)

    def _is_live(self, session: Session) -> bool:
        now, _ = self.store.read_session(session.key, None)
        return now is not None and now.epoch == session.epoch and now.status is SessionStatus.LIVE
