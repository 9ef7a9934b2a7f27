"""One session as the planner sees it: turns of a given size, and steps that are simply done."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from support.service import count_words
from support.sessions import START, a_session
from turnfold.domain.measure import Measure
from turnfold.domain.memory import WorkingMemory, raw_numbers
from turnfold.domain.planner import Fold, FoldPins, JudgeTurns, Step, next_step
from turnfold.domain.sessions import Profile, Session, SessionKey
from turnfold.domain.settings import Settings, merge_settings
from turnfold.domain.summaries import Summary
from turnfold.domain.transcript import make_record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnfold.domain.pins import Pin
    from turnfold.domain.turns import Turn

KEY = SessionKey("t", "s")
LEAST_TOKENS = 12
"""The framing of a turn of two messages, and a token of text in each."""


def a_turn(number: int, tokens: int = 40, messages: int = 2) -> Turn:
    """A turn of exactly so many tokens by `count_words`, and so many messages (2 or more)."""
    users = messages - 1
    rest = tokens - users * 5 - 7
    if rest < 0:
        raise ValueError("too few tokens for the framing")
    said = [{"role": "user", "content": "word"} for _ in range(users)]
    said.append({"role": "assistant", "content": "word" * (rest + 1)})
    turn, _ = make_record(
        number=number,
        turn_id=f"turn-{number}-{tokens}",
        committed_at=START,
        messages=said,
        prev_sha256="0" * 64,
    )
    return turn


def shortest(step: Fold) -> int:
    """A summary of half of what it may have."""
    return max(1, step.max_tokens // 2)


def longest(step: Fold) -> int:
    """A summary of all that it may have."""
    return step.max_tokens


@dataclass
class Conversation:
    """A session on which the planner's steps are done without a model and without stores."""

    settings: Settings
    size: Callable[[Fold], int] = shortest
    turns: dict[int, Turn] = field(default_factory=dict)
    session: Session = field(init=False)
    summaries: tuple[Summary, ...] = ()
    pins: tuple[Pin, ...] = ()
    measure: Measure = field(default_factory=lambda: Measure(count_words))

    def __post_init__(self) -> None:
        """Begin without turns."""
        self.session = a_session(KEY, settings=self.settings)

    @property
    def memory(self) -> WorkingMemory:
        """What the planner sees."""
        return WorkingMemory(
            session=self.session,
            profile=Profile(),
            turns=tuple(self.turns[number] for number in raw_numbers(self.session)),
            summaries=self.summaries,
            pins=self.pins,
        )

    def change(self, **changes: Any) -> None:
        """Change settings."""
        settings = merge_settings(self.session.settings, changes)
        self.session = replace(self.session, settings=settings)

    def commit(self, tokens: int = 40, messages: int = 2) -> None:
        """Append a turn."""
        number = self.session.next_turn
        self.turns[number] = a_turn(number, tokens, messages)
        self.session = replace(self.session, next_turn=number + 1)

    def next(self, **how: bool) -> Step | None:
        """What the planner wants."""
        return next_step(self.memory, self.measure, **how)

    def settle(self, limit: int = 500, **how: bool) -> list[Step]:
        """Do all that there is to do; the steps."""
        steps: list[Step] = []
        while (step := self.next(**how)) is not None:
            assert len(steps) < limit, "the planner does not come to an end"
            self.do(step)
            steps.append(step)
        return steps

    def do(self, step: Step) -> None:
        """Do one step."""
        match step:
            case JudgeTurns():
                self.session = replace(self.session, judged_through=step.turns[-1].number)
            case FoldPins():
                rev = self.session.pin_rev + 1
                self.session = replace(self.session, pin_rev=rev, pins_settled_rev=rev)
            case Fold():
                self._fold(step)

    def _fold(self, step: Fold) -> None:
        first, last = step.coverage
        tokens = self.size(step)
        covered = [one for one in step.entries if isinstance(one, Summary)]
        summary = Summary(
            from_turn=first,
            to_turn=last,
            level=step.level,
            text="word" * tokens,
            tokens=tokens,
            source_tokens=sum(self.measure.tokens(self.turns[n]) for n in range(first, last + 1)),
            model="none",
            prompt_version="",
            created_at=START,
        )
        kept = [one for one in self.summaries if one not in covered]
        self.summaries = tuple(sorted([*kept, summary], key=lambda one: one.from_turn))
        self.session = replace(
            self.session,
            manifest=tuple(one.ref for one in self.summaries),
            compacted_through=max(self.session.compacted_through, last),
        )

    def folds(self, steps: Sequence[Step]) -> list[tuple[int, int, int]]:
        """(from, to, level) of the folds among steps."""
        return [(*one.coverage, one.level) for one in steps if isinstance(one, Fold)]
