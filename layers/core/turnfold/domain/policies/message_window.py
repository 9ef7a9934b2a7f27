"""The newest messages up to a number, system messages counted (LangChain4j's message window)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from turnfold.domain.policies.draft import Draft
from turnfold.domain.policies.options import Option, OptionKind, at_least
from turnfold.domain.policies.policy import OVER_LIMIT, PolicyInput, PolicyResult, Reach


@dataclass(frozen=True, slots=True)
class MessageWindowPolicy:
    """Keeps at most `max_messages` messages; the oldest leave first, tool exchanges whole.

    System messages, the newest message and an unfinished turn's question stay; when they alone are
    more than the maximum, the result is flagged "over_limit".
    """

    max_messages: int

    name: ClassVar[str] = "message_window"
    OPTIONS: ClassVar[tuple[Option, ...]] = (Option("max_messages", OptionKind.WHOLE),)

    def __post_init__(self) -> None:
        """Raise `InvalidPolicyError` for a maximum below 1."""
        at_least(self.name, "max_messages", self.max_messages, 1)

    @property
    def reach(self) -> Reach:
        """See `Policy`."""
        return Reach(messages=self.max_messages)

    def options(self) -> dict[str, Any]:
        """See `Policy`."""
        return {"max_messages": self.max_messages}

    def apply(self, given: PolicyInput) -> PolicyResult:
        """See `Policy`."""
        draft = Draft(given)
        fits = draft.shed(
            range(len(draft.units)),
            lambda unit: len(unit.places),
            self.max_messages,
            also_protected=draft.newest_unit(),
        )
        if not fits:
            draft.flags.add(OVER_LIMIT)
        return draft.result()
