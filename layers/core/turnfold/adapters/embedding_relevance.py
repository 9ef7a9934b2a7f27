"""Relevance by meaning, for the policy `relevancy` of the library; the service decides by words."""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from turnfold.adapters.openai_embeddings import Vector

REMEMBERED = 5000
"""Texts whose vector is kept in the process: 1,536 numbers each, about 60 MB in all."""


class EmbeddingRelevance:
    """A `Relevance`: the cosine of two texts' vectors, no less than 0. Vectors are remembered."""

    def __init__(self, embed: Callable[[Sequence[str]], Sequence[Vector]]) -> None:
        """`embed` gives a vector for each text, of length 1 or empty."""
        self._embed = embed
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Vector] = OrderedDict()

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """See `Relevance`."""
        vectors = self._vectors([query, *texts])
        asked = vectors[query]
        return [_cosine(asked, vectors[text]) for text in texts]

    def _vectors(self, texts: Sequence[str]) -> dict[str, Vector]:
        unique = list(dict.fromkeys(texts))
        with self._lock:
            known = {text: self._known[text] for text in unique if text in self._known}
        missing = [text for text in unique if text not in known]
        made = dict(zip(missing, self._embed(missing), strict=True)) if missing else {}
        with self._lock:
            self._known.update(made)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return known | made


def _cosine(one: Vector, other: Vector) -> float:
    if len(one) != len(other):
        return 0.0
    return min(1.0, max(0.0, math.sumprod(one, other)))
