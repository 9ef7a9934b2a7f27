"""Reading a context: one read of working memory, then pure assembly."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from turnfold.application.metrics import NO_METRICS, Metrics
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.models import TokenCounter
from turnfold.application.read_memory import require_memory
from turnfold.application.views import context_view, elided_view, working_memory_view
from turnfold.domain.context import NOTHING_RECALLED, Context, Recalled, assemble
from turnfold.domain.elision import Elision, elide
from turnfold.domain.errors import BudgetTooSmallError, ContextTooLargeError
from turnfold.domain.layouts import PLAIN, Layout
from turnfold.domain.limits import MAX_CONTEXT_BYTES
from turnfold.domain.measure import Measure
from turnfold.domain.measurements import Metric
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.messages import Message, chat_form, split_leading
from turnfold.domain.policies.registry import PROGRESSIVE
from turnfold.domain.recalled import RecalledTurn
from turnfold.domain.sessions import SessionKey
from turnfold.domain.summaries import Summary
from turnfold.domain.tokens import PER_LIST, count_messages
from turnfold.domain.transcript import canonical

if TYPE_CHECKING:
    from turnfold.application.read_policy_context import ReadPolicyContext
    from turnfold.application.recall import Found

DEFAULT_RECALL = 5


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What a context is asked for: its budget, whose tokens those are, and what is appended.

    System messages before the incoming ones stand in for the session's own, as in a chat. With a
    `query`, at most `recall` turns that answer it are quoted. `policy` stands in for the session's
    own. The first `begun` of the incoming messages are those of the open turn: kept here, so they
    may be shortened.
    """

    max_tokens: int | None = None
    model: str | None = None
    incoming: Sequence[Message] = ()
    query: str | None = None
    recall: int = DEFAULT_RECALL
    policy: Mapping[str, Any] | None = None
    begun: int = 0
    layout: Layout = PLAIN


@dataclass(frozen=True, slots=True)
class ReadContext:
    """Assembles contexts."""

    store: MemoryStore
    counter: TokenCounter
    metrics: Metrics = NO_METRICS
    recall: "Callable[[Sequence[WorkingMemory], str, int], Found] | None" = None
    by_policy: "Callable[[], ReadPolicyContext] | None" = None

    def memory(self, key: SessionKey) -> WorkingMemory:
        """The working memory itself. Raises `SessionNotFoundError`."""
        return require_memory(self.store, key)

    def measure(self, memory: WorkingMemory, model: str | None = None) -> Measure:
        """Counts by the asked model's encoding, else by the session's."""
        chosen = model or memory.session.settings.model
        return Measure(lambda text: self.counter.count(text, chosen))

    def assemble(self, memory: WorkingMemory, request: ContextRequest) -> Context:
        """Working memory's own context. Raises `BudgetTooSmallError`; with a query `StoreError`."""
        return self._assembled(memory, self.measure(memory, request.model), request)

    def messages(self, memory: WorkingMemory, request: ContextRequest) -> tuple[Message, ...]:
        """The messages alone, by the session's policy or the asked one. Raises as `view` does."""
        if _policy(memory, request)["name"] == PROGRESSIVE:
            measure = self.measure(memory, request.model)
            request, _ = _open_turn_within(request.max_tokens, memory, request, measure)
            return self._assembled(memory, measure, request).messages
        return tuple(self.view(memory, request)["messages"])

    def alone(self, request: ContextRequest, default_model: str | None) -> tuple[Message, ...]:
        """The messages where there is no session: the incoming ones.

        Counted by the asked model, else by the default one. Raises `BudgetTooSmallError`.
        """
        messages = request.layout.spoken([chat_form(one) for one in request.incoming])
        budget = request.max_tokens
        if budget is not None:
            model = request.model or default_model
            needed = PER_LIST + count_messages(
                messages, lambda text: self.counter.count(text, model)
            )
            if needed > budget:
                raise BudgetTooSmallError(needed, budget, "the messages about to be sent")
        return messages

    def view(self, memory: WorkingMemory, request: ContextRequest) -> dict[str, Any]:
        """The context as the contract shows it.

        Raises `BudgetTooSmallError`, or `ContextTooLargeError` when it does not fit an answer; with
        a query also `StoreError`.
        """
        measure = self.measure(memory, request.model)
        policy = _policy(memory, request)
        if policy["name"] != PROGRESSIVE and self.by_policy:
            by_policy = self.by_policy()
            budget = by_policy.budget(policy, request)
            request, cut = _open_turn_within(budget, memory, request, measure)
            view = by_policy.view(memory, measure, policy, request)
        else:
            request, cut = _open_turn_within(request.max_tokens, memory, request, measure)
            view = context_view(memory, self._assembled(memory, measure, request), measure)
        number = memory.session.next_turn
        view["elided"] += [elided_view(number, one) for one in cut]
        size = len(canonical(view))
        if size > MAX_CONTEXT_BYTES:
            raise ContextTooLargeError(
                f"the context has {size} bytes, an answer may have {MAX_CONTEXT_BYTES};"
                " ask for less with max_tokens"
            )
        return view

    def working_memory(self, key: SessionKey) -> tuple[WorkingMemory, dict[str, Any]]:
        """All of working memory, for people."""
        memory = self.memory(key)
        return memory, working_memory_view(memory, self.measure(memory))

    def _assembled(
        self, memory: WorkingMemory, measure: Measure, request: ContextRequest
    ) -> Context:
        leading, conversation = split_leading(request.incoming)
        context = assemble(
            memory,
            measure,
            budget=request.max_tokens,
            incoming=conversation,
            system=leading or None,
            recall=self._recalled(memory, request),
            layout=request.layout,
        )
        folded = [one for one in context.window if isinstance(one, Summary)]
        self.metrics.record(
            {
                Metric.CONTEXTS: 1,
                Metric.CONTEXT_TOKENS: context.tokens.total,
                Metric.CONTEXT_TOKENS_SAVED: sum(one.source_tokens - one.tokens for one in folded),
            }
        )
        return context

    def _recalled(self, memory: WorkingMemory, request: ContextRequest) -> Recalled:
        """What a search finds for the query; nothing is read where none is asked for.

        Some hits may stand in the context word for word, so as many more are looked for.
        """
        if self.recall is None or not request.query or not request.recall:
            return NOTHING_RECALLED
        found = self.recall([memory], request.query, request.recall + len(memory.turns))
        return Recalled([RecalledTurn(one.turn, one.score) for one in found.turns], request.recall)


def _open_turn_within(
    budget: int | None, memory: WorkingMemory, request: ContextRequest, measure: Measure
) -> tuple[ContextRequest, Sequence[Elision]]:
    """The request with the open turn's long texts shortened to a budget, and what was cut.

    Where that is not enough, it stays as it is: the assembly then says what is needed.
    """
    leading, conversation = split_leading(request.incoming)
    begun = max(0, request.begun - len(leading))
    if budget is None or not begun:
        return request, ()
    others = (*(leading or memory.profile.system), *conversation[begun:])
    room = budget - PER_LIST - count_messages(others, measure.count)
    messages = [chat_form(one) for one in conversation[:begun]]
    if room <= 0 or count_messages(messages, measure.count) <= room:
        return request, ()
    shorter = elide(messages, None, room, measure.count)
    if shorter is None:
        return request, ()
    incoming = (*leading, *shorter[0], *conversation[begun:])
    return replace(request, incoming=incoming), shorter[1]


def _policy(memory: WorkingMemory, request: ContextRequest) -> Mapping[str, Any]:
    return memory.session.settings.policy if request.policy is None else request.policy
