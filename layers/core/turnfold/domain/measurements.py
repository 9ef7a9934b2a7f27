"""What is measured while the service works: numbers of events, times and tokens, and of nobody."""

from enum import StrEnum


class Metric(StrEnum):
    """A number that says how the service does. The value is the name that an operator sees."""

    COMMITS = "Commits"
    COMMIT_LATENCY = "CommitLatency"
    CONTEXTS = "Contexts"
    CONTEXT_TOKENS = "ContextTokens"
    CONTEXT_TOKENS_SAVED = "ContextTokensSaved"
    """Tokens of the turns that summaries stand for, less those of the summaries."""
    COMPACTION_LAG = "CompactionLag"
    """From a turn's commit until it was judged in the background."""
    SUMMARIES = "Summaries"
    DEGRADED_SUMMARIES = "DegradedSummaries"
    OVERDUE_SESSIONS = "OverdueSessions"
    """Sessions that a sweep had to ring for."""
    MODEL_CALLS = "ModelCalls"
    MODEL_FAILURES = "ModelFailures"
    MODEL_INPUT_TOKENS = "ModelInputTokens"
    MODEL_OUTPUT_TOKENS = "ModelOutputTokens"

    @property
    def unit(self) -> str:
        """The unit, in CloudWatch's words."""
        return _UNITS.get(self, "Count")


_UNITS = {Metric.COMMIT_LATENCY: "Milliseconds", Metric.COMPACTION_LAG: "Seconds"}
