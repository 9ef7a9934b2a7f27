"""A context by another policy than working memory's own: windows and limits over recent turns.

Such a policy sees the conversation as a plain list of messages. Turns that were folded are read
from the archive, so a window may be larger than working memory; how far back is bounded, and only
as far as the policy can use.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any

from turnfold.application.ports.clock import Clock
from turnfold.application.read_context import ContextRequest
from turnfold.application.read_transcript import Transcript
from turnfold.application.views import elided_view, watermark_view
from turnfold.domain.elision import Elision
from turnfold.domain.errors import BudgetTooSmallError
from turnfold.domain.layouts import PLAIN
from turnfold.domain.measure import Measure
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.messages import split_leading
from turnfold.domain.planner import pending_turns
from turnfold.domain.policies.over_turns import (
    TurnChoice,
    choose_of_turns,
    shortened,
    turns_wanted,
)
from turnfold.domain.policies.policy import OVER_BUDGET, Policy
from turnfold.domain.policies.registry import PolicyKit, parse_policy
from turnfold.domain.sessions import gaps
from turnfold.domain.tokens import PER_LIST, count_messages
from turnfold.domain.transcript import sha256_of
from turnfold.domain.turns import Turn

LAYOUT_ATTEMPTS = 4
"""A layout adds the same few tokens each time, so the second choice nearly always fits."""

FIRST_READ_TURNS = 50
"""How many archived turns are read at first where only their age says how many are needed."""


@dataclass(frozen=True, slots=True)
class ReadPolicyContext:
    """Applies a policy to a session's recent turns. `kit` makes what policies work with."""

    transcript: Transcript
    clock: Clock
    kit: Callable[[WorkingMemory, Measure], PolicyKit]

    def budget(self, spec: Mapping[str, Any], request: ContextRequest) -> int | None:
        """The tokens that a context may have, counted exactly; None if there is no such bound."""
        return exact_budget(_with_budget(spec, request.max_tokens))

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
        both = _with_budget(spec, request.max_tokens)
        kit = self.kit(memory, measure)
        policy = parse_policy(both, kit)
        turns = self._turns(memory, policy)
        leading, incoming = split_leading(request.incoming)
        now, budget = self.clock(), exact_budget(both)

        def chosen(by: Policy) -> TurnChoice:
            return choose_of_turns(
                by,
                turns,
                now=now,
                system=leading or memory.profile.system,
                incoming=incoming,
                query=request.query,
                layout=request.layout,
            )

        choice = chosen(policy)
        if budget is not None and request.layout is not PLAIN:
            limit = budget
            for _ in range(LAYOUT_ATTEMPTS):
                # Policies do not see what a layout adds; if that is too much, they choose less.
                excess = _total(choice, measure) - budget
                limit -= excess
                if excess <= 0 or limit <= 0:
                    break
                choice = chosen(parse_policy(_with_budget(both, limit), kit))
        choice, elided = _fitted(choice, budget, measure)
        view = _view(memory, measure, choice, elided)
        view["tokens"]["budget"] = request.max_tokens
        view["policy"] = {
            "name": spec["name"],
            "reduced": choice.reduced or bool(elided),
            "flags": sorted(choice.flags - ({OVER_BUDGET} if elided else set())),
            "turns_read": len(turns),
            "partial_turns": list(choice.partial),
        }
        return view

    def _turns(self, memory: WorkingMemory, policy: Policy) -> tuple[Turn, ...]:
        """The turns that can matter to the policy, oldest first."""
        wanted = turns_wanted(policy.reach, memory.session.committed_through)
        minutes = policy.reach.minutes
        if minutes is None:
            return self._read(memory, wanted)
        since = self.clock() - timedelta(minutes=minutes)
        count = FIRST_READ_TURNS
        while True:
            turns = self._read(memory, wanted[-count:])
            if count >= len(wanted) or turns[0].committed_at < since:
                return turns
            count *= 2

    def _read(self, memory: WorkingMemory, wanted: Sequence[int]) -> tuple[Turn, ...]:
        """Turns word for word from working memory, else from the archive, run by run."""
        known = {turn.number: turn for turn in memory.turns}
        missing = [number for number in wanted if number not in known]
        # Consecutive numbers have the same distance to their place in the list.
        for _, run in groupby(enumerate(missing), key=lambda one: one[1] - one[0]):
            numbers = [number for _, number in run]
            archived = self.transcript.turns(memory.session, numbers[0], numbers[-1])
            known.update((turn.number, turn) for turn in archived)
        return tuple(known[number] for number in wanted)


def _with_budget(spec: Mapping[str, Any], max_tokens: int | None) -> Mapping[str, Any]:
    """The policy, within a budget that was asked for besides."""
    if not max_tokens:
        return spec
    limit = {"name": "token_limit", "max_tokens": max_tokens}
    return {"name": "composite", "policies": [spec, limit]}


def exact_budget(spec: Mapping[str, Any]) -> int | None:
    """The least budget of a policy that counts exactly; an estimated one is its own affair."""
    if spec["name"] == "composite":
        budgets = [exact_budget(one) for one in spec["policies"] if isinstance(one, Mapping)]
        return min((one for one in budgets if one), default=None)
    if spec["name"] not in ("token_window", "token_limit") or spec.get("token_ratio"):
        return None
    budget = spec.get("max_tokens")
    return budget if isinstance(budget, int) else None


def _fitted(
    choice: TurnChoice, budget: int | None, measure: Measure
) -> tuple[TurnChoice, tuple[Elision, ...]]:
    """The choice, the newest turn's long texts shortened where they alone exceed the budget."""
    total = _total(choice, measure)
    if budget is None or total <= budget:
        return choice, ()
    shorter = shortened(choice, budget, measure.count)
    if shorter is None:
        raise BudgetTooSmallError(total, budget, "what the policy may not drop")
    return shorter


def _total(choice: TurnChoice, measure: Measure) -> int:
    return PER_LIST + count_messages(choice.messages, measure.count)


def _view(
    memory: WorkingMemory, measure: Measure, choice: TurnChoice, elided: Sequence[Elision]
) -> dict[str, Any]:
    session = memory.session
    system, rest = split_leading(choice.messages)
    shown = choice.shown
    dropped = gaps(((number, number) for number in shown), session.committed_through)
    newest = shown[-1] if shown else 0
    return {
        "session_id": session.key.session_id,
        "generation": session.revision,
        "messages": [dict(one) for one in choice.messages],
        "regions": {
            "system": [dict(one) for one in system],
            "head": [],
            "pins": [],
            "window": [],
            "recall": [],
            "tail": [{"turn": number} for number in shown],
        },
        "tokens": {
            "total": _total(choice, measure),
            "budget": None,
            "system": count_messages(system, measure.count),
            "head": 0,
            "pins": 0,
            "window": 0,
            "recall": 0,
            "tail": count_messages(rest, measure.count),
        },
        "dropped": [
            {"from_turn": one.from_turn, "to_turn": one.to_turn, "reason": "policy"}
            for one in dropped
        ],
        "dropped_pins": [],
        "elided": [elided_view(newest, one) for one in elided],
        "cache": {"stable_messages": len(system), "prefix_sha256": sha256_of(list(system))},
        "watermark": watermark_view(session, pending_turns(memory, measure)),
    }
