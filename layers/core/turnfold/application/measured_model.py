"""A language model whose calls are measured: how many, how many failed, and their tokens."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from turnfold.application.metrics import Metrics
from turnfold.application.ports.completions import Chunks, Completions
from turnfold.application.ports.models import (
    ChatModel,
    ChatReply,
    LanguageModel,
    ModelAnswer,
    ModelRequest,
)
from turnfold.domain.completions import usage_of
from turnfold.domain.errors import ModelError
from turnfold.domain.measurements import Metric

FAILED: Mapping[Metric, float] = {Metric.MODEL_CALLS: 1, Metric.MODEL_FAILURES: 1}


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """A `LanguageModel` that measures another."""

    model: LanguageModel
    metrics: Metrics

    @property
    def name(self) -> str:
        """See `LanguageModel`."""
        return self.model.name

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """See `LanguageModel`."""
        try:
            answer = self.model.ask(request)
        except ModelError:
            self.metrics.record(FAILED)
            raise
        self.metrics.record(_spent(answer.prompt_tokens, answer.completion_tokens))
        return answer


@dataclass(frozen=True, slots=True)
class MeasuredChatModel:
    """A `ChatModel` that measures another."""

    model: ChatModel
    metrics: Metrics

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        model: str | None,
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatReply:
        """See `ChatModel`."""
        try:
            reply = self.model.chat(
                messages, model=model, max_tokens=max_tokens, temperature=temperature
            )
        except ModelError:
            self.metrics.record(FAILED)
            raise
        usage = reply.usage
        self.metrics.record(
            _spent(_number(usage.get("prompt_tokens")), _number(usage.get("completion_tokens")))
        )
        return reply


@dataclass(frozen=True, slots=True)
class MeasuredCompletions:
    """A `Completions` that measures another. A stream that is not taken to its end counts, too."""

    model: Completions
    metrics: Metrics

    def complete(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Completions`."""
        with self._failures():
            answer = self.model.complete(body)
        self._spend(answer)
        return answer

    def stream(self, body: Mapping[str, Any], *, with_usage: bool = False) -> Chunks:
        """See `Completions`."""
        with self._failures():
            chunks = self.model.stream(body, with_usage=with_usage)
        return self._measured(chunks)

    def models(self) -> Mapping[str, Any]:
        """See `Completions`; no model is asked."""
        return self.model.models()

    def _measured(self, chunks: Chunks) -> Chunks:
        last: Mapping[str, Any] = {}
        with closing(chunks), self._failures():
            try:
                for chunk in chunks:
                    last = chunk if chunk.get("usage") else last
                    yield chunk
            except GeneratorExit:
                self._spend(last)
                raise
        self._spend(last)

    @contextmanager
    def _failures(self) -> Generator[None]:
        try:
            yield
        except ModelError:
            self.metrics.record(FAILED)
            raise

    def _spend(self, answer: Mapping[str, Any]) -> None:
        usage = usage_of(answer, None)
        self.metrics.record(_spent(usage.prompt_tokens, usage.completion_tokens))


def _spent(tokens_in: int, tokens_out: int) -> dict[Metric, float]:
    return {
        Metric.MODEL_CALLS: 1,
        Metric.MODEL_FAILURES: 0,
        Metric.MODEL_INPUT_TOKENS: tokens_in,
        Metric.MODEL_OUTPUT_TOKENS: tokens_out,
    }


def _number(value: object) -> int:
    """Tokens as an endpoint said them; not every compatible one says them, or as numbers."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
