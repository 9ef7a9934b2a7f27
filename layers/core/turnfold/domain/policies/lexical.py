"""Relevance by words, without a network: how much of the question's words a text carries.

Words are compared by their stems, texts of scripts without blanks by pairs of characters. A score
depends on question and text alone and not on what else there is, except that all are measured
against the best: so choosing again among the chosen changes nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+|[^\W_]+", re.UNICODE
)
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")

LEAST_BEST = 0.25
"""A text with a quarter of the question's words may be the best match there is and count in full;
with less it has hardly anything to do with it."""

_LONGEST_STEM = 6
_FULL_WEIGHT = 6
_SHORT = 3


@dataclass(frozen=True, slots=True)
class LexicalRelevance:
    """A `Relevance` that reads only the words themselves. Deterministic."""

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """See `Relevance`."""
        wanted = _weights(query)
        total = sum(wanted.values())
        if not total:
            return [0.0] * len(texts)
        covered = [_covered(wanted, text) / total for text in texts]
        best = max(covered, default=0.0)
        return [min(1.0, one / max(best, LEAST_BEST)) for one in covered]


BY_WORDS = LexicalRelevance()
"""The one that is used where none is given."""


def terms(text: str) -> Iterator[str]:
    """The terms of a text: stems of words, pairs of characters where there are no blanks."""
    for match in _WORD.finditer(text.casefold()):
        word = match.group()
        if not _UNSPACED.match(word):
            yield word if word.isdigit() else word[:_LONGEST_STEM].rstrip("s") or word
        elif len(word) == 1:
            yield word
        else:
            yield from (word[at : at + 2] for at in range(len(word) - 1))


def _weights(query: str) -> Mapping[str, float]:
    """The question's terms; short words are mostly grammar and count little."""
    return {term: _weight(term) for term in terms(query)}


def _weight(term: str) -> float:
    if _UNSPACED.match(term) or any(one.isdigit() for one in term):
        return 1.0
    return 0.1 if len(term) <= _SHORT else min(len(term), _FULL_WEIGHT) / _FULL_WEIGHT


def _covered(wanted: Mapping[str, float], text: str) -> float:
    return sum(wanted[term] for term in set(terms(text)) & wanted.keys())
