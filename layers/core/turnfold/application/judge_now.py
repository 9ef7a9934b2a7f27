"""Judging a turn in the request that committed it (`pin_mode` "sync")."""

from dataclasses import dataclass, replace

from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.judge_pins import PinJudge
from turnfold.application.pin_changes import MAX_PIN_CHANGES, judgement_change
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.models import TokenCounter
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
        """The commit's answer with `pins`, which also becomes what a repetition is answered.

        It is the commit's own answer, by which the pins are pending, unless this judges its turn.
        """
        for _ in range(ATTEMPTS):
            try:
                return self._judge(key, committed, request)
            except GuardFailedError:
                continue
            except (ModelError, StoreError):
                break
        return committed

    def _judge(self, key: SessionKey, committed: Answer, request: IdempotentRequest) -> Answer:
        memory = self.store.load(key)
        if memory is None:
            return committed
        session = memory.session
        measure = Measure(lambda text: self.counter.count(text, session.settings.model))
        step = next_step(memory, measure)
        if not isinstance(step, JudgeTurns) or step.turns[-1].number < committed.body["turn"]:
            return committed
        judge = self.judge.of(session)
        edit = judge.judge(key, step.turns, memory.pins, session.pin_rev + 1, measure.count)
        if len(edit.changed) > MAX_PIN_CHANGES:
            return committed
        after = replace(session, judged_through=step.turns[-1].number)
        pending = pending_turns(replace(memory, session=after), measure)
        said = {name: one for name, one in committed.body.items() if name != "pins_pending"}
        body = said | {
            "watermark": watermark_view(after, pending),
            "pins": [pin_view(pin) for pin in edit.changed],
        }
        record = request.record(committed.status, body, self.clock())
        self.store.write(judgement_change(session, step.turns, edit, amends=record))
        return replace(committed, body=body)
