"""Indexing one session for recall: make pieces that are missing, remove those of no more use.

Everything follows from the number of committed turns, so a run that is repeated, or cut off between
any two calls, or at work beside another one, leaves the same pieces behind.
"""

import logging
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from turnfold.application.live_pieces import LivePieces
from turnfold.application.ports.recall import Embedder, PieceName, VectorIndex
from turnfold.application.read_transcript import Transcript
from turnfold.domain.errors import ModelFailedError, VectorsUnavailableError
from turnfold.domain.recall.documents import spoken_texts
from turnfold.domain.recall.pieces import PIECE_VERSION, PieceWriter, decode_piece
from turnfold.domain.recall.ranges import SMALLEST, cover, tiling
from turnfold.domain.recall.vectors import unit
from turnfold.domain.rendering import elide_middle
from turnfold.domain.sessions import Session, SessionKey, SessionStatus, TurnRange
from turnfold.domain.turns import Turn

logger = logging.getLogger("turnfold")

WORDS_SHELF = f"words-{PIECE_VERSION}"

CHUNK_TURNS = 64
"""Turns in memory at once."""

EMBED_CHARACTERS = 6000
"""Of one turn that are embedded, from its beginning and its end: embedding models read 8,192
tokens, and a Chinese character may be more than one."""

PIECE_SECONDS = 30.0
"""The longest that one piece may take; with less time left, the next run makes it."""


@dataclass(frozen=True, slots=True)
class IndexSession:
    """Brings the index of a session up to date; vectors only if there is an embedder."""

    pieces: LivePieces
    transcript: Transcript
    vectors: VectorIndex
    embedder: Embedder | None = None
    embeds_from: int = 1

    def __call__(self, key: SessionKey, seconds_left: Callable[[], float] = lambda: 1e9) -> bool:
        """Make what is missing; whether the index is complete now.

        A session that is not live gets nothing. If the model fails, or the vector index cannot take
        them, the vectors wait for the next run. Raises `StoreError`.
        """
        session, _ = self.pieces.store.read_session(key, None)
        if session is None or session.status is not SessionStatus.LIVE:
            return True
        there = self.pieces.index.list_pieces(key, session.epoch)
        complete = self._words(session, there, seconds_left)
        if self.embedder is None or session.committed_through < self.embeds_from:
            return complete
        try:
            return self._embed(session, self.embedder, seconds_left) and complete
        except ModelFailedError as error:
            logger.warning(
                "turns not embedded", extra={"code": "EMBEDDING_FAILED", "status": error.status}
            )
        except VectorsUnavailableError as error:
            logger.warning(
                "vectors not stored", extra={"code": "VECTORS_UNAVAILABLE", "reason": str(error)}
            )
        return False

    def _words(
        self, session: Session, there: Sequence[PieceName], seconds_left: Callable[[], float]
    ) -> bool:
        on_shelf = [name.covers for name in there if name.shelf == WORDS_SHELF]
        wanted = cover(session.committed_through)
        for covers in wanted:
            if covers in on_shelf:
                continue
            if seconds_left() < PIECE_SECONDS:
                return False
            body = self._word_piece(session, covers, on_shelf)
            if not self.pieces.put(session, PieceName(WORDS_SHELF, covers), body):
                return True
        self.pieces.clear(session, there, "words-", WORDS_SHELF, wanted)
        return True

    def _word_piece(self, session: Session, covers: TurnRange, there: Sequence[TurnRange]) -> bytes:
        """A piece from smaller ones, and from the transcript where there are none."""
        writer = PieceWriter(covers)
        for part in self._parts(covers, there):
            raw = self.pieces.index.get_piece(
                session.key, session.epoch, PieceName(WORDS_SHELF, part)
            )
            piece = decode_piece(raw) if raw else None
            if piece is not None and piece.covers.from_turn >= writer.next_turn:
                self._add_turns(writer, session, piece.covers.from_turn - 1)
                writer.add_piece(piece)
        self._add_turns(writer, session, covers.to_turn)
        return writer.encode()

    def _add_turns(self, writer: PieceWriter, session: Session, last: int) -> None:
        while writer.next_turn <= last:
            end = min(writer.next_turn + CHUNK_TURNS - 1, last)
            writer.add_turns(self.transcript.turns(session, writer.next_turn, end))

    @staticmethod
    def _parts(covers: TurnRange, there: Iterable[TurnRange]) -> tuple[TurnRange, ...]:
        return tiling(covers, (one for one in there if one != covers))

    def _embed(
        self, session: Session, embedder: Embedder, seconds_left: Callable[[], float]
    ) -> bool:
        done = self.vectors.resume(session, embedder.name)
        while done < session.committed_through:
            if seconds_left() < PIECE_SECONDS:
                return False
            # As many as fill a piece, so that none of them is written twice.
            end = min(done + SMALLEST - done % SMALLEST, session.committed_through)
            made = self._embedded(session, embedder, done + 1, end)
            if not self.vectors.put(session, embedder.name, done + 1, made):
                return True
            done = end
        return True

    def _embedded(
        self, session: Session, embedder: Embedder, first: int, last: int
    ) -> list[array[float]]:
        return [
            vector
            for start in range(first, last + 1, CHUNK_TURNS)
            for vector in _vectors(
                embedder,
                self.transcript.turns(session, start, min(start + CHUNK_TURNS - 1, last)),
            )
        ]


def _vectors(embedder: Embedder, turns: Sequence[Turn]) -> list[array[float]]:
    texts = [elide_middle("\n".join(spoken_texts(turn)), EMBED_CHARACTERS) for turn in turns]
    spoken = [text for text in texts if text.strip()]
    vectors = iter(embedder.embed(spoken) if spoken else ())
    return [unit(next(vectors) if text.strip() else ()) for text in texts]
