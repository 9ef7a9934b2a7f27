"""The models: which there are is told by the environment."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from turnfold.application.ports.recall import Embedder
from turnfold.application.prompts import PromptLibrary
from turnfold.bootstrap.resources import Resources, new_id

if TYPE_CHECKING:
    from turnfold.adapters.openai_completions import OpenAICompletions
    from turnfold.application.judge_pins import PinJudge
    from turnfold.application.ports.completions import Completions
    from turnfold.application.ports.models import ChatModel
    from turnfold.application.summary_writer import PaidAnswers
    from turnfold.domain.usage import Prices

DEFAULT_MODEL = "gpt-5.4-mini"

DEFAULT_CHAT_MODEL = "gpt-5.4-mini"


class Models(Resources):
    """Adapters to the model provider, each with the time that its caller has."""

    @cached_property
    def _prompts(self) -> PromptLibrary:
        folder = self._env.get("TURNFOLD_PROMPTS")
        return PromptLibrary(Path(folder) if folder else None)

    @property
    def _has_model(self) -> bool:
        return bool(self._env.get("OPENAI_API_KEY") or self._env.get("TURNFOLD_MODEL_SECRET"))

    def _answers(self, seconds: float) -> "PaidAnswers | None":
        """The model that summarises and judges; None in the mode without a key."""
        if not self._has_model:
            return None
        from turnfold.adapters.openai_model import OpenAIModel
        from turnfold.application.measured_model import MeasuredModel
        from turnfold.application.summary_writer import PaidAnswers

        name = self._env.get("TURNFOLD_MODEL") or DEFAULT_MODEL
        model = MeasuredModel(OpenAIModel(self._completions(seconds), name), self.metrics)
        return PaidAnswers(self.table, model, self.clock)

    def _judge(self, answers: "PaidAnswers | None") -> "PinJudge":
        from turnfold.adapters.rule_judge import RuleJudge
        from turnfold.application.judge_pins import PinJudge

        return PinJudge(answers, self._prompts, RuleJudge(), self.clock, new_id)

    def _embedder(self, seconds: float) -> Embedder | None:
        """The model that makes vectors; None in the mode without a key."""
        if not self._has_model:
            return None
        from turnfold.adapters.openai_embedder import OpenAIEmbedder

        return OpenAIEmbedder(
            self._model_key,
            model=self._env.get("TURNFOLD_EMBEDDING_MODEL"),
            base_url=self._base_url,
            seconds=seconds,
            dimensions=self._dimensions,
        )

    def _chat_model(self) -> "ChatModel | None":
        """The model that talks to the user; None in the mode without a key."""
        if not self._has_model:
            return None
        from turnfold.adapters.openai_completions import API_SECONDS
        from turnfold.adapters.openai_model import OpenAIChat
        from turnfold.application.measured_model import MeasuredChatModel

        name = self._env.get("TURNFOLD_CHAT_MODEL") or DEFAULT_CHAT_MODEL
        return MeasuredChatModel(OpenAIChat(self._completions(API_SECONDS), name), self.metrics)

    @cached_property
    def completions(self) -> "Completions | None":
        """Chat completions as the provider speaks them; None in the mode without a key."""
        if not self._has_model:
            return None
        from turnfold.adapters.openai_completions import API_SECONDS
        from turnfold.adapters.openai_passthrough import OpenAIPassthrough
        from turnfold.application.measured_model import MeasuredCompletions

        passthrough = OpenAIPassthrough(
            self._model_key,
            base_url=self._base_url,
            seconds=API_SECONDS,
            default_model=self._env.get("TURNFOLD_CHAT_MODEL") or DEFAULT_CHAT_MODEL,
        )
        return MeasuredCompletions(passthrough, self.metrics)

    def _completions(self, seconds: float) -> "OpenAICompletions":
        from turnfold.adapters.openai_completions import OpenAICompletions

        return OpenAICompletions(self._model_key, base_url=self._base_url, seconds=seconds)

    @property
    def _base_url(self) -> str | None:
        return self._env.get("OPENAI_BASE_URL") or None

    @cached_property
    def _model_key(self) -> Callable[[], str]:
        key = self._env.get("OPENAI_API_KEY")
        if key:
            return lambda: key
        from turnfold.adapters.model_secret import ModelSecret

        return ModelSecret(self._env["TURNFOLD_MODEL_SECRET"], lambda: self._clients.secretsmanager)

    @cached_property
    def prices(self) -> "Prices":
        """What a million tokens of a model cost."""
        from turnfold.domain.usage import read_prices

        return read_prices(self._env.get("TURNFOLD_PRICES", ""))
