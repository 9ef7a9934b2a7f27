"""Corpora to search: of documents at hand, and of a whole session."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from turnfold.domain.recall.documents import Document
from turnfold.domain.recall.pieces import Piece
from turnfold.domain.turns import Turn


class DocumentCorpus:
    """A `Corpus` of documents, in order."""

    def __init__(self, documents: Iterable[Document]) -> None:
        """Index the documents."""
        self._lengths: list[int] = []
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for at, document in enumerate(documents):
            self._lengths.append(document.length)
            for term, count in document.counts.items():
                self._postings[term].append((at, count))

    @property
    def lengths(self) -> Sequence[int]:
        """See `Corpus`."""
        return self._lengths

    def postings(self, term: str) -> Sequence[tuple[int, int]]:
        """See `Corpus`."""
        return self._postings.get(term, ())


class FreshTurns:
    """A run of turns that no piece holds yet, with their documents; never empty."""

    def __init__(self, turns: Sequence[tuple[Turn, Document]]) -> None:
        """Take turns in order, without gaps."""
        self.first = turns[0][0].number
        self._turns = [turn for turn, _ in turns]
        self._corpus = DocumentCorpus(document for _, document in turns)

    @property
    def lengths(self) -> Sequence[int]:
        """By turn."""
        return self._corpus.lengths

    def postings(self, term: str) -> Iterator[tuple[int, int]]:
        """(turn number, how often), ascending."""
        return ((at + self.first, count) for at, count in self._corpus.postings(term))

    def turn(self, number: int) -> Turn | None:
        """A turn of the run."""
        return self._turns[number - self.first]


class SessionCorpus:
    """All turns of a session as a `Corpus`: document 0 is turn 1."""

    def __init__(self, parts: Iterable[Piece | FreshTurns]) -> None:
        """Take parts that together hold every turn once, in any order."""
        starts = [(_first(part), part) for part in parts]
        self._parts = [part for _, part in sorted(starts, key=lambda one: one[0])]
        self._lengths = [length for part in self._parts for length in part.lengths]

    @property
    def lengths(self) -> Sequence[int]:
        """See `Corpus`."""
        return self._lengths

    def postings(self, term: str) -> Iterator[tuple[int, int]]:
        """See `Corpus`."""
        for part in self._parts:
            for number, count in part.postings(term):
                yield number - 1, count

    def turn(self, number: int) -> Turn | None:
        """A turn word for word, None if it has to be read from the transcript."""
        part = next(one for one in reversed(self._parts) if _first(one) <= number)
        return part.turn(number)


def _first(part: Piece | FreshTurns) -> int:
    return part.first if isinstance(part, FreshTurns) else part.covers.from_turn
