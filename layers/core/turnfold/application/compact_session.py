"""Compacting one session: read, plan, do one step, and again until there is nothing to do.

The doorbell's message carries no work. What is pending is read from the store each time, so a lost,
repeated or reordered message does no harm; two compactors of one session are told apart by the
guards on the watermarks and revisions, and the slower one reads again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from turnfold.application.compact_pins import CompactPins
from turnfold.application.compact_window import CompactWindow
from turnfold.application.compaction_run import CompactionRun
from turnfold.application.judge_pins import PinJudge
from turnfold.application.metrics import NO_METRICS, Metrics
from turnfold.application.ports.bells import ArchiveBell, Doorbell
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.memory import Change, MemoryStore
from turnfold.application.ports.models import TokenCounter
from turnfold.application.read_transcript import Transcript
from turnfold.application.ringing import ring_archivist_gently, ring_gently
from turnfold.application.summary_writer import SummaryWriter
from turnfold.domain.errors import GuardFailedError, StoreUnavailableError
from turnfold.domain.measure import Measure
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.planner import Fold, FoldPins, JudgeTurns, Step, next_step
from turnfold.domain.sessions import Profile, Session, SessionKey, SessionStatus

MAX_CONFLICTS = 20
"""Lost guards in one run; more mean that something is wrong, and the bell rings again."""

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
        run = CompactionRun()
        for _ in range(MAX_CONFLICTS):
            try:
                return self._work(key, ring, seconds_left, run)
            except GuardFailedError:
                continue
        raise StoreUnavailableError("other writers were faster too often")

    def _work(
        self, key: SessionKey, ring: Ring, seconds_left: Callable[[], float], run: CompactionRun
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

    def _do(self, memory: WorkingMemory, step: Step, measure: Measure, run: CompactionRun) -> None:
        """Do one step of the plan. Raises `GuardFailedError` if another writer was faster."""
        match step:
            case JudgeTurns():
                self._pins.judge(memory, step.turns, measure, run)
            case FoldPins():
                self._pins.fold(memory, step.pins, measure)
            case Fold():
                self._window.fold(memory, step, measure, run)

    def _redo(
        self, memory: WorkingMemory, measure: Measure, run: CompactionRun
    ) -> Callable[[], None] | None:
        """The next piece of degraded work to do again, if the model may be back.

        Each is tried once in a run, and none once the model has failed in it. A model that refuses
        one request may take the next.
        """
        if self.writer.answers is None or run.model_down:
            return None
        waiting = memory.session.rejudge
        if waiting and not run.rejudging_refused:
            return lambda: self._pins.judge_again(memory, waiting, measure, run)
        for summary in memory.summaries:
            if summary.degraded and summary.ref not in run.redone:
                return lambda: self._window.rewrite(memory, summary, measure, run)
        return None

    @property
    def _pins(self) -> CompactPins:
        return CompactPins(self.store, self.transcript, self.judge, self.clock, self.metrics)

    @property
    def _window(self) -> CompactWindow:
        return CompactWindow(self.store, self.transcript, self.writer, self.clock, self.metrics)

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
