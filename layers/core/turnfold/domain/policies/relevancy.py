"""The messages that bear on the question, by a score from outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from turnfold.domain.errors import InvalidPolicyError, ModelError
from turnfold.domain.messages import Message, call_name_and_input, content_texts, tool_calls
from turnfold.domain.policies.draft import Draft
from turnfold.domain.policies.lexical import BY_WORDS
from turnfold.domain.policies.options import Option, OptionKind, at_least
from turnfold.domain.policies.policy import ESTIMATED_RELEVANCE, PolicyInput, PolicyResult, Reach
from turnfold.domain.policies.units import Kind

DEFAULT_MIN_SCORE = 0.7
DEFAULT_MAX_MESSAGES = 10


class Relevance(Protocol):
    """Says how much texts have to do with a question."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A score for each text, from 0 (nothing) to 1. Raises `ModelError` if it has none."""
        ...


@dataclass(frozen=True, slots=True)
class RelevancyPolicy:
    """Keeps messages that score at least `min_relevance_score`, at most `max_messages` of them.

    The best scores win, the newer of two equal ones; the order stays that of time. System messages
    and the question itself (the newest user message) stay and are not counted. A tool exchange
    scores as its best message. For a provider (`strict`) turns are judged as wholes, so that an
    answer keeps its question. When embeddings cannot be had, words decide, and the result is
    flagged.
    """

    min_relevance_score: float = DEFAULT_MIN_SCORE
    max_messages: int = DEFAULT_MAX_MESSAGES
    relevance: Relevance = BY_WORDS

    name: ClassVar[str] = "relevancy"
    OPTIONS: ClassVar[tuple[Option, ...]] = (
        Option("min_relevance_score", OptionKind.NUMBER),
        Option("max_messages", OptionKind.WHOLE),
    )

    def __post_init__(self) -> None:
        """Raise `InvalidPolicyError` for a score outside 0 to 1 or a maximum below 1."""
        at_least(self.name, "max_messages", self.max_messages, 1)
        if not 0 <= self.min_relevance_score <= 1:
            raise InvalidPolicyError(f"{self.name}: min_relevance_score must be from 0 to 1")

    @property
    def reach(self) -> Reach:
        """See `Policy`."""
        return Reach()

    def options(self) -> dict[str, Any]:
        """See `Policy`."""
        return {
            "min_relevance_score": self.min_relevance_score,
            "max_messages": self.max_messages,
        }

    def apply(self, given: PolicyInput) -> PolicyResult:
        """See `Policy`."""
        draft = Draft(given)
        spared = draft.protected | frozenset(draft.newest.rest)
        groups = [group for group in _groups(draft) if not spared.issuperset(group)]
        query = given.query or _newest_question(draft)
        if not groups or not query:
            return draft.result()
        scored = list(enumerate(self._scores(draft, groups, query)))
        scored.sort(key=lambda pair: (-pair[1], -pair[0]))
        room = self.max_messages
        for index, score in scored:
            size = sum(len(draft.units[at].places) for at in groups[index])
            if score >= self.min_relevance_score and size <= room:
                room -= size
                continue
            for at in groups[index]:
                draft.kept[at] = False
        return draft.result()

    def _scores(self, draft: Draft, groups: Sequence[Sequence[int]], query: str) -> list[float]:
        texts: list[str] = []
        owners: list[int] = []
        for index, group in enumerate(groups):
            for at in group:
                for message in draft.messages_of(draft.units[at]):
                    texts.append(message_text(message))
                    owners.append(index)
        try:
            scores = self.relevance.scores(query, texts)
        except ModelError:
            draft.flags.add(ESTIMATED_RELEVANCE)
            scores = BY_WORDS.scores(query, texts)
        best = [0.0] * len(groups)
        for owner, score in zip(owners, scores, strict=True):
            best[owner] = max(best[owner], score)
        return best


def message_text(message: Message) -> str:
    """All words of a message, those of its tool calls included."""
    calls = (part for call in tool_calls(message) for part in call_name_and_input(call))
    return "\n".join((*content_texts(message), *calls))


def _newest_question(draft: Draft) -> str:
    for unit in reversed(draft.units):
        if unit.kind is Kind.USER:
            return message_text(draft.given.messages[unit.places[0]])
    return ""


def _groups(draft: Draft) -> list[list[int]]:
    """What is judged together: a unit, or for a provider a user message and all that follows it."""
    groups: list[list[int]] = []
    for at, unit in enumerate(draft.units):
        if unit.kind is Kind.FIXED:
            continue
        begins = not draft.given.strict or unit.kind is Kind.USER or at == draft.newest.start
        if begins or not groups:
            groups.append([])
        groups[-1].append(at)
    return groups
