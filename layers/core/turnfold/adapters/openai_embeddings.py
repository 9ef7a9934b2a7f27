"""Vectors from the embeddings endpoint of an OpenAI-compatible server."""

import base64
import binascii
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from turnfold.adapters.openai_completions import (
    Failure,
    OpenAICompletions,
    error_inside,
    json_object,
)
from turnfold.domain.errors import ModelFailedError

DEFAULT_EMBEDDING_MODEL = "text-embedding-3-small"

SHORT_DIMENSIONS = 512
"""Of OpenAI's third generation, which is trained to be cut: a third of the numbers finds nearly as
much, and 5,000 turns are 10 MB to read rather than 30."""

_CUTTABLE = "text-embedding-3"

BATCH_TEXTS = 64
BATCH_CHARACTERS = 200_000
"""Of one request: the endpoint takes 2,048 texts and 300,000 tokens together."""


class OpenAIEmbeddings(OpenAICompletions):
    """Asks the embeddings endpoint within a total time, as its parent asks for completions."""

    def _send(self, client: Any, body: Mapping[str, Any], timeout: Any) -> bytes:  # noqa: ANN401 - see its parent
        answer = client.embeddings.with_raw_response.create(**body, timeout=timeout)
        content: bytes = answer.content
        return content

    def _read(self, content: bytes) -> Mapping[str, Any] | Failure:
        body = json_object(content, "a list of embeddings")
        if isinstance(body, Failure):
            return body
        if not isinstance(body.get("data"), list):
            return error_inside(body.get("error")) or Failure("the model's answer has no data")
        return body


class OpenAIEmbedder:
    """An `Embedder` by one model."""

    def __init__(self, endpoint: OpenAIEmbeddings, model: str) -> None:
        """Embed by that model."""
        self._endpoint = endpoint
        self._model = model
        self._dimensions = SHORT_DIMENSIONS if model.startswith(_CUTTABLE) else None

    @property
    def name(self) -> str:
        """See `Embedder`."""
        return f"{self._model}/{self._dimensions}" if self._dimensions else self._model

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """See `Embedder`; one request for each batch."""
        vectors = [vector for batch in _batches(texts) for vector in self._embed(batch)]
        if len({len(vector) for vector in vectors}) > 1:
            raise ModelFailedError("the model's vectors have different lengths")
        return vectors

    def _embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        request: dict[str, Any] = {
            "model": self._model,
            "input": list(texts),
            "encoding_format": "base64",
        }
        if self._dimensions:
            request["dimensions"] = self._dimensions
        body = self._endpoint.create(request)
        found: dict[int, Sequence[float]] = {}
        for place, entry in enumerate(body["data"]):
            vector = _vector(entry.get("embedding")) if isinstance(entry, dict) else None
            if vector is None:
                raise ModelFailedError("the model's answer has a vector that is none")
            index = entry.get("index")
            found[index if type(index) is int else place] = vector
        if sorted(found) != list(range(len(texts))):
            raise ModelFailedError("the model's answer has not one vector for each text")
        return [found[place] for place in range(len(texts))]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == BATCH_TEXTS or size + len(text) > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _vector(value: object) -> Sequence[float] | None:
    """A vector as a list of numbers or as base64 of little-endian 32-bit floats."""
    if isinstance(value, list) and value and all(type(one) in (int, float) for one in value):
        return [float(one) for one in value]
    if not isinstance(value, str):
        return None
    try:
        numbers = array("f", base64.b64decode(value, validate=True))
    except (binascii.Error, ValueError):
        return None
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist() or None
