"""Indexing one session for recall: make pieces that are missing, remove those of no more use.

Everything follows from the number of committed turns, so a run that is repeated, or cut off between
any two calls, or at work beside another one, leaves the same pieces behind.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.recall import Embedder, PieceName, RecallIndex
from turnfold.application.read_transcript import Transcript
from turnfold.domain.errors import ModelFailedError
from turnfold.domain.recall.documents import spoken_texts
from turnfold.domain.recall.pieces import PIECE_VERSION, PieceWriter, decode_piece
from turnfold.domain.recall.ranges import cover, missing, tiling
from turnfold.domain.recall.vectors import (
    VECTORS_VERSION,
    VectorPiece,
    decode_vectors,
    unit,
)
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


def vectors_shelf(model: str) -> str:
    """The shelf of a model's vectors: those of another model are of no use with them."""
    return f"vectors-{VECTORS_VERSION}-{hashlib.sha256(model.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class IndexSession:
    """Brings the index of a session up to date; vectors only if there is an embedder."""

    store: MemoryStore
    transcript: Transcript
    index: RecallIndex
    embedder: Embedder | None = None
    embeds_from: int = 1

    def __call__(self, key: SessionKey, seconds_left: Callable[[], float] = lambda: 1e9) -> bool:
        """Make what is missing; whether the index is complete now.

        A session that is not live gets nothing. If the model fails, the vectors wait for the next
        run. Raises `StoreError`.
        """
        session, _ = self.store.read_session(key, None)
        if session is None or session.status is not SessionStatus.LIVE:
            return True
        there = self.index.list_pieces(key, session.epoch)
        complete = self._words(session, there, seconds_left)
        if self.embedder is None or session.committed_through < self.embeds_from:
            return complete
        try:
            return self._vectors(session, self.embedder, there, seconds_left) and complete
        except ModelFailedError as error:
            logger.warning(
                "turns not embedded", extra={"code": "EMBEDDING_FAILED", "status": error.status}
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
            if not self._put(session, PieceName(WORDS_SHELF, covers), body):
                return True
        self._clear(session, there, "words-", WORDS_SHELF, wanted)
        return True

    def _word_piece(self, session: Session, covers: TurnRange, there: Sequence[TurnRange]) -> bytes:
        """A piece from smaller ones, and from the transcript where there are none."""
        writer = PieceWriter(covers)
        for part in self._parts(covers, there):
            raw = self.index.get_piece(session.key, session.epoch, PieceName(WORDS_SHELF, part))
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

    def _vectors(
        self,
        session: Session,
        embedder: Embedder,
        there: Sequence[PieceName],
        seconds_left: Callable[[], float],
    ) -> bool:
        """Also the newest turns get a piece: nothing else finds them by meaning."""
        shelf = vectors_shelf(embedder.name)
        on_shelf = [name.covers for name in there if name.shelf == shelf]
        wanted = cover(session.committed_through)
        start = wanted[-1].to_turn + 1 if wanted else 1
        if start <= session.committed_through:
            wanted = (*wanted, TurnRange(start, session.committed_through))
        for covers in wanted:
            if covers in on_shelf:
                continue
            if seconds_left() < PIECE_SECONDS:
                return False
            piece = self._vector_piece(session, embedder, shelf, covers, on_shelf)
            if not self._put(session, PieceName(shelf, covers), piece.encode()):
                return True
        self._clear(session, there, "vectors-", shelf, wanted)
        return True

    def _vector_piece(
        self,
        session: Session,
        embedder: Embedder,
        shelf: str,
        covers: TurnRange,
        there: Sequence[TurnRange],
    ) -> VectorPiece:
        found: list[VectorPiece] = []
        for part in self._parts(covers, there):
            raw = self.index.get_piece(session.key, session.epoch, PieceName(shelf, part))
            piece = decode_vectors(raw) if raw else None
            if piece is not None:
                found.append(piece)
        for gap in missing(covers, [piece.covers for piece in found]):
            for first in range(gap.from_turn, gap.to_turn + 1, CHUNK_TURNS):
                last = min(first + CHUNK_TURNS - 1, gap.to_turn)
                turns = self.transcript.turns(session, first, last)
                found.append(_embedded(embedder, turns))
        found.sort(key=lambda piece: piece.covers.from_turn)
        return VectorPiece(covers, [vector for piece in found for vector in piece.vectors])

    def _put(self, session: Session, name: PieceName, body: bytes) -> bool:
        """Store a piece of a session that is still there; whether it is.

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

    def _is_live(self, session: Session) -> bool:
        now, _ = self.store.read_session(session.key, None)
        return now is not None and now.epoch == session.epoch and now.status is SessionStatus.LIVE

    def _clear(
        self,
        session: Session,
        there: Sequence[PieceName],
        kind: str,
        shelf: str,
        wanted: Sequence[TurnRange],
    ) -> None:
        """Remove pieces that larger ones replace, and those of other versions and models."""
        unused = [
            name
            for name in there
            if name.shelf.startswith(kind)
            and (name.shelf != shelf or (name.covers not in wanted and _is_within(name, wanted)))
        ]
        if unused:
            self.index.remove_pieces(session.key, session.epoch, unused)


def _is_within(name: PieceName, wanted: Iterable[TurnRange]) -> bool:
    covers = name.covers
    return any(
        one.from_turn <= covers.from_turn and covers.to_turn <= one.to_turn for one in wanted
    )


def _embedded(embedder: Embedder, turns: Sequence[Turn]) -> VectorPiece:
    texts = [elide_middle("\n".join(spoken_texts(turn)), EMBED_CHARACTERS) for turn in turns]
    spoken = [text for text in texts if text.strip()]
    vectors = iter(embedder.embed(spoken) if spoken else ())
    found = [unit(next(vectors) if text.strip() else ()) for text in texts]
    return VectorPiece(TurnRange(turns[0].number, turns[-1].number), found)
