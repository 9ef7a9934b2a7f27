"""Older messages folded into one summary once there are too many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from turnfold.domain.memory_fence import CLOSING, OPENING, fenced
from turnfold.domain.messages import MEMORY_NAME, Message, content_texts
from turnfold.domain.policies.draft import Draft
from turnfold.domain.policies.options import Option, OptionKind, at_least
from turnfold.domain.policies.policy import (
    SUMMARISED,
    SUMMARY_FAILED,
    PolicyInput,
    PolicyResult,
    Reach,
)
from turnfold.domain.policies.units import Kind, places_of

DEFAULT_THRESHOLD = 15
DEFAULT_KEEP_RECENT = 5

SUMMARY_TITLE = "Earlier messages, summarised:"


class Condenser(Protocol):
    """Writes a summary that may be trusted to stand for messages."""

    def condense(self, messages: Sequence[Message], earlier: Sequence[str]) -> str | None:
        """A valid summary of earlier summaries and the messages after them; None if there is none.

        It is never blank and shorter than what it stands for. The messages are whole units.
        """
        ...


@dataclass(frozen=True, slots=True)
class SummarizationPolicy:
    """Replaces all but the newest `keep_recent` messages by a summary, above a threshold.

    Below or at `summarize_threshold` messages (system messages not counted) nothing changes. The
    border moves back so that tool exchanges stay whole; neither an unfinished turn nor, for a
    provider (`strict`), a turn from its question on is torn apart. The summary is a message of
    `role` that stands before the recent ones; an earlier summary is taken up in it. Without a
    usable summary nothing changes, and the result is flagged "summary_failed".
    """

    summarize_threshold: int = DEFAULT_THRESHOLD
    keep_recent: int = DEFAULT_KEEP_RECENT
    condenser: Condenser | None = None
    role: str = "system"

    name: ClassVar[str] = "summarization"
    OPTIONS: ClassVar[tuple[Option, ...]] = (
        Option("summarize_threshold", OptionKind.WHOLE, aliases=("threshold",)),
        Option("keep_recent", OptionKind.WHOLE),
    )

    def __post_init__(self) -> None:
        """Raise `InvalidPolicyError` for numbers below 1."""
        at_least(self.name, "summarize_threshold", self.summarize_threshold, 1)
        at_least(self.name, "keep_recent", self.keep_recent, 1)

    @property
    def reach(self) -> Reach:
        """See `Policy`."""
        return Reach()

    def options(self) -> dict[str, Any]:
        """See `Policy`."""
        return {"summarize_threshold": self.summarize_threshold, "keep_recent": self.keep_recent}

    def apply(self, given: PolicyInput) -> PolicyResult:
        """See `Policy`."""
        draft = Draft(given)
        spoken = [at for at in range(len(draft.units)) if not draft.is_fixed(at)]
        if sum(len(draft.units[at].places) for at in spoken) <= self.summarize_threshold:
            return draft.result()
        border = self._border(draft, spoken)
        folded = [at for at in spoken if at < border]
        if not folded:
            return draft.result()
        places = places_of(draft.units[at] for at in folded)
        earlier = [at for at in range(border) if self._is_summary(draft, at)]
        text = self._summary(draft, places, earlier)
        if text is None:
            draft.flags.add(SUMMARY_FAILED)
            return draft.result()
        draft.flags.add(SUMMARISED)
        for at in (*folded, *earlier):
            draft.kept[at] = False
        return self._with_summary(draft, border, text)

    def _border(self, draft: Draft, spoken: Sequence[int]) -> int:
        """The first unit that stays."""
        border, recent = len(draft.units), 0
        for at in reversed(spoken):
            if recent >= self.keep_recent:
                break
            recent += len(draft.units[at].places)
            border = at
        border = min(border, draft.newest.start)
        if draft.given.strict:
            users = [at for at in spoken if draft.units[at].kind is Kind.USER and at <= border]
            border = users[-1] if users else 0
        return border

    def _is_summary(self, draft: Draft, at: int) -> bool:
        message = draft.given.messages[draft.units[at].places[0]]
        return message.get("name") == MEMORY_NAME and summary_inside(message) is not None

    def _summary(self, draft: Draft, places: Sequence[int], earlier: Sequence[int]) -> str | None:
        if self.condenser is None:
            return None
        messages = draft.given.messages
        before = [
            inside
            for at in earlier
            if (inside := summary_inside(messages[draft.units[at].places[0]]))
        ]
        return self.condenser.condense([messages[place] for place in places], before)

    def _with_summary(self, draft: Draft, border: int, text: str) -> PolicyResult:
        result = draft.result()
        first = draft.units[border].places[0]
        at = sum(origin is not None and origin < first for origin in result.origins)
        message = summary_message(self.role, text)
        return PolicyResult(
            messages=(*result.messages[:at], message, *result.messages[at:]),
            origins=(*result.origins[:at], None, *result.origins[at:]),
            size=result.size,
            flags=result.flags,
        )


def summary_message(role: str, text: str) -> dict[str, str]:
    """A summary as fenced data, marked as memory so that it is never stored as a user's words."""
    content = f"{OPENING}\n{SUMMARY_TITLE}\n{fenced(text)}\n{CLOSING}"
    return {"role": role, "name": MEMORY_NAME, "content": content}


def summary_inside(message: Message) -> str | None:
    """The summary of a message that `summary_message` made; None for any other."""
    content = "".join(content_texts(message))
    start, end = f"{OPENING}\n{SUMMARY_TITLE}\n", f"\n{CLOSING}"
    if content.startswith(start) and content.endswith(end):
        return content[len(start) : -len(end)]
    return None
