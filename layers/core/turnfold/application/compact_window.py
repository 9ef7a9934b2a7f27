"""The steps of a compaction that are about the window: folding entries into summaries.

Each is one guarded write. Raises `GuardFailedError` if another writer was faster, `StoreError`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from turnfold.application.compaction_run import CompactionRun
from turnfold.application.metrics import Metrics
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.memory import Change, MemoryStore
from turnfold.application.read_transcript import Transcript
from turnfold.application.summary_writer import SummaryOrder, SummaryWriter, WrittenSummary
from turnfold.domain.measure import Measure
from turnfold.domain.measurements import Metric
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.planner import Fold
from turnfold.domain.regions import Entry
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn

REFETCH_TURNS = 12
REFETCH_TOKENS = 8000
"""A history summary is made anew from its original turns when they are few enough to fetch and
read; else the summaries themselves are folded."""


@dataclass(frozen=True, slots=True)
class CompactWindow:
    """Folds entries of the window."""

    store: MemoryStore
    transcript: Transcript
    writer: SummaryWriter
    clock: Clock
    metrics: Metrics

    def fold(self, memory: WorkingMemory, step: Fold, measure: Measure, run: CompactionRun) -> None:
        """Put one summary in the place of the entries of a step."""
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
        self._count(written)

    def rewrite(
        self, memory: WorkingMemory, summary: Summary, measure: Measure, run: CompactionRun
    ) -> None:
        """Write a degraded summary anew, from its source; it stays if the model fails again."""
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
        self._count(written)

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
        manifest = tuple(one.ref for one in live)
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

    def _count(self, written: WrittenSummary) -> None:
        self.metrics.record({Metric.SUMMARIES: 1, Metric.DEGRADED_SUMMARIES: int(written.degraded)})
