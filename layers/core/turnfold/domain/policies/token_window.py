"""The newest messages up to a number of tokens, by any estimator."""

from dataclasses import dataclass
from typing import Any, ClassVar

from turnfold.domain.estimators import Estimator
from turnfold.domain.policies.draft import Draft
from turnfold.domain.policies.options import Option, OptionKind, at_least
from turnfold.domain.policies.policy import OVER_BUDGET, PolicyInput, PolicyResult, Reach

LEAST_MESSAGE_TOKENS = 4
"""No message costs less by the exact count: 3 for itself and at least 1 for its role."""


def apply_budget(given: PolicyInput, max_tokens: int, estimator: Estimator) -> PolicyResult:
    """The newest messages that cost at most `max_tokens`; the oldest leave first.

    So choosing ends with the first unit, from new to old, that does not fit. System messages are
    paid for first. The newest message and an unfinished turn's question stay; when what stays costs
    more than the budget, the result is flagged "over_budget".
    """
    draft = Draft(given)

    def cost(places: tuple[int, ...]) -> int:
        return sum(estimator.message(given.messages[place]) for place in places)

    fits = draft.shed(
        range(len(draft.units)),
        lambda unit: cost(unit.places),
        max_tokens - estimator.list_tokens,
        also_protected=draft.newest_unit(),
    )
    if not fits:
        draft.flags.add(OVER_BUDGET)
    return draft.result()


@dataclass(frozen=True, slots=True)
class TokenWindowPolicy:
    """Keeps at most `max_tokens` tokens by `estimator` (LangChain4j's token window)."""

    max_tokens: int
    estimator: Estimator

    name: ClassVar[str] = "token_window"
    OPTIONS: ClassVar[tuple[Option, ...]] = (Option("max_tokens", OptionKind.WHOLE),)

    def __post_init__(self) -> None:
        """Raise `InvalidPolicyError` for a maximum below 1."""
        at_least(self.name, "max_tokens", self.max_tokens, 1)

    @property
    def reach(self) -> Reach:
        """See `Policy`."""
        return Reach(messages=self.max_tokens // LEAST_MESSAGE_TOKENS + 1)

    def options(self) -> dict[str, Any]:
        """See `Policy`."""
        return {"max_tokens": self.max_tokens}

    def apply(self, given: PolicyInput) -> PolicyResult:
        """See `Policy`."""
        return apply_budget(given, self.max_tokens, self.estimator)
