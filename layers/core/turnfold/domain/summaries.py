"""Summaries: what stands for turns that left working memory, and where it came from."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from turnfold.domain.sessions import SummaryRef


class SummaryKind(StrEnum):
    """How much a summary stands for."""

    ROUND = "round_summary"
    HISTORY = "history_summary"


@dataclass(frozen=True, slots=True)
class Summary:
    """One window entry that replaced turns `from_turn` to `to_turn`, both inclusive.

    `level` is 1 for a round summary and one more than its highest source for a history summary.
    `tokens` counts `text` by the session's encoding. `source_tokens` is what the original turns
    cost. `degraded` summaries were made without a model and are redone when one is back.
    """

    from_turn: int
    to_turn: int
    level: int
    text: str
    tokens: int
    source_tokens: int
    model: str
    prompt_version: str
    created_at: datetime
    degraded: bool = False

    @property
    def kind(self) -> SummaryKind:
        """A round summary stands for one turn, a history summary for several entries."""
        return SummaryKind.ROUND if self.level == 1 else SummaryKind.HISTORY

    @property
    def ref(self) -> SummaryRef:
        """How the manifest names it."""
        return SummaryRef(self.from_turn, self.to_turn, self.level)
