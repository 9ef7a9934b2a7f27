"""A number of messages, the first user message kept, some kinds dropped first (Odin)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from turnfold.domain.errors import InvalidPolicyError
from turnfold.domain.policies.draft import Draft
from turnfold.domain.policies.options import Option, OptionKind, at_least
from turnfold.domain.policies.policy import OVER_LIMIT, PolicyInput, PolicyResult, Reach
from turnfold.domain.policies.units import Kind, Unit

DEFAULT_MAX_COUNT = 10
TOOL = "tool"
_KINDS = {TOOL: Kind.EXCHANGE, "assistant": Kind.ASSISTANT, "user": Kind.USER}
_SPELLINGS = {"tools": TOOL, "tool_call": TOOL, "tool_calls": TOOL, "tool_exchange": TOOL}


@dataclass(frozen=True, slots=True)
class LimitCountPolicy:
    """Keeps at most `max_count` messages beside the system messages, which are not counted.

    What leaves first are the kinds named by `priority_removal` ("tool", "assistant", "user") in
    that order, oldest first, and only until the rest fits; then the oldest. The first user message
    stays if `keep_first_user_message`; the newest message and an unfinished turn's question always
    stay. When what stays is more than the limit, the result is flagged "over_limit".
    """

    max_count: int = DEFAULT_MAX_COUNT
    keep_first_user_message: bool = True
    priority_removal: Sequence[str] = (TOOL,)

    name: ClassVar[str] = "limit_count"
    OPTIONS: ClassVar[tuple[Option, ...]] = (
        Option("max_count", OptionKind.WHOLE),
        Option("keep_first_user_message", OptionKind.FLAG),
        Option("priority_removal", OptionKind.WORDS),
    )

    def __post_init__(self) -> None:
        """Raise `InvalidPolicyError` for a limit below 1 or a kind that does not exist."""
        at_least(self.name, "max_count", self.max_count, 1)
        if any(_SPELLINGS.get(one, one) not in _KINDS for one in self.priority_removal):
            allowed = ", ".join(_KINDS)
            raise InvalidPolicyError(f"{self.name}: priority_removal may hold {allowed}")

    @property
    def reach(self) -> Reach:
        """See `Policy`. Kinds that leave first make room for any number of older messages."""
        messages = None if self.priority_removal else self.max_count
        return Reach(messages=messages, first=self.keep_first_user_message)

    def options(self) -> dict[str, Any]:
        """See `Policy`."""
        return {
            "max_count": self.max_count,
            "keep_first_user_message": self.keep_first_user_message,
            "priority_removal": list(self.priority_removal),
        }

    def apply(self, given: PolicyInput) -> PolicyResult:
        """See `Policy`."""
        draft = Draft(given)
        kept = draft.newest_unit()
        if self.keep_first_user_message:
            users = (at for at, unit in enumerate(draft.units) if unit.kind is Kind.USER)
            kept |= {at for at in (next(users, None),) if at is not None}
        fits = draft.shed(
            self._order(draft.units),
            lambda unit: 0 if unit.kind is Kind.FIXED else len(unit.places),
            self.max_count,
            also_protected=kept,
        )
        if not fits:
            draft.flags.add(OVER_LIMIT)
        return draft.result()

    def _order(self, units: Sequence[Unit]) -> list[int]:
        ranks = {
            _KINDS[_SPELLINGS.get(one, one)]: rank
            for rank, one in reversed(list(enumerate(self.priority_removal)))
        }
        last = len(ranks)
        return sorted(range(len(units)), key=lambda at: ranks.get(units[at].kind, last))
