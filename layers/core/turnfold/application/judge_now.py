"""Judging a turn in the request that committed it (`pin_mode` "sync")."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.judge_pins import PinJudge
from turnfold.application.pin_changes import judgement_change
from turnfold.application.ports import Clock, MemoryStore, TokenCounter
from turnfold.application.views import pin_view, watermark_view
from turnfold.domain.errors import GuardFailedError, ModelError, StoreError
from turnfold.domain.measure import Measure
from turnfold.domain.planner import JudgeTurns, next_step, pending_turns
from turnfold.domain.sessions import SessionKey

ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class JudgeNow:
    """Judges what is unjudged of a session, at once.

    The turn is committed already. When the model or a store fails, judging is left to the
    compactor, and the answer says so with `pins_pending`.
    """

    store: MemoryStore
    judge: PinJudge
    counter: TokenCounter
    clock: Clock

    def __call__(self, key: SessionKey, committed: Answer, request: IdempotentRequest) -> Answer:
        """The commit's answer with `pins`, which also becomes what a repetition is answered."""
        for _ in range(ATTEMPTS):
            try:
                body = self._judge(key, committed.body, request)
            except GuardFailedError:
                continue
            except (ModelError, StoreError):
                break
            return replace(committed, body=body)
        return replace(committed, body={**committed.body, "pins": [], "pins_pending": True})

    def _judge(
        self, key: SessionKey, body: Mapping[str, Any], request: IdempotentRequest
    ) -> dict[str, Any]:
        memory = self.store.load(key)
        if memory is None:
            return {**body, "pins": []}
        session = memory.session
        measure = Measure(lambda text: self.counter.count(text, session.settings.model))
        step = next_step(memory, measure)
        if not isinstance(step, JudgeTurns):
            return {**body, "pins": []}
        edit = self.judge.judge(key, step.turns, memory.pins, session.pin_rev + 1, measure.count)
        after = replace(session, judged_through=step.turns[-1].number)
        pending = pending_turns(replace(memory, session=after), measure)
        judged = {
            **body,
            "watermark": watermark_view(after, pending),
            "pins": [pin_view(pin) for pin in edit.changed],
        }
        record = request.record(201, judged, self.clock())
        self.store.write(judgement_change(session, step.turns, edit, amends=record))
        return judged
