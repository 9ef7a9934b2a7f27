"""A language model whose calls are measured: how many, how many failed, and their tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turnfold.application.metrics import Metrics
from turnfold.application.ports.models import (
    ChatModel,
    ChatReply,
    LanguageModel,
    ModelAnswer,
    ModelRequest,
)
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
