"""A context by another policy than working memory's own: windows and limits over recent turns.

Such a policy sees the conversation as a plain list of messages. Turns that were folded are read
from the archive, so a window may be larger than working memory; how far back is bounded, and only
as far as the policy can use.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from turnfold.application.ports import Clock
from turnfold.application.read_context import ContextRequest
from turnfold.application.read_transcript import Transcript
from turnfold.application.views import watermark_view
from turnfold.domain.elision import Elision, elide
from turnfold.domain.errors import BudgetTooSmallError
from turnfold.domain.estimators import ExactEstimator
from turnfold.domain.measure import Measure
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.messages import Message, chat_form, split_leading
from turnfold.domain.planner import pending_turns
from turnfold.domain.policies.policy import OVER_BUDGET, PolicyInput, PolicyResult, Reach
from turnfold.domain.policies.registry import PolicyKit, parse_policy
from turnfold.domain.policies.token_limit import TokenLimitPolicy
from turnfold.domain.sessions import TurnRange, gaps
from turnfold.domain.tokens import PER_LIST, count_messages
from turnfold.domain.transcript import sha256_of
from turnfold.domain.turns import Turn

MAX_TURNS = 300
"""The newest turns that a policy may see: more take more reads than an answer has time for."""

FIRST_READ_TURNS = 50
"""How many turns are read at first where a policy's need is known by their age only."""


@dataclass(frozen=True, slots=True)
class _Conversation:
    """Messages with the turn that each belongs to (0 for system messages, None for incoming)."""

    messages: tuple[Message, ...]
    turns: tuple[int | None, ...]
    times: tuple[datetime | None, ...]
    newest_from: int


@dataclass(frozen=True, slots=True)
class ReadPolicyContext:
    """Applies a policy to a session's recent turns. `kit` makes what policies work with."""

    transcript: Transcript
    clock: Clock
    kit: Callable[[WorkingMemory, Measure], PolicyKit]

    def view(
        self,
        memory: WorkingMemory,
        measure: Measure,
        spec: Mapping[str, Any],
        request: ContextRequest,
    ) -> dict[str, Any]:
        """The context as the contract shows it, with what the policy did under `policy`.

        Raises `InvalidPolicyError`, or `BudgetTooSmallError` when what a policy may not drop
        exceeds its budget even after long texts were shortened.
        """
        policy = parse_policy(spec, self.kit(memory, measure))
        now = self.clock()
        turns = self._turns(memory, policy.reach, now)
        conversation = _conversation(memory, turns, request)
        given = PolicyInput(
            messages=conversation.messages,
            times=conversation.times,
            now=now,
            query=request.query,
            strict=True,
            protected_from=conversation.newest_from,
        )
        result = policy.apply(given)
        budgets = [one for one in (_token_budget(spec), request.max_tokens) if one]
        if request.max_tokens:
            result = _within(result, given, request.max_tokens, measure)
        shown, elided = _fitted(result, conversation, min(budgets, default=None), measure)
        what = _Shown(policy.name, turns, conversation, result, shown, elided)
        return _view(memory, measure, request, what)

    def _turns(self, memory: WorkingMemory, reach: Reach, now: datetime) -> tuple[Turn, ...]:
        """The turns that can matter, oldest first."""
        session = memory.session
        newest = session.committed_through
        wanted = MAX_TURNS
        if reach.messages is not None:
            # A turn has two messages at least, and one more is asked for as a reserve.
            wanted = min(MAX_TURNS, reach.messages // 2 + 1)
        if reach.minutes is not None:
            wanted = self._turns_since(memory, now - timedelta(minutes=reach.minutes), wanted)
        turns = self._read(memory, max(1, newest - wanted + 1))
        if reach.first and turns and turns[0].number > 1:
            first = next((turn for turn in memory.turns if turn.number == 1), None)
            turns = (first, *turns) if first else turns
        return turns

    def _turns_since(self, memory: WorkingMemory, since: datetime, most: int) -> int:
        wanted = min(FIRST_READ_TURNS, most)
        while wanted < most:
            oldest = self._read(memory, max(1, memory.session.committed_through - wanted + 1))
            if not oldest or oldest[0].committed_at < since or oldest[0].number == 1:
                break
            wanted = min(2 * wanted, most)
        return wanted

    def _read(self, memory: WorkingMemory, first: int) -> tuple[Turn, ...]:
        """All turns from `first` on: word for word from working memory, else from the archive."""
        known = {turn.number: turn for turn in memory.turns}
        covered = [(number, number) for number in known]
        for run in gaps(covered, memory.session.committed_through):
            if run.to_turn >= first:
                start = max(first, run.from_turn)
                archived = self.transcript.turns(memory.session, start, run.to_turn)
                known.update((turn.number, turn) for turn in archived)
        return tuple(known[number] for number in sorted(known) if number >= first)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What came of a policy."""

    policy: str
    turns: Sequence[Turn]
    conversation: _Conversation
    result: PolicyResult
    messages: tuple[Message, ...]
    elided: tuple[tuple[int, Elision], ...]


def _conversation(
    memory: WorkingMemory, turns: Sequence[Turn], request: ContextRequest
) -> _Conversation:
    leading, incoming = split_leading(request.incoming)
    rows: list[tuple[Message, int | None, datetime | None]] = [
        (chat_form(one), 0, None) for one in leading or memory.profile.system
    ]
    newest_from = len(rows)
    for turn in turns:
        newest_from = len(rows)
        rows += [(chat_form(one), turn.number, turn.committed_at) for one in turn.conversation]
    if incoming:
        newest_from = len(rows)
        rows += [(chat_form(one), None, None) for one in incoming]
    return _Conversation(
        messages=tuple(row[0] for row in rows),
        turns=tuple(row[1] for row in rows),
        times=tuple(row[2] for row in rows),
        newest_from=newest_from,
    )


def _token_budget(spec: Mapping[str, Any]) -> int | None:
    """The budget that a policy counts exactly; an estimated one is the policy's own affair."""
    if spec.get("name") not in ("token_window", "token_limit") or spec.get("token_ratio"):
        return None
    budget = spec.get("max_tokens")
    return budget if isinstance(budget, int) else None


def _within(
    result: PolicyResult, given: PolicyInput, budget: int, measure: Measure
) -> PolicyResult:
    """The result cut to the caller's own budget, its places still those of the input."""
    limit = TokenLimitPolicy(budget, None, ExactEstimator(measure.count))
    newest = given.protected_from or 0
    start = next(
        (at for at, place in enumerate(result.origins) if (place or 0) >= newest),
        len(result.messages),
    )
    cut = limit.apply(replace(given, messages=result.messages, times=None, protected_from=start))
    origins = tuple(None if at is None else result.origins[at] for at in cut.origins)
    return replace(cut, origins=origins, size=result.size, flags=result.flags | cut.flags)


def _fitted(
    result: PolicyResult, conversation: _Conversation, budget: int | None, measure: Measure
) -> tuple[tuple[Message, ...], tuple[tuple[int, Elision], ...]]:
    """The messages, the newest turn's long texts shortened where they alone exceed the budget."""
    total = PER_LIST + count_messages(result.messages, measure.count)
    if budget is None or total <= budget:
        return result.messages, ()
    places = [
        at
        for at, origin in enumerate(result.origins)
        if origin is not None and origin >= conversation.newest_from
    ]
    newest = [result.messages[at] for at in places]
    room = budget - (total - count_messages(newest, measure.count))
    number = conversation.turns[-1] or 0
    shorter = elide(newest, number, room, measure.count) if newest and room > 0 else None
    if shorter is None:
        raise BudgetTooSmallError(total, budget, "what the policy may not drop")
    messages = list(result.messages)
    for at, message in zip(places, shorter[0], strict=True):
        messages[at] = message
    return tuple(messages), tuple((number, part) for part in shorter[1])


def _view(
    memory: WorkingMemory, measure: Measure, request: ContextRequest, shown: _Shown
) -> dict[str, Any]:
    session, conversation = memory.session, shown.conversation
    system, rest = split_leading(shown.messages)
    kept = {conversation.turns[place] for place in shown.result.origins if place is not None} - {
        0,
        None,
    }
    numbers = sorted(number for number in kept if number is not None)
    dropped = gaps([(number, number) for number in numbers], session.committed_through)
    total = PER_LIST + count_messages(shown.messages, measure.count)
    system_tokens = count_messages(system, measure.count)
    flags = sorted(shown.result.flags - ({OVER_BUDGET} if shown.elided else set()))
    return {
        "session_id": session.key.session_id,
        "generation": session.revision,
        "messages": [dict(one) for one in shown.messages],
        "regions": {
            "system": [dict(one) for one in system],
            "head": [],
            "pins": [],
            "window": [],
            "recall": [],
            "tail": [{"turn": number} for number in numbers],
        },
        "tokens": {
            "total": total,
            "budget": request.max_tokens,
            "system": system_tokens,
            "head": 0,
            "pins": 0,
            "window": 0,
            "recall": 0,
            "tail": count_messages(rest, measure.count),
        },
        "dropped": [_range(one) for one in dropped],
        "dropped_pins": [],
        "elided": [
            {"turn": turn, "message": part.message, "characters": part.characters}
            for turn, part in shown.elided
        ],
        "policy": {
            "name": shown.policy,
            "reduced": shown.result.reduced or bool(shown.elided),
            "flags": flags,
            "turns_read": len(shown.turns),
        },
        "cache": {"stable_messages": len(system), "prefix_sha256": sha256_of(list(system))},
        "watermark": watermark_view(session, pending_turns(memory, measure)),
    }


def _range(one: TurnRange) -> dict[str, Any]:
    return {"from_turn": one.from_turn, "to_turn": one.to_turn, "reason": "policy"}
