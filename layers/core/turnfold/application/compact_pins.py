"""The steps of a compaction that are about pins: judging turns, and folding pins.

Each is one guarded write. Raises `GuardFailedError` if another writer was faster, `StoreError`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from turnfold.application.compaction_run import CompactionRun
from turnfold.application.judge_pins import PinJudge
from turnfold.application.metrics import Metrics
from turnfold.application.pin_changes import MAX_PIN_CHANGES, judgement_change, pin_change
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.read_transcript import Transcript
from turnfold.domain.errors import ModelFailedError
from turnfold.domain.measure import Measure
from turnfold.domain.measurements import Metric
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.pin_rules import edit_of
from turnfold.domain.pins import Pin
from turnfold.domain.sessions import TurnRange
from turnfold.domain.turns import Turn

WORTH_A_CALL = 4
"""Of pins more than one fold takes, more are folded when a fold spared one in so many."""

JUDGED_AGAIN_TURNS = 12
"""Turns that are judged again in one call."""


@dataclass(frozen=True, slots=True)
class CompactPins:
    """Judges turns and folds pins."""

    store: MemoryStore
    transcript: Transcript
    pin_judge: PinJudge
    clock: Clock
    metrics: Metrics

    def judge(
        self, memory: WorkingMemory, turns: Sequence[Turn], measure: Measure, run: CompactionRun
    ) -> None:
        """Judge turns and move the watermark.

        When the model fails, the rules judge, and the turns are noted to be judged again.
        """
        session = memory.session
        rev = session.pin_rev + 1
        again = None
        try:
            edit = self.pin_judge.of(session).judge(
                session.key, turns, memory.pins, rev, measure.count
            )
        except ModelFailedError as error:
            run.model_down = run.model_down or not error.refused_request
            again = TurnRange(turns[0].number, turns[-1].number)
            edit = self.pin_judge.judge_by_rule(turns, memory.pins, rev, measure.count)
        if len(edit.changed) > MAX_PIN_CHANGES and len(turns) > 1:
            # More facts than one write takes: fewer turns at once.
            self.judge(memory, turns[: len(turns) // 2], measure, run)
            return
        self.store.write(judgement_change(session, turns, edit, rejudge=again))
        waited = (self.clock() - turns[0].committed_at).total_seconds()
        self.metrics.record({Metric.COMPACTION_LAG: waited})

    def judge_again(
        self,
        memory: WorkingMemory,
        waiting: TurnRange,
        measure: Measure,
        run: CompactionRun,
        most: int = JUDGED_AGAIN_TURNS,
    ) -> None:
        """Judge by the model the first of the turns that were judged by the rules alone."""
        session = memory.session
        last = min(waiting.to_turn, waiting.from_turn + most - 1)
        turns = self.transcript.turns(session, waiting.from_turn, last)
        try:
            edit = self.pin_judge.of(session).judge(
                session.key, turns, memory.pins, session.pin_rev + 1, measure.count
            )
        except ModelFailedError as error:
            run.rejudging_refused = error.refused_request
            run.model_down = run.model_down or not error.refused_request
            return
        if len(edit.changed) > MAX_PIN_CHANGES and len(turns) > 1:
            self.judge_again(memory, waiting, measure, run, most=len(turns) // 2)
            return
        rest = TurnRange(last + 1, waiting.to_turn) if last < waiting.to_turn else None
        self.store.write(
            pin_change(session, edit, sets={"rejudge": rest}, guards={"rejudge": waiting})
        )

    def fold(self, memory: WorkingMemory, pins: Sequence[Pin], measure: Measure) -> None:
        """Fold some of the pins into fewer."""
        session = memory.session
        rev = session.pin_rev + 1
        untouched = len(memory.pins) - len(pins)
        changed = self.pin_judge.of(session).fold(
            session.key,
            pins,
            rev,
            measure.count,
            max_tokens=session.settings.max_pin_tokens,
            max_pins=max(1, session.settings.max_pin_count - untouched),
        )
        edit = edit_of(memory.pins, changed or ())
        saved = len(memory.pins) - edit.active
        # More pins than one fold takes: the rest is folded too, while that is worth a call.
        goes_on = len(pins) < len(memory.pins) and saved >= len(pins) // WORTH_A_CALL
        sets = {} if goes_on else {"pins_settled_rev": rev}
        self.store.write(pin_change(session, edit, sets=sets))
