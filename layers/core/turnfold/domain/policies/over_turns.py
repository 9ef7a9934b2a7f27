"""Policies over committed turns: which to read, and what a policy makes of them for a provider."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from turnfold.domain.elision import Elision, elide
from turnfold.domain.estimators import ExactEstimator, estimate_all
from turnfold.domain.layouts import PLAIN, Layout
from turnfold.domain.messages import Message, chat_form
from turnfold.domain.policies.policy import Policy, PolicyInput, Reach
from turnfold.domain.tokens import CountText
from turnfold.domain.turns import Turn

MAX_TURNS = 500
"""Turns read for one context, whatever the policy: some thousand messages, and as many records as a
few parallel reads fetch within a second or two. Older turns are then as if they were dropped."""

LEAST_TURN_MESSAGES = 2


@dataclass(frozen=True, slots=True)
class TurnChoice:
    """What a policy chose of a session's turns, as messages that can be sent as they are.

    `sources` tell for each message the turn that it comes from, the newest of several, and None if
    something of it is a system message, a message about to be sent or a summary. `shown` are all
    turns of which there is something, ascending. Of the turns that were read, nothing is left of
    those in `dropped`, and some of those in `partial`.
    """

    messages: tuple[Message, ...]
    sources: tuple[int | None, ...]
    shown: tuple[int, ...]
    dropped: tuple[int, ...]
    partial: tuple[int, ...]
    flags: frozenset[str]
    reduced: bool


def turns_wanted(reach: Reach, committed_through: int) -> tuple[int, ...]:
    """The numbers of the turns that have to be read for a policy, ascending; at most `MAX_TURNS`.

    The first turn is among them where its question may be kept.
    """
    count = MAX_TURNS
    if reach.messages is not None:
        count = min(count, -(-reach.messages // LEAST_TURN_MESSAGES) + 1)
    first = max(1, committed_through - count + 1)
    numbers = range(first, committed_through + 1)
    if reach.first and first > 1:
        return (1, *numbers[-(MAX_TURNS - 1) :])
    return tuple(numbers)


def choose_of_turns(
    policy: Policy,
    turns: Sequence[Turn],
    *,
    now: datetime,
    system: Sequence[Message] = (),
    incoming: Sequence[Message] = (),
    query: str | None = None,
    layout: Layout = PLAIN,
) -> TurnChoice:
    """What a policy makes of turns, oldest first, between system messages and those to be sent.

    The policy sees the messages as they were said; what it chose is laid out.

    A message is as old as the commit of its turn, whatever it says itself. What is about to be sent
    is the newest turn, or else the last one of `turns`: as far as policies protect anything, that.
    """
    messages: list[Message] = [chat_form(one) for one in system]
    sources: list[int | None] = [None] * len(messages)
    times: list[datetime | None] = [None] * len(messages)
    protected = len(messages)
    for turn in turns:
        protected = len(messages)
        for message in turn.conversation:
            messages.append(chat_form(message))
            sources.append(turn.number)
            times.append(turn.committed_at)
    if incoming:
        protected = len(messages)
    messages += [chat_form(one) for one in incoming]
    sources += [None] * len(incoming)
    times += [now] * len(incoming)
    result = policy.apply(
        PolicyInput(
            messages,
            times=times,
            now=now,
            query=query,
            strict=True,
            protected_from=protected,
        )
    )
    chosen = tuple(None if one is None else sources[one] for one in result.origins)
    kept = Counter(chosen)
    laid_out = layout.whole(result.messages)
    return TurnChoice(
        messages=tuple(message for message, _ in laid_out),
        sources=tuple(_newest(chosen, places) for _, places in laid_out),
        shown=tuple(sorted({one for one in chosen if one is not None})),
        dropped=tuple(turn.number for turn in turns if not kept[turn.number]),
        partial=tuple(
            turn.number for turn in turns if 0 < kept[turn.number] < len(turn.conversation)
        ),
        flags=result.flags,
        reduced=result.reduced,
    )


def _newest(sources: Sequence[int | None], places: Sequence[int]) -> int | None:
    found = [sources[at] for at in places]
    return max((one for one in found if one is not None), default=None) if all(found) else None


def shortened(
    choice: TurnChoice, max_tokens: int, count: CountText
) -> tuple[TurnChoice, tuple[Elision, ...]] | None:
    """The choice with the long texts of its newest turn cut to a budget; None if that cannot be.

    System messages and the messages about to be sent are never cut. The places of the elisions are
    those of the messages in the turn.
    """
    newest = max((one for one in choice.sources if one is not None), default=None)
    places = [at for at, one in enumerate(choice.sources) if one == newest is not None]
    if newest is None or not places:
        return None
    whole = list(choice.messages)
    estimator = ExactEstimator(count)
    turn = [whole[at] for at in places]
    others = estimate_all(estimator, whole) - sum(map(estimator.message, turn))
    cut = elide(turn, newest, max_tokens - others, count)
    if cut is None:
        return None
    for at, message in zip(places, cut[0], strict=True):
        whole[at] = message
    return replace(choice, messages=tuple(whole)), cut[1]
