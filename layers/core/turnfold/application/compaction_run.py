"""What one run of a compaction learns on its way."""

from dataclasses import dataclass, field

from turnfold.application.summary_writer import WrittenSummary
from turnfold.domain.sessions import SummaryRef


@dataclass(slots=True)
class CompactionRun:
    """Whether the model can be used, and which summaries were written, well or not."""

    model_down: bool = False
    rejudging_refused: bool = False
    redone: set[SummaryRef] = field(default_factory=set)

    def note(self, written: WrittenSummary) -> None:
        """Remember whether the model could be used; what was rejected is not asked again either."""
        self.model_down = self.model_down or written.model_failed
