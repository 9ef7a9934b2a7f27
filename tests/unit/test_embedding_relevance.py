"""Relevance by vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnfold.adapters.embedding_relevance import EmbeddingRelevance

if TYPE_CHECKING:
    from collections.abc import Sequence


def test_relevance_is_the_cosine_and_texts_are_embedded_once() -> None:
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> list[tuple[float, ...]]:
        asked.extend(texts)
        vectors = {"q": (1.0, 0.0), "same": (1.0, 0.0), "other": (0.0, 1.0), "far": (-1.0, 0.0)}
        return [vectors.get(text, ()) for text in texts]

    relevance = EmbeddingRelevance(embed)
    texts = ["same", "other", "far", "", "same"]
    assert relevance.scores("q", texts) == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert relevance.scores("q", texts) == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert sorted(asked) == ["", "far", "other", "q", "same"]
