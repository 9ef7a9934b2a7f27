"""The language model and the chat model on an OpenAI-compatible endpoint."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from turnfold.adapters.openai_completions import MAX_COMPLETION_TOKENS, OpenAICompletions
from turnfold.application.ports.models import ChatReply, ModelAnswer, ModelRequest
from turnfold.domain.errors import ModelFailedError

UNKNOWN_FINISH = "unknown"
"""The finish reason of an answer that gives none."""

_FINISH_REASONS = ("stop", "length", "content_filter", "tool_calls")
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
            text=_text(choice["message"].get("content")),
            finish_reason=_finish_reason(choice),
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
        finish_reason = _finish_reason(choice)
        return ChatReply(
            message=_reply_message(choice["message"], finish_reason),
            finish_reason=finish_reason,
            model=_model_name(body, question["model"]),
            usage=_usage(body),
        )


def _reply_message(message: Mapping[str, Any], finish_reason: str) -> dict[str, Any]:
    """The message without members that are null or empty, but for its content."""
    reply = {"role": "assistant", "content": message.get("content") or None} | {
        name: value for name, value in message.items() if value not in (None, "", [], {})
    }
    calls = reply.get("tool_calls", [])
    if not (
        reply["role"] == "assistant"
        and isinstance(reply["content"], str | list | None)
        and isinstance(reply.get("refusal", ""), str)
        and isinstance(calls, list)
        and all(_is_call(call) for call in calls)
    ):
        raise ModelFailedError("the model's message has another form than the chat format")
    text = _text(reply["content"])
    if not (calls or reply.get("refusal") or (text and text.strip())):
        # A reasoning model that used up `max_tokens` before it spoke has the reason "length".
        reason = f" (finish reason {finish_reason})" if finish_reason in _FINISH_REASONS else ""
        raise ModelFailedError(f"the model's message is empty{reason}")
    return reply


def _is_call(call: object) -> bool:
    if not isinstance(call, dict) or not isinstance(call.get("id"), str):
        return False
    for kind, given in (("function", "arguments"), ("custom", "input")):
        inside = call.get(kind)
        if isinstance(inside, dict):
            return isinstance(inside.get("name"), str) and isinstance(inside.get(given), str)
    return False


def _text(content: object) -> str | None:
    """The text of a content; of a list of parts, that of its texts."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str)) or None
    return content if isinstance(content, str) else None


def _finish_reason(choice: Mapping[str, Any]) -> str:
    reason = choice.get("finish_reason")
    return reason if isinstance(reason, str) and reason else UNKNOWN_FINISH


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
