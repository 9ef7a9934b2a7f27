"""Judging turns for pins, and folding pins: by the model, else by rules that need none."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.models import ModelAnswer, ModelRequest, PinRule
from turnfold.application.prompt_data import judgement_data, pins_data
from turnfold.application.prompts import Prompt, PromptLibrary
from turnfold.application.summary_writer import PaidAnswers
from turnfold.domain.answers import Answer as SpokenAnswer
from turnfold.domain.errors import ModelFailedError, RejectedAnswerError
from turnfold.domain.judgement import (
    AGGREGATION_SCHEMA,
    JUDGEMENT_SCHEMA,
    FoldedFact,
    Judgement,
    parse_aggregation,
    parse_judgement,
)
from turnfold.domain.messages import content_texts
from turnfold.domain.pin_joining import join_pins
from turnfold.domain.pin_rules import PinEdit, PinFactory, ProposedPin, apply_proposals
from turnfold.domain.pin_slots import pin_slot
from turnfold.domain.pins import Pin, PinStatus, weakest
from turnfold.domain.quarantine import quarantine_reason
from turnfold.domain.sessions import Session, SessionKey
from turnfold.domain.tokens import CountText
from turnfold.domain.turns import Turn

logger = logging.getLogger("turnfold")


@dataclass(frozen=True, slots=True)
class PinJudge:
    """Decides what of a turn is pinned. Without a model, rules quote what a user stated plainly."""

    answers: PaidAnswers | None
    prompts: PromptLibrary
    rule: PinRule
    clock: Clock
    new_id: NewId

    def of(self, session: Session) -> Self:
        """The same for one life of a session (`PaidAnswers.of`)."""
        return replace(self, answers=self.answers and self.answers.of(session))

    def judge(
        self,
        key: SessionKey,
        turns: Sequence[Turn],
        pins: Sequence[Pin],
        rev: int,
        count: CountText,
    ) -> PinEdit:
        """What the turns change among the active pins.

        Raises `ModelFailedError` if there is a model and it gave no usable judgement twice.
        """
        made = self._factory(rev, count)
        if self.answers is None:
            return self.judge_by_rule(turns, pins, rev, count)
        judgement = self._judged(self.answers, key, turns, pins)
        proposals = [
            ProposedPin(fact.turn, fact.text, fact.confidence, fact.said_by, fact.replaces_pin_id)
            for fact in judgement.facts
        ]
        return apply_proposals(pins, proposals, judgement.retracted_pin_ids, turns, made)

    def judge_by_rule(
        self, turns: Sequence[Turn], pins: Sequence[Pin], rev: int, count: CountText
    ) -> PinEdit:
        """What the rules would pin."""
        proposals = [
            ProposedPin(turn.number, text, 1.0, "user", slot=pin_slot(text))
            for turn in turns
            for text in self.rule.propose(_user_texts(turn))
        ]
        return apply_proposals(pins, proposals, (), turns, self._factory(rev, count))

    def fold(
        self,
        key: SessionKey,
        pins: Sequence[Pin],
        rev: int,
        count: CountText,
        *,
        max_tokens: int,
        max_pins: int,
    ) -> tuple[Pin, ...] | None:
        """The pins to write to fold these into fewer; None without a usable answer of the model.

        The model is asked for `max_tokens` tokens together; more are taken: nothing may be lost.
        Without a model they are only joined, until they are `max_pins`.

        Pins are never dropped to save tokens, so what cannot be folded stays as it is.
        """
        if self.answers is None:
            return self._folded(join_pins(pins, max_pins), pins, rev, count)
        ids = [pin.pin_id for pin in pins]
        for prompt in (
            self.prompts.get("pin_aggregation"),
            self.prompts.stricter("pin_aggregation"),
        ):
            request = ModelRequest(
                purpose="pin_aggregation",
                instruction=prompt.filled(max_tokens=max_tokens),
                data=pins_data(pins),
                schema=AGGREGATION_SCHEMA,
            )
            try:
                facts = self.answers.ask(
                    key,
                    request,
                    prompt.version,
                    lambda answer: _safe_facts(answer, ids),
                )
            except RejectedAnswerError as error:
                logger.warning(
                    "pin folding rejected", extra={"code": "PINS_REJECTED", "reason": error.reason}
                )
                continue
            except ModelFailedError:
                return None
            return self._folded(facts, pins, rev, count)
        return None

    def _judged(
        self, answers: PaidAnswers, key: SessionKey, turns: Sequence[Turn], pins: Sequence[Pin]
    ) -> Judgement:
        numbers = {turn.number for turn in turns}
        ids = {pin.pin_id for pin in pins}
        prompts = (self.prompts.get("pin_judgement"), self.prompts.stricter("pin_judgement"))
        reason = ""
        for prompt in prompts:
            request = self._judgement_request(prompt, turns, pins)
            try:
                return answers.ask(
                    key,
                    request,
                    prompt.version,
                    lambda answer: parse_judgement(finished_text(answer), numbers, ids),
                )
            except RejectedAnswerError as error:
                reason = error.reason
                logger.warning(
                    "judgement rejected", extra={"code": "JUDGEMENT_REJECTED", "reason": reason}
                )
        raise ModelFailedError(f"the model's judgement was rejected: {reason}")

    def _judgement_request(
        self, prompt: Prompt, turns: Sequence[Turn], pins: Sequence[Pin]
    ) -> ModelRequest:
        return ModelRequest(
            purpose="pin_judgement",
            instruction=prompt.text,
            data=judgement_data(turns, pins),
            schema=JUDGEMENT_SCHEMA,
        )

    def _folded(
        self, facts: Sequence[FoldedFact], pins: Sequence[Pin], rev: int, count: CountText
    ) -> tuple[Pin, ...]:
        made = self._factory(rev, count)
        by_id = {pin.pin_id: pin for pin in pins}
        changed: list[Pin] = []
        for fact in facts:
            sources = [by_id[pin_id] for pin_id in fact.folds_pin_ids]
            if len(sources) == 1 and sources[0].text == fact.text:
                continue
            changed.append(
                made.new(
                    fact.text,
                    trust=weakest(pin.trust for pin in sources),
                    confidence=min(pin.confidence for pin in sources),
                    sources=tuple(sorted({turn for pin in sources for turn in pin.sources})),
                    folded_from=fact.folds_pin_ids,
                )
            )
            changed += [made.moved(pin, PinStatus.FOLDED) for pin in sources]
        return tuple(changed)

    def _factory(self, rev: int, count: CountText) -> PinFactory:
        return PinFactory(now=self.clock(), rev=rev, new_id=self.new_id, count=count)


def _safe_facts(answer: ModelAnswer, ids: Sequence[str]) -> tuple[FoldedFact, ...]:
    """The folded facts of an answer, none of which may instruct a model or carry a secret."""
    facts = parse_aggregation(finished_text(answer), ids)
    if any(quarantine_reason(fact.text) in ("instruction", "secret") for fact in facts):
        raise RejectedAnswerError("unsafe")
    return facts


def finished_text(answer: SpokenAnswer | ModelAnswer) -> str:
    """The text of an answer that ended normally. Raises `RejectedAnswerError`."""
    if answer.finish_reason != "stop":
        raise RejectedAnswerError("finish")
    if answer.refusal:
        raise RejectedAnswerError("refusal")
    return answer.text or ""


def _user_texts(turn: Turn) -> tuple[str, ...]:
    return tuple(
        text for one in turn.conversation if one["role"] == "user" for text in content_texts(one)
    )
