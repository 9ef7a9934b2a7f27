"""Reading what a search needs of a session: pieces of its index, and the turns that are in none."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from turnfold.application.bounded_cache import BoundedCache
from turnfold.application.index_session import WORDS_SHELF
from turnfold.application.ports.recall import PieceName, RecallIndex
from turnfold.application.read_pieces import in_parallel, read_pieces
from turnfold.application.read_transcript import Transcript
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.recall.corpora import FreshTurns, SessionCorpus
from turnfold.domain.recall.documents import Document, turn_document
from turnfold.domain.recall.pieces import Piece, decode_piece
from turnfold.domain.recall.ranges import cover, missing
from turnfold.domain.recall.vectors import VectorPiece
from turnfold.domain.sessions import Session, TurnRange
from turnfold.domain.turns import Turn

WORDS_BYTES = 64 * 1024 * 1024
VECTORS_BYTES = 64 * 1024 * 1024
FRESH_BYTES = 32 * 1024 * 1024
"""Of the caches of one process: some sessions of thousands of turns each. They hold copies of what
was said under the session's epoch, so a session that was erased is never read from them again."""

_PER_TERM = 100


class IndexCaches:
    """What this process has read of indexes; one for all tenants, so that its size is bounded."""

    def __init__(self) -> None:
        """Begin empty."""
        self.words = BoundedCache[Piece](WORDS_BYTES)
        self.vectors = BoundedCache[VectorPiece](VECTORS_BYTES)
        self.fresh = BoundedCache[tuple[Turn, Document]](FRESH_BYTES)


@dataclass(frozen=True, slots=True)
class ReadIndex:
    """Corpora of sessions. After a first search, only what is new is read."""

    transcript: Transcript
    index: RecallIndex
    caches: IndexCaches = field(default_factory=IndexCaches)

    def corpus(self, memory: WorkingMemory) -> SessionCorpus:
        """All turns of the session, whatever is indexed of them. Raises `StoreError`."""
        session = memory.session
        pieces = self._expected_words(session)
        if pieces is None:
            found = read_pieces(
                self.index, session, WORDS_SHELF, decode_piece, self.caches.words, _size_of_piece
            )
            pieces = [piece for piece in found if piece.covers.to_turn <= session.committed_through]
        whole = TurnRange(1, session.committed_through)
        gaps = missing(whole, [piece.covers for piece in pieces])
        return SessionCorpus([*pieces, *(self._fresh_turns(memory, gap) for gap in gaps)])

    def turns(self, session: Session, corpus: SessionCorpus, numbers: Iterable[int]) -> list[Turn]:
        """Turns of the session word for word, in the given order. Raises `StoreError`."""
        wanted = list(numbers)
        found = {number: corpus.turn(number) for number in wanted}
        absent = [number for number, turn in found.items() if turn is None]
        read = in_parallel(lambda number: self.transcript.turns(session, number, number)[0], absent)
        whole = {number: turn for number, turn in found.items() if turn is not None}
        whole |= {turn.number: turn for turn in read}
        return [whole[number] for number in wanted]

    def _expected_words(self, session: Session) -> list[Piece] | None:
        """The pieces of a session that is fully indexed, if all of them are in this process."""
        found = [
            self.caches.words.get((session.key, session.epoch, PieceName(WORDS_SHELF, covers)))
            for covers in cover(session.committed_through)
        ]
        pieces = [piece for piece in found if piece is not None]
        return pieces if len(pieces) == len(found) else None

    def _fresh_turns(self, memory: WorkingMemory, gap: TurnRange) -> FreshTurns:
        """Turns that are in no piece: of working memory, of this process, or of the transcript."""
        session = memory.session
        standing = {turn.number: turn for turn in memory.turns}
        found: dict[int, tuple[Turn, Document]] = {}
        for number in range(gap.from_turn, gap.to_turn + 1):
            known = self.caches.fresh.get((session.key, session.epoch, number))
            if known is not None:
                found[number] = known
            elif number in standing:
                found[number] = self._keep(session, standing[number])
        there = [TurnRange(number, number) for number in found]
        for absent in missing(gap, there):
            for turn in self.transcript.turns(session, absent.from_turn, absent.to_turn):
                found[turn.number] = self._keep(session, turn)
        return FreshTurns([found[number] for number in range(gap.from_turn, gap.to_turn + 1)])

    def _keep(self, session: Session, turn: Turn) -> tuple[Turn, Document]:
        document = turn_document(turn)
        size = 2 * turn.byte_bound + _PER_TERM * len(document.counts)
        self.caches.fresh.put((session.key, session.epoch, turn.number), (turn, document), size)
        return turn, document


def _size_of_piece(piece: Piece) -> int:
    return piece.size
