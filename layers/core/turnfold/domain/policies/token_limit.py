"""The newest messages up to a number of tokens, estimated by characters (Odin's token limit)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from turnfold.domain.estimators import (
    BY_CHARACTERS,
    CHARACTERS_PER_TOKEN,
    CharacterEstimator,
    Estimator,
)
from turnfold.domain.policies.options import Option, OptionKind, above_zero, at_least
from turnfold.domain.policies.policy import PolicyInput, PolicyResult, Reach
from turnfold.domain.policies.token_window import LEAST_MESSAGE_TOKENS, apply_budget

DEFAULT_MAX_TOKENS = 4000


@dataclass(frozen=True, slots=True)
class TokenLimitPolicy:
    """Keeps at most `max_tokens` tokens, of `token_ratio` characters each.

    Without a ratio `estimator` counts. See `apply_budget` for what stays.
    """

    max_tokens: int = DEFAULT_MAX_TOKENS
    token_ratio: float | None = CHARACTERS_PER_TOKEN
    estimator: Estimator = BY_CHARACTERS

    name: ClassVar[str] = "token_limit"
    OPTIONS: ClassVar[tuple[Option, ...]] = (
        Option("max_tokens", OptionKind.WHOLE),
        Option("token_ratio", OptionKind.NUMBER, nullable=True),
    )

    def __post_init__(self) -> None:
        """Raise `InvalidPolicyError` for a maximum below 1 or a ratio that is not above 0."""
        at_least(self.name, "max_tokens", self.max_tokens, 1)
        if self.token_ratio is not None:
            above_zero(self.name, "token_ratio", self.token_ratio)

    @property
    def reach(self) -> Reach:
        """See `Policy`. By a ratio an empty message costs nothing, so nothing is out of reach."""
        if self.token_ratio is not None:
            return Reach()
        return Reach(messages=self.max_tokens // LEAST_MESSAGE_TOKENS + 1)

    def options(self) -> dict[str, Any]:
        """See `Policy`."""
        return {"max_tokens": self.max_tokens, "token_ratio": self.token_ratio}

    def apply(self, given: PolicyInput) -> PolicyResult:
        """See `Policy`."""
        by_ratio = self.token_ratio is not None
        estimator = CharacterEstimator(self.token_ratio or 1.0) if by_ratio else self.estimator
        return apply_budget(given, self.max_tokens, estimator)
