"""What a policy is: it chooses which messages of a conversation go into a prompt.

A policy never changes a message nor the caller's list, keeps the order, and gives the same answer
again when it is applied to its own answer. What it gives is valid for providers: a tool call and
its results stay or go together, orphaned results and requests that can no longer be answered are
left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from turnfold.domain.messages import Message

OVER_LIMIT = "over_limit"
"""What must be kept has more messages than the limit."""
OVER_BUDGET = "over_budget"
"""What must be kept costs more tokens than the budget."""
REPAIRED = "repaired"
"""Orphaned tool results or unanswered requests were left out."""
SUMMARISED = "summarised"
SUMMARY_FAILED = "summary_failed"
"""A summary was wanted and could not be had, so nothing was summarised."""
ESTIMATED_RELEVANCE = "estimated_relevance"
"""Embeddings could not be had, so relevance was judged by words."""


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """What a policy looks at.

    `times` tell when each message was received, None where that is unknown; without them a
    message's `created_at` counts. `query` is what the next answer is about; without it the newest
    user message is. With `strict` the answer is meant for a provider as it is: after the system
    messages it begins with a user message, and the newest turn is never dropped though it may be
    finished. `protected_from` says where the newest turn begins, if not with the newest user
    message.
    """

    messages: Sequence[Message]
    times: Sequence[datetime | None] | None = None
    now: datetime | None = None
    query: str | None = None
    strict: bool = False
    protected_from: int | None = None


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """What a policy chose.

    `origins` tell for each message its place in the input, or None for a message that the policy
    made (a summary). `size` is the number of messages of the input.
    """

    messages: tuple[Message, ...]
    origins: tuple[int | None, ...]
    size: int
    flags: frozenset[str] = frozenset()

    @property
    def dropped(self) -> tuple[int, ...]:
        """The places of the input that are not among the origins, ascending."""
        kept = set(self.origins)
        return tuple(place for place in range(self.size) if place not in kept)

    @property
    def reduced(self) -> bool:
        """Whether anything was left out or replaced."""
        return sum(origin is not None for origin in self.origins) < self.size


@dataclass(frozen=True, slots=True)
class Reach:
    """How much of a conversation can matter to a policy.

    `messages` is the number of its newest messages beyond which nothing is kept, None if there is
    no such number; `minutes` likewise bounds their age. `first` tells that the first user message
    matters too.
    """

    messages: int | None = None
    minutes: float | None = None
    first: bool = False


class Policy(Protocol):
    """A policy. Own classes need only this, and a name in the registry."""

    @property
    def name(self) -> str:
        """The name that it is registered by."""
        ...

    @property
    def reach(self) -> Reach:
        """How much of a conversation has to be read for it."""
        ...

    def options(self) -> Mapping[str, Any]:
        """Its options by name, as JSON."""
        ...

    def apply(self, given: PolicyInput) -> PolicyResult:
        """The messages that it chooses."""
        ...


def process(policy: Policy, messages: Sequence[Message]) -> list[Message]:
    """The messages that a policy chooses of a conversation, without further ado."""
    return list(policy.apply(PolicyInput(messages)).messages)
