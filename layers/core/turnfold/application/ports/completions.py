"""Chat completions as a provider speaks them, for those who speak so themselves."""

from collections.abc import Generator, Mapping
from typing import Any, Protocol

type Chunks = Generator[Mapping[str, Any]]
"""The chunks of a streamed answer. Closing it ends the request."""


class Completions(Protocol):
    """An OpenAI-compatible endpoint. Nothing is added to a request, nor taken from an answer.

    Every method raises `ModelFailedError`, or `ModelRefusedError` with what the endpoint said, or
    `ModelNotConfiguredError`.
    """

    def complete(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer, in one piece."""
        ...

    def stream(self, body: Mapping[str, Any], *, with_usage: bool = False) -> Chunks:
        """The answer in chunks, once the endpoint has begun it.

        With `with_usage` the endpoint is asked to count the tokens, if it can. The chunks, too,
        raise `ModelFailedError`.
        """
        ...

    def models(self) -> Mapping[str, Any]:
        """The models that there are."""
        ...
