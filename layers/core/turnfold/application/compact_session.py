"""Compacting one session: read, plan, do one step, and again until there is nothing to do.

The doorbell's message carries no work. What is pending is read from the store each time, so a lost,
repeated or reordered message does no harm; two compactors of one session are told apart by the
guards on the watermarks and revisions, and the slower one reads again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from turnfold.application.judge_pins import PinJudge
from turnfold.application.metrics import NO_METRICS, Metrics
from turnfold.application.pin_changes import MAX_PIN_CHANGES, judgement_change, pin_change
from turnfold.application.ports.bells import ArchiveBell, Doorbell
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.memory import Change, MemoryStore
from turnfold.application.ports.models import TokenCounter
from turnfold.application.read_transcript import Transcript
from turnfold.application.ringing import ring_archivist_gently, ring_gently
from turnfold.application.summary_writer import SummaryOrder, SummaryWriter, WrittenSummary
from turnfold.domain.errors import (
    GuardFailedError,
    ModelFailedError,
    StoreUnavailableError,
)
from turnfold.domain.measure import Measure
from turnfold.domain.measurements import Metric
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.pin_rules import edit_of
from turnfold.domain.planner import Fold, FoldPins, JudgeTurns, Step, next_step
from turnfold.domain.regions import Entry
from turnfold.domain.sessions import (
    Profile,
    Session,
    SessionKey,
    SessionStatus,
    SummaryRef,
    TurnRange,
)
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn

MAX_CONFLICTS = 20
"""Lost guards in one run; more mean that something is wrong, and the bell rings again."""

REFETCH_TURNS = 12
REFETCH_TOKENS = 8000
"""A history summary is made anew from its original turns when they are few enough to fetch and
read; else the summaries themselves are folded."""

WORTH_A_CALL = 4
"""Of pins more than one fold takes, more are folded when a fold spared one in so many."""

STEP_SECONDS = 100.0
"""The longest that one step may take: two model calls with one retry each, and the writes."""


@dataclass(frozen=True, slots=True)
class Ring:
    """What a doorbell message says: the newest turn then, and whether to compact anyway."""

    turn: int
    forced: bool = False


type Rebuild = Callable[[Session, Callable[[], float]], bool]
"""Makes the working memory of a session anew that asks for it; false if time ran out."""


class Outcome(StrEnum):
    """How a run ended."""

    DONE = "done"
    WAITING = "waiting"
    CONTINUES = "continues"


@dataclass(frozen=True, slots=True)
class CompactSession:
    """Does the background work of one session."""

    store: MemoryStore
    transcript: Transcript
    doorbell: Doorbell
    writer: SummaryWriter
    judge: PinJudge
    counter: TokenCounter
    clock: Clock
    new_id: NewId
    metrics: Metrics = NO_METRICS
    archive_bell: ArchiveBell | None = None
    rebuild: Rebuild | None = None

    def __call__(
        self, key: SessionKey, ring: Ring, seconds_left: Callable[[], float] = lambda: 1e9
    ) -> Outcome:
        """Work until nothing is to do, or until time runs short: then the bell is rung again.

        Raises `StoreError` if a store cannot be used, or if other writers were faster too often.
        """
        run = _Run()
        for _ in range(MAX_CONFLICTS):
            try:
                return self._work(key, ring, seconds_left, run)
            except GuardFailedError:
                continue
        raise StoreUnavailableError("other writers were faster too often")

    def _work(
        self, key: SessionKey, ring: Ring, seconds_left: Callable[[], float], run: "_Run"
    ) -> Outcome:
        while True:
            memory = self._load(key)
            if self.rebuild is not None and memory is not None and _asks_for_rebuild(memory):
                session = memory.session
                if self.rebuild(session, lambda: seconds_left() - STEP_SECONDS):
                    continue
                ring_gently(self.doorbell, key, self.new_id(), session.committed_through)
                return Outcome.CONTINUES
            if memory is None or memory.session.status is not SessionStatus.LIVE:
                return Outcome.DONE
            measure = self._measure(memory)
            quiet = ring.forced or ring.turn >= memory.session.committed_through
            step = next_step(memory, measure, quiet=quiet, forced=ring.forced)
            redo = None if step else self._redo(memory, measure, run)
            if step is None and redo is None:
                if not quiet:
                    return Outcome.WAITING
                self._settle(memory)
                self._ring_archivist(memory.session)
                return Outcome.DONE
            if seconds_left() < STEP_SECONDS:
                turn = memory.session.committed_through
                ring_gently(self.doorbell, key, self.new_id(), turn, forced=ring.forced)
                self._ring_archivist(memory.session)
                return Outcome.CONTINUES
            if step:
                self._do(memory, step, measure, run)
            elif redo:
                redo()

    def _load(self, key: SessionKey) -> WorkingMemory | None:
        """The working memory; of one that is damaged and is to be made anew, only the session."""
        try:
            return self.store.load(key)
        except StoreUnavailableError:
            session, _ = self.store.read_session(key, None)
            if session is None or not session.rebuild:
                raise
            return WorkingMemory(session, Profile(), (), (), ())

    def _measure(self, memory: WorkingMemory) -> Measure:
        model = memory.session.settings.model
        return Measure(lambda text: self.counter.count(text, model))

    def _do(self, memory: WorkingMemory, step: Step, measure: Measure, run: "_Run") -> None:
        """Do one step of the plan. Raises `GuardFailedError` if another writer was faster."""
        match step:
            case JudgeTurns():
                self._judge_turns(memory, step, measure, run)
            case FoldPins():
                self._fold_pins(memory, step, measure)
            case Fold():
                self._fold(memory, step, measure, run)

    def _judge_turns(
        self, memory: WorkingMemory, step: JudgeTurns, measure: Measure, run: "_Run"
    ) -> None:
        """Judge turns and move the watermark.

        When the model fails, the rules judge, and the turns are noted to be judged again.
        """
        session, turns = memory.session, step.turns
        rev = session.pin_rev + 1
        again = None
        try:
            edit = self.judge.of(session).judge(session.key, turns, memory.pins, rev, measure.count)
        except ModelFailedError as error:
            run.model_down = run.model_down or not error.refused_request
            again = TurnRange(turns[0].number, turns[-1].number)
            edit = self.judge.judge_by_rule(turns, memory.pins, rev, measure.count)
        if len(edit.changed) > MAX_PIN_CHANGES and len(turns) > 1:
            # More facts than one write takes: fewer turns at once.
            half = replace(step, turns=turns[: len(turns) // 2])
            self._judge_turns(memory, half, measure, run)
            return
        self.store.write(judgement_change(session, turns, edit, rejudge=again))
        waited = (self.clock() - turns[0].committed_at).total_seconds()
        self.metrics.record({Metric.COMPACTION_LAG: waited})

    def _fold_pins(self, memory: WorkingMemory, step: FoldPins, measure: Measure) -> None:
        session = memory.session
        rev = session.pin_rev + 1
        untouched = len(memory.pins) - len(step.pins)
        changed = self.judge.of(session).fold(
            session.key,
            step.pins,
            rev,
            measure.count,
            max_tokens=session.settings.max_pin_tokens,
            max_pins=max(1, session.settings.max_pin_count - untouched),
        )
        edit = edit_of(memory.pins, changed or ())
        saved = len(memory.pins) - edit.active
        # More pins than one fold takes: the rest is folded too, while that is worth a call.
        goes_on = len(step.pins) < len(memory.pins) and saved >= len(step.pins) // WORTH_A_CALL
        sets = {} if goes_on else {"pins_settled_rev": rev}
        self.store.write(pin_change(session, edit, sets=sets))

    def _fold(self, memory: WorkingMemory, step: Fold, measure: Measure, run: "_Run") -> None:
        written = self.writer.of(memory.session).write(
            memory.session.key,
            self._order(memory, step.entries, step.max_tokens, step.level, measure),
            measure.count,
            model_down=run.model_down,
        )
        run.note(written)
        summary = self._summary(step, written, measure)
        run.redone.add(summary.ref)
        self._replace(memory, step.entries, summary)
        self._count_summary(written)

    def _order(
        self,
        memory: WorkingMemory,
        entries: Sequence[Entry],
        max_tokens: int,
        level: int,
        measure: Measure,
    ) -> SummaryOrder:
        replaced = sum(
            measure.tokens(one) if isinstance(one, Turn) else one.tokens for one in entries
        )
        return SummaryOrder(
            kind="round_summary" if level == 1 else "history_summary",
            entries=self._sources(memory, entries),
            max_tokens=max_tokens,
            replaced_tokens=replaced,
        )

    def _sources(self, memory: WorkingMemory, entries: Sequence[Entry]) -> Sequence[Entry]:
        """The original turns where they are few enough, rather than summaries of summaries."""
        summaries = [one for one in entries if isinstance(one, Summary)]
        turns = sum(one.to_turn - one.from_turn + 1 for one in summaries)
        tokens = sum(one.source_tokens for one in summaries)
        if not summaries or turns > REFETCH_TURNS or tokens > REFETCH_TOKENS:
            return entries
        found: list[Entry] = []
        for one in entries:
            if isinstance(one, Summary):
                found += self.transcript.turns(memory.session, one.from_turn, one.to_turn)
            else:
                found.append(one)
        return found

    def _summary(self, step: Fold, written: WrittenSummary, measure: Measure) -> Summary:
        first, last = step.coverage
        return Summary(
            from_turn=first,
            to_turn=last,
            level=step.level,
            text=written.text,
            tokens=written.tokens,
            source_tokens=sum(
                measure.tokens(one) if isinstance(one, Turn) else one.source_tokens
                for one in step.entries
            ),
            model=written.model,
            prompt_version=written.prompt_version,
            created_at=self.clock(),
            degraded=written.degraded,
        )

    def _replace(self, memory: WorkingMemory, entries: Sequence[Entry], summary: Summary) -> None:
        """Put a summary in the place of entries, in one guarded write."""
        session = memory.session
        gone = {one.ref for one in entries if isinstance(one, Summary)}
        kept = [one for one in memory.summaries if one.ref not in gone]
        live = sorted([*kept, summary], key=lambda one: one.from_turn)
        manifest: tuple[SummaryRef, ...] = tuple(one.ref for one in live)
        removed = tuple(one.number for one in entries if isinstance(one, Turn))
        guards: dict[str, Any] = {
            "summary_rev": session.summary_rev,
            "compacted_through": session.compacted_through,
        }
        if max(removed, default=0) > session.judged_through:
            # Only while judgement is off; the settings, which may switch it on meanwhile, count
            # their changes by the profile's revision.
            guards["profile_rev"] = session.profile_rev
        self.store.write(
            Change(
                key=session.key,
                epoch=session.epoch,
                guards=guards,
                sets={
                    "summary_rev": session.summary_rev + 1,
                    "compacted_through": max(session.compacted_through, summary.to_turn),
                    "manifest": manifest,
                    "degraded": any(one.degraded for one in live),
                },
                summaries=(summary,),
                removes_turns=removed,
                removes_summaries=tuple(ref for ref in gone if ref != summary.ref),
            )
        )

    def _redo(
        self, memory: WorkingMemory, measure: Measure, run: "_Run"
    ) -> Callable[[], None] | None:
        """The next piece of degraded work to do again, if the model may be back.

        Each is tried once in a run, and none once the model has failed in it. A model that refuses
        one request may take the next.
        """
        if self.writer.answers is None or run.model_down:
            return None
        session = memory.session
        if session.rejudge and not run.rejudging_refused:
            return lambda: self._rejudge(memory, measure, run)
        for summary in memory.summaries:
            if summary.degraded and summary.ref not in run.redone:
                return lambda: self._rewrite(memory, summary, measure, run)
        return None

    def _rejudge(
        self, memory: WorkingMemory, measure: Measure, run: "_Run", most: int = REFETCH_TURNS
    ) -> None:
        session = memory.session
        waiting = session.rejudge
        if waiting is None:
            return
        last = min(waiting.to_turn, waiting.from_turn + most - 1)
        turns = self.transcript.turns(session, waiting.from_turn, last)
        try:
            edit = self.judge.of(session).judge(
                session.key, turns, memory.pins, session.pin_rev + 1, measure.count
            )
        except ModelFailedError as error:
            run.rejudging_refused = error.refused_request
            run.model_down = run.model_down or not error.refused_request
            return
        if len(edit.changed) > MAX_PIN_CHANGES and len(turns) > 1:
            self._rejudge(memory, measure, run, most=len(turns) // 2)
            return
        rest = TurnRange(last + 1, waiting.to_turn) if last < waiting.to_turn else None
        self.store.write(
            pin_change(session, edit, sets={"rejudge": rest}, guards={"rejudge": waiting})
        )

    def _rewrite(
        self, memory: WorkingMemory, summary: Summary, measure: Measure, run: "_Run"
    ) -> None:
        run.redone.add(summary.ref)
        order = self._order(memory, (summary,), summary.tokens, summary.level, measure)
        # The new summary may be as long as the old one, so it is measured against its source.
        order = replace(order, replaced_tokens=max(summary.source_tokens, summary.tokens + 1))
        written = self.writer.of(memory.session).write(memory.session.key, order, measure.count)
        run.note(written)
        if written.degraded:
            return
        again = replace(
            summary,
            text=written.text,
            tokens=written.tokens,
            model=written.model,
            prompt_version=written.prompt_version,
            created_at=self.clock(),
            degraded=False,
        )
        self._replace(memory, (summary,), again)
        self._count_summary(written)

    def _count_summary(self, written: WrittenSummary) -> None:
        self.metrics.record({Metric.SUMMARIES: 1, Metric.DEGRADED_SUMMARIES: int(written.degraded)})

    def _settle(self, memory: WorkingMemory) -> None:
        """Tell the sweeper that nothing is due before the session expires.

        Raises `GuardFailedError` if anything changed meanwhile, since that may have left work.
        """
        session = memory.session
        if session.due_at == session.expires_at:
            return
        self.store.write(
            Change(
                key=session.key,
                epoch=session.epoch,
                guards={"revision": session.revision},
                sets={"due_at": session.expires_at, "sweeps": 0},
                visible=False,
            )
        )

    def _ring_archivist(self, session: Session) -> None:
        if self.archive_bell is not None:
            ring_archivist_gently(self.archive_bell, session)


def _asks_for_rebuild(memory: WorkingMemory) -> bool:
    able = memory.session.status in (SessionStatus.LIVE, SessionStatus.REBUILDING)
    return able and memory.session.rebuild


class _Run:
    """What one run has learned: whether the model can be used, and what was redone."""

    def __init__(self) -> None:
        self.model_down = False
        self.rejudging_refused = False
        self.redone: set[SummaryRef] = set()

    def note(self, written: WrittenSummary) -> None:
        """Remember whether the model could be used; what was rejected is not asked again either."""
        self.model_down = self.model_down or written.model_failed
