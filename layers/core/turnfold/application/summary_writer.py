"""Making one summary: from a paid answer, the model, or the deterministic summariser."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

from turnfold.application.ports.clock import Clock
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.models import LanguageModel, ModelAnswer, ModelRequest, Summariser
from turnfold.application.prompt_data import conversation_data, entry_passages, source_text
from turnfold.application.prompts import Prompt, PromptLibrary
from turnfold.domain.answers import (
    SummarySource,
    accept_summary,
    with_kept_identifiers,
)
from turnfold.domain.errors import ModelFailedError, RejectedAnswerError
from turnfold.domain.limits import MODEL_ANSWER_SECONDS
from turnfold.domain.sessions import Session, SessionKey
from turnfold.domain.summaries import Summary
from turnfold.domain.tokens import CountText
from turnfold.domain.transcript import sha256_of
from turnfold.domain.turns import Turn
from turnfold.domain.usage import Usage

logger = logging.getLogger("turnfold")

EXTRACTIVE = "extractive"
"""The name of the deterministic summariser, where a model's name would stand."""


@dataclass(frozen=True, slots=True)
class SummaryOrder:
    """What is to be summarised: `entries` to read, and the size of what the summary replaces."""

    kind: str
    entries: Sequence[Turn | Summary]
    max_tokens: int
    replaced_tokens: int


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """A summary that may be stored. `model_failed` says that the model could not be used for it."""

    text: str
    tokens: int
    model: str
    prompt_version: str
    degraded: bool
    model_failed: bool = False


@dataclass(frozen=True, slots=True)
class PaidAnswers:
    """Asks the model, and keeps what was paid for until it is applied."""

    store: MemoryStore
    model: LanguageModel
    clock: Clock
    epoch: str = ""

    def of(self, session: Session) -> "PaidAnswers":
        """The same for one life of a session: an answer about it is not kept for a later one."""
        return replace(self, epoch=session.epoch)

    def ask[Result](
        self,
        key: SessionKey,
        request: ModelRequest,
        version: str,
        accept: Callable[[ModelAnswer], Result],
    ) -> Result:
        """What `accept` makes of the answer; an accepted answer is never paid for twice.

        Raises `ModelFailedError`, or the `RejectedAnswerError` of `accept`; a rejected answer is
        not kept, since it would be rejected again.
        """
        step_id = sha256_of(
            [
                request.purpose,
                version,
                self.model.name,
                request.instruction,
                request.data,
            ]
        )
        paid = self.store.get_model_answer(key, step_id)
        if paid:
            return accept(paid)
        answer = self.model.ask(request)
        usage = Usage(
            step=request.purpose,
            model=answer.model,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
        )
        try:
            result = accept(answer)
        except RejectedAnswerError:
            self.store.add_usage(key, self.epoch, usage)
            raise
        expires_at = self.clock() + timedelta(seconds=MODEL_ANSWER_SECONDS)
        self.store.put_model_answer(key, step_id, answer, expires_at, self.epoch, usage)
        return result


@dataclass(frozen=True, slots=True)
class SummaryWriter:
    """Writes summaries. Without a model, or when it gives nothing usable, they are `degraded`."""

    answers: PaidAnswers | None
    prompts: PromptLibrary
    summariser: Summariser

    def of(self, session: Session) -> Self:
        """The same for one life of a session (`PaidAnswers.of`)."""
        return replace(self, answers=self.answers and self.answers.of(session))

    def write(
        self,
        key: SessionKey,
        order: SummaryOrder,
        count: CountText,
        *,
        model_down: bool = False,
    ) -> WrittenSummary:
        """A summary of the order's entries that is valid and shorter than what it replaces.

        The model is asked once, and once more with a stricter request if the answer was rejected;
        not at all with `model_down`.
        """
        source = SummarySource(
            text=source_text(order.entries),
            tokens=order.replaced_tokens,
            max_tokens=order.max_tokens,
        )
        failed = model_down
        if self.answers and not model_down:
            for prompt in (self.prompts.get(order.kind), self.prompts.stricter(order.kind)):
                try:
                    return self._asked(self.answers, key, order, source, prompt, count)
                except RejectedAnswerError as error:
                    logger.warning(
                        "summary rejected",
                        extra={"code": "SUMMARY_REJECTED", "reason": error.reason},
                    )
                except ModelFailedError as error:
                    logger.warning(
                        "model failed", extra={"code": "MODEL_FAILED", "status": error.status}
                    )
                    failed = not error.refused_request
                    break
        return self._extracted(order, source, count, model_failed=failed)

    def _asked(
        self,
        answers: PaidAnswers,
        key: SessionKey,
        order: SummaryOrder,
        source: SummarySource,
        prompt: Prompt,
        count: CountText,
    ) -> WrittenSummary:
        request = ModelRequest(
            purpose=order.kind,
            instruction=prompt.filled(max_tokens=order.max_tokens),
            data=conversation_data(order.entries),
        )
        text = answers.ask(
            key, request, prompt.version, lambda answer: accept_summary(answer, source, count)
        )
        whole = with_kept_identifiers(text, source, count)
        return WrittenSummary(
            text=whole,
            tokens=count(whole),
            model=answers.model.name,
            prompt_version=prompt.version,
            degraded=False,
        )

    def _extracted(
        self, order: SummaryOrder, source: SummarySource, count: CountText, *, model_failed: bool
    ) -> WrittenSummary:
        cap = max(1, min(source.max_tokens, source.tokens - 1))
        text = self.summariser.summarise(entry_passages(order.entries), cap)
        return WrittenSummary(
            text=text,
            tokens=count(text),
            model=EXTRACTIVE,
            prompt_version="",
            degraded=True,
            model_failed=model_failed,
        )
