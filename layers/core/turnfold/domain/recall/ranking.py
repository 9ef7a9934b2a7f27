"""BM25 over the turns of a session, in which a turn's neighbours count a little (design, recall).

A question is answered by a turn, and the words of the question are often in the turn before it.
So each turn is scored as if a share of its neighbours' terms were its own. Indexes hold what each
turn says alone; the shares are applied here, so that changing them changes no index.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from turnfold.domain.recall.terms import is_single_character, terms_of

NEIGHBOURS: Mapping[int, float] = {0: 1.0, -1: 0.4, 1: 0.2, -2: 0.2, 2: 0.1}
"""The share of a turn's terms that count for it, by distance: -1 is the turn before. Tuned
together with the two constants below (docs/decisions.md)."""

SATURATION = 1.2
LENGTH_SHARE = 0.75
"""`k1` and `b` of BM25: how fast repetition stops to matter, and how much length counts."""

MAX_QUERY_TERMS = 200
"""Different terms of one query; the rarest terms of a longer one would be found among these."""

CHARACTER_WEIGHT = 0.5


class Corpus(Protocol):
    """The documents of one session, numbered from 0 without gaps."""

    @property
    def lengths(self) -> Sequence[int]:
        """The length of every document."""
        ...

    def postings(self, term: str) -> Iterable[tuple[int, int]]:
        """(document, how often) for each document with the term, ascending."""
        ...


@dataclass(frozen=True, slots=True)
class Query:
    """The terms of a query: the word that gave each, and how much each counts."""

    words: Mapping[str, str]
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of a collection: its documents, their length, how many have each term."""

    documents: int
    length: int
    having: Mapping[str, int]

    def __add__(self, other: "Statistics") -> "Statistics":
        """Both collections as one."""
        return Statistics(
            self.documents + other.documents,
            self.length + other.length,
            Counter(self.having) + Counter(other.having),
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found. `score` is above 0.

    `matched_by` names the query's words that it holds; a word that only a neighbour holds stands
    there with "near:" before it.
    """

    document: int
    score: float
    matched_by: tuple[str, ...]


def parse_query(text: str) -> Query:
    """The terms of a query, without function words unless there is nothing else."""
    terms = list(terms_of(text))
    telling = [term for term in terms if not term.tells_little] or terms
    words: dict[str, str] = {}
    times: Counter[str] = Counter()
    for term in telling:
        if term.text in words or len(words) < MAX_QUERY_TERMS:
            words.setdefault(term.text, term.word)
            times[term.text] += 1
    # What a long query repeats counts more, but not in proportion.
    return Query(words, {term: math.sqrt(count) for term, count in times.items()})


class Search:
    """One query over one corpus. Takes time in proportion to the postings of the query's terms."""

    def __init__(
        self, corpus: Corpus, query: Query, neighbours: Mapping[int, float] = NEIGHBOURS
    ) -> None:
        """Look up the query's terms. `neighbours` always has the distance 0."""
        self._corpus = corpus
        self._query = query
        self._neighbours = neighbours
        found = {term: dict(corpus.postings(term)) for term in query.words}
        self._postings = {term: postings for term, postings in found.items() if postings}

    @property
    def statistics(self) -> Statistics:
        """What this corpus adds to a collection."""
        lengths = self._corpus.lengths
        having = {term: len(postings) for term, postings in self._postings.items()}
        return Statistics(len(lengths), sum(lengths), having)

    def best(self, limit: int, collection: Statistics | None = None) -> tuple[Hit, ...]:
        """The best documents, best first, older before newer where scores are equal.

        In a search over several corpora, `collection` is the sum of their statistics.
        """
        scores = self._scores(collection or self.statistics)
        ranked = sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:limit]
        return tuple(Hit(at, score, self._matched(at)) for at, score in ranked)

    def _scores(self, collection: Statistics) -> Mapping[int, float]:
        mean = max(
            1.0, sum(self._neighbours.values()) * collection.length / max(1, collection.documents)
        )
        scores: dict[int, float] = defaultdict(float)
        norms: dict[int, float] = {}
        for term, postings in self._postings.items():
            rarity = _rarity(collection.having[term], collection.documents)
            weight = rarity * self._query.weights[term] * (SATURATION + 1)
            for at, count in self._spread(term, postings).items():
                norm = norms.get(at)
                if norm is None:
                    share = self._length(at) / mean
                    norm = norms[at] = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * share)
                scores[at] += weight * count / (count + norm)
        return scores

    def _spread(self, term: str, postings: Mapping[int, int]) -> Mapping[int, float]:
        """How often a term counts for each document: its own, and the shares of neighbours."""
        size = len(self._corpus.lengths)
        unit = CHARACTER_WEIGHT if is_single_character(term) else 1.0
        counts: dict[int, float] = defaultdict(float)
        for distance, share in self._neighbours.items():
            part = share * unit
            for holder, count in postings.items():
                at = holder - distance
                if 0 <= at < size:
                    counts[at] += part * count
        return counts

    def _length(self, at: int) -> float:
        """The length of a document with the shares of its neighbours."""
        lengths = self._corpus.lengths
        return sum(
            share * lengths[at + distance]
            for distance, share in self._neighbours.items()
            if 0 <= at + distance < len(lengths)
        )

    def _matched(self, at: int) -> tuple[str, ...]:
        own, near = [], []
        for term, postings in self._postings.items():
            word = self._query.words[term]
            if at in postings:
                own.append(word)
            elif any(at + distance in postings for distance in self._neighbours):
                near.append(f"near:{word}")
        return tuple(dict.fromkeys((*own, *near)))


def _rarity(having: int, documents: int) -> float:
    return math.log(1 + (documents - having + 0.5) / (having + 0.5))
