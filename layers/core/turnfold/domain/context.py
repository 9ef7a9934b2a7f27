"""Assembling a context: the messages for the model, within a budget (design, section 8).

Order: system messages, head, memory (pins, then summaries, oldest first), raw middle, recalled
turns, tail, and the messages about to be sent. Within a budget, system messages, the messages about
to be sent and the newest turn are kept first; then pins, tail, head, the newest summaries, the raw
middle from new to old, and recall. What did not fit is listed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from turnfold.domain.elision import Elision, elide
from turnfold.domain.errors import BudgetTooSmallError
from turnfold.domain.layouts import PLAIN, Layout
from turnfold.domain.measure import Measure
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.memory_text import memory_message
from turnfold.domain.messages import Message, chat_form, is_blank
from turnfold.domain.pins import Pin
from turnfold.domain.recalled import RecalledTurn, quoted, recalled_message
from turnfold.domain.regions import Regions, first_turn, split_regions
from turnfold.domain.sessions import TurnRange, gaps
from turnfold.domain.summaries import Summary
from turnfold.domain.tokens import PER_LIST, count_messages
from turnfold.domain.transcript import sha256_of
from turnfold.domain.turns import Turn


@dataclass(frozen=True, slots=True)
class ContextTokens:
    """Tokens by region. `total` is the exact count of all messages; framing is in no region."""

    total: int
    budget: int | None
    system: int
    head: int
    pins: int
    window: int
    recall: int
    tail: int


@dataclass(frozen=True, slots=True)
class ElidedTurn:
    """The newest turn, shortened to fit, and by how much. Parts tell places among its messages."""

    turn: int
    parts: tuple[Elision, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """An assembled context, by region and as messages that can be sent as they are."""

    messages: tuple[Message, ...]
    system: tuple[Message, ...]
    head: tuple[Turn, ...]
    pins: tuple[Pin, ...]
    window: tuple[Summary | Turn, ...]
    recall: tuple[RecalledTurn, ...]
    tail: tuple[Turn, ...]
    tokens: ContextTokens
    dropped: tuple[TurnRange, ...]
    dropped_pins: tuple[str, ...]
    elided: ElidedTurn | None
    stable_messages: int
    prefix_sha256: str


@dataclass(slots=True)
class _Choice:
    """What is in the context so far, by its place in working memory."""

    head: list[Turn] = field(default_factory=list)
    pins: list[Pin] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    raw: list[Turn] = field(default_factory=list)
    tail: list[Turn] = field(default_factory=list)
    recall: list[RecalledTurn] = field(default_factory=list)


class _Assembly:
    """One assembly under way: what is chosen, what it costs, what is left of the budget."""

    def __init__(
        self,
        memory: WorkingMemory,
        measure: Measure,
        budget: int | None,
        incoming: Sequence[Message],
        system: Sequence[Message] | None,
        recall: "Recalled",
        layout: Layout,
    ) -> None:
        self.recall = recall
        self.layout = layout
        self.memory = memory
        self.measure = measure
        self.budget = budget
        leading = memory.profile.system if system is None else system
        self.system = tuple(chat_form(one) for one in leading if not is_blank(one))
        self.incoming = layout.spoken([chat_form(one) for one in incoming])
        self.regions: Regions = split_regions(memory)
        self.role = memory.session.settings.memory_role
        self.chosen = _Choice()
        self.cut: dict[int, tuple[Message, ...]] = {}
        self.elided: ElidedTurn | None = None
        self.used = PER_LIST + self._count((*self.system, *self.incoming))
        self._memory_cost = 0

    def run(self) -> Context:
        """Choose by priority, then put everything in its place."""
        if self.budget is None:
            self._take_everything()
        else:
            self._choose()
        self._recall()
        return self._context()

    def _count(self, messages: Iterable[Message]) -> int:
        return count_messages(messages, self.measure.count)

    def _turn_messages(self, turn: Turn) -> tuple[Message, ...]:
        cut = self.cut.get(turn.number)
        return cut or self.layout.spoken([chat_form(one) for one in turn.conversation])

    def _cost(self, turn: Turn) -> int:
        """Tokens of a turn that is not cut; those of the plain layout are counted once for all."""
        if self.layout is PLAIN:
            return self.measure.tokens(turn)
        return self._count(self._turn_messages(turn))

    def _remembered(self, message: Message | None) -> tuple[Message, ...]:
        return self.layout.remembered(message) if message else ()

    def _take_everything(self) -> None:
        self.chosen = _Choice(
            head=list(self.regions.head),
            pins=list(self.memory.pins),
            summaries=list(self.regions.summaries),
            raw=list(self.regions.raw),
            tail=list(self.regions.tail),
        )

    def _choose(self) -> None:
        newest = self._keep_newest()
        if not self._keep_pins():
            return
        tail = [turn for turn in self.regions.tail if turn is not newest]
        self._fill(self.chosen.tail, reversed(tail), self._add_turn)
        head = [turn for turn in self.regions.head if turn is not newest]
        self._fill(self.chosen.head, head, self._add_turn)
        self._fill(self.chosen.summaries, reversed(self.regions.summaries), self._add_summary)
        self._fill(self.chosen.raw, reversed(self.regions.raw), self._add_turn)

    def _recall(self) -> None:
        """The best found turns that stand in the context nowhere else, as far as they fit."""
        chosen = self.chosen
        shown = {turn.number for turn in (*chosen.head, *chosen.raw, *chosen.tail)}
        cost = 0
        for one in self.recall.found:
            if len(chosen.recall) == self.recall.limit:
                break
            if one.turn.number in shown:
                continue
            message = recalled_message(self.role, [*chosen.recall, one])
            longer = self._count(self._remembered(message))
            if self.budget is None or longer - cost <= self._left():
                self.used += longer - cost
                cost = longer
                shown.add(one.turn.number)
                chosen.recall.append(one)

    def _left(self) -> int:
        assert self.budget is not None  # noqa: S101 - only called with a budget
        return self.budget - self.used

    def _keep_newest(self) -> Turn | None:
        """Keep the newest turn, shortened if need be. Raises `BudgetTooSmallError`."""
        if self._left() < 0:
            what = "the system messages and the messages about to be sent"
            raise BudgetTooSmallError(self.used, self.budget or 0, what)
        turns = (*self.regions.head, *self.regions.tail)
        if not turns:
            return None
        newest = turns[-1]
        cost = self._cost(newest)
        if cost > self._left():
            shorter = elide(
                self._turn_messages(newest), newest.number, self._left(), self.measure.count
            )
            if shorter is None and self.incoming:
                return newest
            if shorter is None:
                what = "the system messages and the newest turn"
                raise BudgetTooSmallError(self.used + cost, self.budget or 0, what)
            self.cut[newest.number] = shorter[0]
            self.elided = ElidedTurn(newest.number, shorter[1])
            cost = self._count(shorter[0])
        self.used += cost
        place = self.chosen.tail if self.regions.tail else self.chosen.head
        place.append(newest)
        return newest

    def _keep_pins(self) -> bool:
        """As many pins as fit; the oldest go first. Whether all do: else nothing else comes in."""
        pins = list(self.memory.pins)
        while pins and not self._recost(replace_pins=pins):
            pins.pop(0)
        return len(pins) == len(self.memory.pins)

    def _recost(
        self,
        *,
        replace_pins: list[Pin] | None = None,
        replace_summaries: list[Summary] | None = None,
    ) -> bool:
        """Take other pins or summaries into the memory message, if that fits."""
        pins = self.chosen.pins if replace_pins is None else replace_pins
        summaries = self.chosen.summaries if replace_summaries is None else replace_summaries
        cost = self._count(self._remembered(memory_message(self.role, pins, summaries)))
        if cost - self._memory_cost > self._left():
            return False
        self.used += cost - self._memory_cost
        self._memory_cost = cost
        self.chosen.pins, self.chosen.summaries = pins, summaries
        return True

    def _add_turn(self, turn: Turn) -> bool:
        cost = self._cost(turn)
        if cost > self._left():
            return False
        self.used += cost
        return True

    def _add_summary(self, summary: Summary) -> bool:
        return self._recost(replace_summaries=[summary, *self.chosen.summaries])

    @staticmethod
    def _fill[One: (Turn, Summary)](
        place: list[One], candidates: Iterable[One], add: Callable[[One], bool]
    ) -> None:
        """Take candidates by priority until one does not fit."""
        for one in candidates:
            if not add(one):
                break
            if isinstance(one, Turn):
                place.append(one)

    def _context(self) -> Context:
        chosen = self.chosen
        for turns in (chosen.head, chosen.raw, chosen.tail):
            turns.sort(key=lambda turn: turn.number)
        remembered = memory_message(self.role, chosen.pins, chosen.summaries)
        stable = [*self.system, *self._all(chosen.head), *self._remembered(remembered)]
        chosen.recall.sort(key=lambda one: one.turn.number)
        past = recalled_message(self.role, chosen.recall)
        messages = (
            *stable,
            *self._all(chosen.raw),
            *self._remembered(past),
            *self._all(chosen.tail),
            *self.incoming,
        )
        tokens = self._tokens(messages)
        if tokens.budget is not None and tokens.total > tokens.budget:
            raise AssertionError(
                "the assembly broke its budget"
            )  # a fault of ours, never the caller's
        return Context(
            messages=messages,
            system=self.system,
            head=tuple(chosen.head),
            pins=tuple(chosen.pins),
            window=tuple(sorted((*chosen.summaries, *chosen.raw), key=first_turn)),
            recall=tuple(chosen.recall),
            tail=tuple(chosen.tail),
            tokens=tokens,
            dropped=self._dropped(),
            dropped_pins=tuple(pin.pin_id for pin in self.memory.pins if pin not in chosen.pins),
            elided=self.elided,
            stable_messages=len(stable),
            prefix_sha256=sha256_of(stable),
        )

    def _all(self, turns: Iterable[Turn]) -> list[Message]:
        return [message for turn in turns for message in self._turn_messages(turn)]

    def _tokens(self, messages: Sequence[Message]) -> ContextTokens:
        chosen = self.chosen
        return ContextTokens(
            total=PER_LIST + self._count(messages),
            budget=self.budget,
            system=self._count(self.system),
            head=self._count(self._all(chosen.head)),
            pins=sum(self.measure.count(pin.text) for pin in chosen.pins),
            window=sum(self.measure.count(one.text) for one in chosen.summaries)
            + self._count(self._all(chosen.raw)),
            recall=sum(self.measure.count(quoted(one.turn)) for one in chosen.recall),
            tail=self._count(self._all(chosen.tail)),
        )

    def _dropped(self) -> tuple[TurnRange, ...]:
        chosen = self.chosen
        kept = [(turn.number, turn.number) for turn in (*chosen.head, *chosen.raw, *chosen.tail)]
        kept += [(summary.from_turn, summary.to_turn) for summary in chosen.summaries]
        return gaps(kept, self.memory.session.committed_through)


@dataclass(frozen=True, slots=True)
class Recalled:
    """Turns that a search found, best first, and how many of them a context may quote."""

    found: Sequence[RecalledTurn] = ()
    limit: int = 0


NOTHING_RECALLED = Recalled()


def assemble(
    memory: WorkingMemory,
    measure: Measure,
    *,
    budget: int | None = None,
    incoming: Sequence[Message] = (),
    system: Sequence[Message] | None = None,
    recall: Recalled = NOTHING_RECALLED,
    layout: Layout = PLAIN,
) -> Context:
    """The context of a working memory, of at most `budget` tokens if a budget is given.

    `incoming` are messages about to be sent; they come last and are always kept. `system` stands in
    for the session's own system messages. Of `recall`, turns are quoted that the context does not
    show word for word, as long as there is room. Raises `BudgetTooSmallError` if system messages,
    incoming messages and the newest turn, shortened as far as it may be, do not fit.
    """
    return _Assembly(memory, measure, budget, incoming, system, recall, layout).run()
