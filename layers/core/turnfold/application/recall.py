"""Finding the turns of a session that answer a query: by words, by meaning, or by both."""

import logging
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from turnfold.application.ports.recall import Embedder, VectorIndex
from turnfold.application.read_index import ReadIndex
from turnfold.application.read_pieces import in_parallel
from turnfold.domain.errors import (
    ModelFailedError,
    ModelNotConfiguredError,
    StoreError,
    VectorsUnavailableError,
)
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.recall.corpora import SessionCorpus
from turnfold.domain.recall.fusion import fuse
from turnfold.domain.recall.ranking import Hit, Query, Search, Statistics, parse_query
from turnfold.domain.recall.vectors import unit
from turnfold.domain.rendering import elide_middle
from turnfold.domain.sessions import Session
from turnfold.domain.turns import Turn

logger = logging.getLogger("turnfold")

BY_MEANING = "semantic"
"""What `matched_by` says of a turn that was found by its vector."""

DEPTH = 100
"""Places of each ranking that are fused; later ones change nothing for the first hundred."""

EMBEDDED_CHARACTERS = 8000
"""Of a query that is embedded; the middle of a longer one is left out."""


class Mode(StrEnum):
    """How to search."""

    KEYWORD = "keyword"
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn that was found. `score` is above 0, and comparable only within one search.

    `matched_by` names the query's words in it ("near:" before those in a turn beside it), and
    "semantic" if its vector is close to the query's.
    """

    turn: Turn
    score: float
    matched_by: tuple[str, ...]
    session_id: str


@dataclass(frozen=True, slots=True)
class Found:
    """The turns that were found, best first, how, and how many sessions could not be read."""

    mode: Mode
    turns: tuple[FoundTurn, ...]
    unread_sessions: int = 0


@dataclass(frozen=True, slots=True)
class _Ranked:
    session: int
    number: int
    score: float
    matched_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recall:
    """Searches one session or several as one collection."""

    reader: ReadIndex
    vectors: VectorIndex
    embedder: Embedder | None = None

    def mode(self, asked: Mode | None) -> Mode:
        """The mode that a search has. Raises `ModelNotConfiguredError`."""
        if asked is None:
            return Mode.HYBRID if self.embedder else Mode.KEYWORD
        if asked is not Mode.KEYWORD and self.embedder is None:
            raise ModelNotConfiguredError(
                "no embedding model is set up; set OPENAI_API_KEY, or search with mode keyword"
            )
        return asked

    def __call__(
        self,
        memories: Sequence[WorkingMemory],
        text: str,
        limit: int,
        asked: Mode | None = None,
        *,
        tolerant: bool = False,
    ) -> Found:
        """The best turns for a query.

        Where no mode is asked for and the embedding model or the vector index fails, words alone
        decide. If `tolerant`, a session that cannot be read is left out. Raises
        `ModelNotConfiguredError`, `ModelFailedError`, `VectorsUnavailableError`, `StoreError`.
        """
        mode = self.mode(asked)
        vector = None
        if mode is not Mode.KEYWORD and text.strip():
            try:
                vector = self._vector(text)
            except ModelFailedError as error:
                if asked is not None:
                    raise
                logger.warning(
                    "query not embedded", extra={"code": "EMBEDDING_FAILED", "status": error.status}
                )
                mode = Mode.KEYWORD

        def read(memory: WorkingMemory) -> _Readable | None:
            try:
                return self._readable(memory, vector, depth)
            except VectorsUnavailableError:
                raise
            except StoreError:
                if not tolerant:
                    raise
                return None

        depth = max(DEPTH, limit)
        try:
            found = in_parallel(read, memories)
        except VectorsUnavailableError as error:
            if asked is not None:
                raise
            logger.warning(
                "vectors not searched", extra={"code": "VECTORS_UNAVAILABLE", "reason": str(error)}
            )
            mode, vector = Mode.KEYWORD, None
            found = in_parallel(read, memories)
        readable = [one for one in found if one is not None]
        by_words = (
            _by_words(readable, parse_query(text), depth) if mode is not Mode.SEMANTIC else []
        )
        by_meaning = _by_meaning(readable, depth)
        ranked = _fused(by_words, by_meaning) if mode is Mode.HYBRID else by_words or by_meaning
        turns = self._read(readable, ranked[:limit])
        return Found(mode, turns, len(memories) - len(readable))

    def _vector(self, text: str) -> array[float] | None:
        if self.embedder is None:
            return None
        return unit(self.embedder.embed([elide_middle(text, EMBEDDED_CHARACTERS)])[0])

    def _readable(
        self, memory: WorkingMemory, vector: array[float] | None, depth: int
    ) -> "_Readable":
        session = memory.session
        near: Sequence[tuple[int, float]] = ()
        if vector is not None and self.embedder is not None:
            near = self.vectors.closest(session, self.embedder.name, vector, depth)
        return _Readable(session, self.reader.corpus(memory), near)

    def _read(
        self, readable: Sequence["_Readable"], ranked: Sequence[_Ranked]
    ) -> tuple[FoundTurn, ...]:
        turns: dict[tuple[int, int], Turn] = {}
        for at in {one.session for one in ranked}:
            numbers = [one.number for one in ranked if one.session == at]
            source = readable[at]
            for turn in self.reader.turns(source.session, source.corpus, numbers):
                turns[at, turn.number] = turn
        return tuple(
            FoundTurn(
                turn=turns[one.session, one.number],
                score=one.score,
                matched_by=one.matched_by,
                session_id=readable[one.session].session.key.session_id,
            )
            for one in ranked
        )


@dataclass(frozen=True, slots=True)
class _Readable:
    """What is searched of one session."""

    session: Session
    corpus: SessionCorpus
    near: Sequence[tuple[int, float]]
    """(turn, cosine) of the turns whose vectors are closest to the query's."""


def _by_words(readable: Sequence[_Readable], query: Query, depth: int) -> list[_Ranked]:
    """How rare a word is, and how long a turn, is told by all corpora together."""
    searches = [Search(one.corpus, query) for one in readable]
    collection = sum((one.statistics for one in searches), Statistics(0, 0, {}))

    def ranked(at: int, hit: Hit) -> _Ranked:
        return _Ranked(at, hit.document + 1, hit.score, hit.matched_by)

    found = [
        ranked(at, hit) for at, one in enumerate(searches) for hit in one.best(depth, collection)
    ]
    return sorted(found, key=lambda one: (-one.score, one.session, one.number))[:depth]


def _by_meaning(readable: Sequence[_Readable], depth: int) -> list[_Ranked]:
    found = [
        _Ranked(at, number, cosine, (BY_MEANING,))
        for at, one in enumerate(readable)
        for number, cosine in one.near
    ]
    return sorted(found, key=lambda one: (-one.score, one.session, one.number))[:depth]


def _fused(by_words: Sequence[_Ranked], by_meaning: Sequence[_Ranked]) -> list[_Ranked]:
    matched: dict[tuple[int, int], tuple[str, ...]] = {}
    for one in (*by_words, *by_meaning):
        place = (one.session, one.number)
        matched[place] = (*matched.get(place, ()), *one.matched_by)
    rankings = [
        [(one.session, one.number) for one in ranking] for ranking in (by_words, by_meaning)
    ]
    return [_Ranked(place[0], place[1], score, matched[place]) for place, score in fuse(*rankings)]
