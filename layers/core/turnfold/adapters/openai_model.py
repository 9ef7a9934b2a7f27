"""The language model and the chat model on an OpenAI-compatible endpoint."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from turnfold.adapters.openai_completions import MAX_COMPLETION_TOKENS, OpenAICompletions
from turnfold.application.ports.models import ChatReply, ModelAnswer, ModelRequest
from turnfold.domain.completions import content_text, finish_reason_of, reply_message

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_SCHEMA_NAME = 64


class OpenAIModel:
    """Summarises and judges; implements `LanguageModel`."""

    def __init__(self, completions: OpenAICompletions, model: str) -> None:
        """`model` is the model's name at the endpoint."""
        self._completions = completions
        self._model = model

    @property
    def name(self) -> str:
        """The model's name, for provenance."""
        return self._model

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """One question; the answer as it came. Raises `ModelFailedError`.

        The cap on the answer is not sent: it limits what may be kept, and the prompt states it. As
        a parameter it would count a reasoning model's thoughts and cut off good answers, and
        servers with a small window refuse any generous one. What it would save is little, since the
        time limit ends a model that does not stop.
        """
        question: dict[str, Any] = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": request.instruction},
                {"role": "user", "content": request.data},
            ],
        }
        if request.schema is not None:
            question["response_format"] = {
                "type": "json_schema",
                "json_schema": {
                    "name": _schema_name(request.purpose),
                    "strict": True,
                    "schema": request.schema,
                },
            }
        body = self._completions.create(question)
        choice = body["choices"][0]
        refusal = choice["message"].get("refusal")
        usage = _usage(body)
        return ModelAnswer(
            text=content_text(choice["message"].get("content")),
            finish_reason=finish_reason_of(choice),
            model=_model_name(body, self._model),
            refusal=refusal if isinstance(refusal, str) and refusal else None,
            prompt_tokens=_tokens(usage.get("prompt_tokens")),
            completion_tokens=_tokens(usage.get("completion_tokens")),
        )


class OpenAIChat:
    """Talks to the user; implements `ChatModel`."""

    def __init__(self, completions: OpenAICompletions, model: str) -> None:
        """`model` is asked when a call names none."""
        self._completions = completions
        self._model = model

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        model: str | None,
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatReply:
        """One chat completion of the messages as they are.

        The reply has no members that are null but its content, and it says something: text, a
        tool call or a refusal. Raises `ModelFailedError`.
        """
        question: dict[str, Any] = {"model": model or self._model, "messages": list(messages)}
        if max_tokens is not None:
            question[MAX_COMPLETION_TOKENS] = max_tokens
        if temperature is not None:
            question["temperature"] = temperature
        body = self._completions.create(question)
        choice = body["choices"][0]
        finish_reason = finish_reason_of(choice)
        return ChatReply(
            message=reply_message(choice["message"], finish_reason),
            finish_reason=finish_reason,
            model=_model_name(body, question["model"]),
            usage=_usage(body),
        )


def _model_name(body: Mapping[str, Any], asked: str) -> str:
    name = body.get("model")
    return name if isinstance(name, str) and name else asked


def _usage(body: Mapping[str, Any]) -> dict[str, Any]:
    usage = body.get("usage")
    return dict(usage) if isinstance(usage, dict) else {}


def _tokens(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


def _schema_name(purpose: str) -> str:
    return _NOT_IN_NAMES.sub("_", purpose)[:_MAX_SCHEMA_NAME] or "answer"
