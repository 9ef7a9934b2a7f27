"""Vectors for searches, by the embeddings endpoint."""

from collections.abc import Callable, Sequence

from turnfold.adapters.openai_embeddings import DEFAULT_MODEL, OpenAIEmbeddings

_CUTTABLE = "text-embedding-3"
"""OpenAI's third generation, which is trained to be cut."""


class OpenAIEmbedder:
    """An `Embedder` by one model; without a name by a small one of OpenAI."""

    def __init__(
        self,
        api_key: Callable[[], str],
        *,
        model: str | None = None,
        base_url: str | None = None,
        seconds: float,
        dimensions: int,
    ) -> None:
        """See `OpenAIEmbeddings`. Only a model that can be asked for `dimensions` is."""
        self._model = model or DEFAULT_MODEL
        self._dimensions = dimensions if self._model.startswith(_CUTTABLE) else None
        self._embeddings = OpenAIEmbeddings(
            api_key,
            model=self._model,
            base_url=base_url,
            seconds=seconds,
            dimensions=self._dimensions,
        )

    @property
    def name(self) -> str:
        """See `Embedder`."""
        return f"{self._model}/{self._dimensions}" if self._dimensions else self._model

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """See `Embedder`; one request for some hundred texts."""
        return self._embeddings.embed(texts)
