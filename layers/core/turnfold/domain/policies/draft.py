"""A policy at work: the units of its input, what must stay, and the result of what it drops."""

from collections.abc import Callable, Iterable, Sequence

from turnfold.domain.messages import Message
from turnfold.domain.policies.policy import REPAIRED, PolicyInput, PolicyResult
from turnfold.domain.policies.units import Kind, NewestTurn, Unit, newest_turn, read_units


class Draft:
    """What a policy has decided so far about one input. Nothing of the input is changed."""

    def __init__(self, given: PolicyInput) -> None:
        """Read the input, and leave out at once what no provider takes."""
        self.given = given
        conversation = read_units(given.messages, drop_blank=given.strict)
        self.units = conversation.units
        self.flags: set[str] = {REPAIRED} if conversation.dead else set()
        self.kept = [True] * len(self.units)
        self.newest: NewestTurn = newest_turn(
            self.units, finished_too=given.strict, protected_from=given.protected_from
        )

    @property
    def protected(self) -> frozenset[int]:
        """The units that no policy drops: the fixed ones and the core of the newest turn."""
        fixed = {at for at, unit in enumerate(self.units) if unit.kind is Kind.FIXED}
        return self.newest.core | fixed

    def newest_unit(self) -> frozenset[int]:
        """The newest unit that is not fixed, so that a prompt is never empty."""
        spoken = (at for at in reversed(range(len(self.units))) if not self.is_fixed(at))
        return frozenset(at for at in (next(spoken, None),) if at is not None)

    def is_fixed(self, at: int) -> bool:
        """Whether a unit is a system message or memory."""
        return self.units[at].kind is Kind.FIXED

    def messages_of(self, unit: Unit) -> list[Message]:
        """The messages of a unit."""
        return [self.given.messages[place] for place in unit.places]

    def shed(
        self,
        order: Iterable[int],
        weigh: Callable[[Unit], int],
        limit: int,
        *,
        also_protected: frozenset[int] = frozenset(),
    ) -> bool:
        """Drop units in that order until the rest weighs at most `limit`; whether it does then.

        Protected units are passed over. The rest of the newest turn goes after all others.
        """
        weights = [weigh(unit) for unit in self.units]
        excess = sum(weights) - limit
        if excess <= 0:
            return True
        spared = self.protected | also_protected
        late = set(self.newest.rest)
        early = [at for at in order if at not in late]
        for at in (*early, *self.newest.rest):
            if excess <= 0:
                break
            if at in spared or not self.kept[at]:
                continue
            self.kept[at] = False
            excess -= weights[at]
        return excess <= 0

    def result(self) -> PolicyResult:
        """What is left. For a provider it begins with a user message after the system messages."""
        if self.given.strict:
            self._begin_with_user()
        live = [unit for at, unit in enumerate(self.units) if self.kept[at]]
        return chosen(self.given, sorted(p for unit in live for p in unit.places), self.flags)

    def _begin_with_user(self) -> None:
        spoken = [at for at, kept in enumerate(self.kept) if kept and not self.is_fixed(at)]
        users = [at for at in spoken if self.units[at].kind is Kind.USER]
        for at in spoken if users else ():
            if at == users[0]:
                break
            self.kept[at] = False


def chosen(given: PolicyInput, places: Sequence[int], flags: Iterable[str]) -> PolicyResult:
    """The result that keeps those places of the input, ascending."""
    return PolicyResult(
        messages=tuple(given.messages[place] for place in places),
        origins=tuple(places),
        size=len(given.messages),
        flags=frozenset(flags),
    )
