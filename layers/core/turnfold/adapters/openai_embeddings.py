"""Embeddings of an OpenAI-compatible endpoint.

Nothing that was said gets into an error.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from turnfold.adapters.deadlines import DeadlinePassedError, run_within
from turnfold.adapters.openai_client import LazyClient
from turnfold.domain.clean_json import parse_json
from turnfold.domain.errors import BadJsonError, ModelFailedError

DEFAULT_MODEL = "text-embedding-3-small"
SECONDS = 10.0
"""For all calls of one question; a context is waited for."""
CONNECT_SECONDS = 3.0

BATCH_TEXTS = 256
BATCH_CHARACTERS = 400_000
"""Of one call; the endpoint takes 2,048 texts and 300,000 tokens."""
TEXT_CHARACTERS = 8000
"""Of one text. The endpoint refuses more than 8,192 tokens, and a character may be one; the
beginning says well enough what a message is about."""

type Vector = tuple[float, ...]


class OpenAIEmbeddings:
    """Turns texts into vectors of length 1. Safe for use from several threads."""

    def __init__(
        self,
        api_key: Callable[[], str],
        *,
        model: str = DEFAULT_MODEL,
        base_url: str | None = None,
        seconds: float = SECONDS,
        dimensions: int | None = None,
    ) -> None:
        """`api_key` is called for every request. Without `base_url` it is OpenAI's endpoint.

        With `dimensions`, shorter vectors are asked for; not every server and model knows that.
        """
        self._client = LazyClient(api_key, base_url, second_tries=1)
        self._model = model
        self._seconds = seconds
        self._dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, in order; of a blank one all zeros.

        Long texts are cut. Raises `ModelFailedError` if the endpoint does not answer in time, or
        not with one vector for each text.
        """
        wanted = [one[:TEXT_CHARACTERS] for one in texts if one.strip()]
        try:
            vectors = run_within(self._seconds, lambda: self._all(wanted))
        except DeadlinePassedError:
            raise ModelFailedError("the embeddings did not come in time") from None
        found = iter(vectors)
        return [next(found) if one.strip() else () for one in texts]

    def _all(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        batch: list[str] = []
        for text in texts:
            if len(batch) == BATCH_TEXTS or sum(map(len, batch)) + len(text) > BATCH_CHARACTERS:
                vectors += self._batch(batch)
                batch = []
            batch.append(text)
        return vectors + (self._batch(batch) if batch else [])

    def _batch(self, texts: Sequence[str]) -> list[Vector]:
        try:
            content = self._post(texts)
        except ModelFailedError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a foreign client raises is a failure
            status = getattr(error, "status_code", None)
            reason = f"the embeddings failed ({type(error).__name__})"
            raise ModelFailedError(reason, status if isinstance(status, int) else None) from None
        return _vectors(content, len(texts))

    def _post(self, texts: Sequence[str]) -> bytes:
        client = self._client()
        from openai import Timeout

        embeddings: Any = client.embeddings.with_raw_response
        timeout = Timeout(self._seconds, connect=min(CONNECT_SECONDS, self._seconds))
        shorter: dict[str, int] = {"dimensions": self._dimensions} if self._dimensions else {}
        content: bytes = embeddings.create(
            model=self._model,
            input=list(texts),
            encoding_format="float",
            timeout=timeout,
            **shorter,
        ).content
        return content


def _vectors(content: bytes, expected: int) -> list[Vector]:
    """The vectors of an answer, each brought to length 1."""
    try:
        body = parse_json(content)
        items = sorted(body["data"], key=lambda item: item["index"])
        vectors = [tuple(float(one) for one in item["embedding"]) for item in items]
    except (BadJsonError, KeyError, TypeError, ValueError):
        raise ModelFailedError("the embeddings' answer is not of the known shape") from None
    if len(vectors) != expected or len({len(one) for one in vectors}) != 1:
        raise ModelFailedError("the embeddings' answer does not fit the question")
    return [_unit(one) for one in vectors]


def _unit(vector: Vector) -> Vector:
    length = math.sqrt(math.sumprod(vector, vector))
    if not math.isfinite(length) or length == 0:
        return (0.0,) * len(vector)
    return tuple(one / length for one in vector)
