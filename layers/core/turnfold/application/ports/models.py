"""The models, and the deterministic stand-ins that need none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from turnfold.domain.passages import Passage


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model said, as it came; nothing in it is trusted yet.

    `finish_reason` is "stop" for a normal end. `text` is None where the model gave none.
    """

    text: str | None
    finish_reason: str
    model: str
    refusal: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to the model: an instruction and fenced data.

    `schema` asks for strict JSON of that JSON schema. `purpose` names the step for logs.
    """

    purpose: str
    instruction: str
    data: str
    schema: Mapping[str, Any] | None = None


class LanguageModel(Protocol):
    """The model that summarises and judges."""

    @property
    def name(self) -> str:
        """The model's name, for provenance."""
        ...

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """One call, retried at most once by the client. Raises `ModelFailedError`."""
        ...


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A chat model's answer: the message as it came, and what it cost."""

    message: Mapping[str, Any]
    finish_reason: str
    model: str
    usage: Mapping[str, Any]


class ChatModel(Protocol):
    """The model that talks to the user."""

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        model: str | None,
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatReply:
        """One chat completion. Raises `ModelFailedError` or `ModelNotConfiguredError`."""
        ...


class Summariser(Protocol):
    """The deterministic summariser that needs no model."""

    def summarise(self, passages: Sequence[Passage], max_tokens: int) -> str:
        """A summary of at most that many tokens, never empty if a passage has visible text."""
        ...


class PinRule(Protocol):
    """The deterministic pin judgement that needs no model."""

    def propose(self, user_texts: Sequence[str]) -> tuple[str, ...]:
        """Facts worth pinning, quoted from what the user said."""
        ...


class TokenCounter(Protocol):
    """Counts tokens exactly."""

    def count(self, text: str, model: str | None = None) -> int:
        """Tokens of a text by the encoding of that model (o200k_base unless it names another)."""
        ...
