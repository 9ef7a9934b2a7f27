"""The messages of the last minutes."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from turnfold.domain.messages import Message
from turnfold.domain.policies.draft import Draft
from turnfold.domain.policies.options import Option, OptionKind, above_zero
from turnfold.domain.policies.policy import PolicyInput, PolicyResult, Reach
from turnfold.domain.policies.units import Unit

DEFAULT_WINDOW_MINUTES = 60


@dataclass(frozen=True, slots=True)
class TimeWindowPolicy:
    """Keeps what was received at most `window_minutes` ago.

    A message of exactly that age stays; so does one whose time is not known. A tool exchange is as
    old as its request. System messages have no age, and an unfinished turn's question and newest
    message stay.
    """

    window_minutes: float = DEFAULT_WINDOW_MINUTES

    name: ClassVar[str] = "time_window"
    OPTIONS: ClassVar[tuple[Option, ...]] = (Option("window_minutes", OptionKind.NUMBER),)

    def __post_init__(self) -> None:
        """Raise `InvalidPolicyError` for a window that is not above 0."""
        above_zero(self.name, "window_minutes", self.window_minutes)

    @property
    def reach(self) -> Reach:
        """See `Policy`."""
        return Reach(minutes=self.window_minutes)

    def options(self) -> dict[str, Any]:
        """See `Policy`."""
        return {"window_minutes": self.window_minutes}

    def apply(self, given: PolicyInput) -> PolicyResult:
        """See `Policy`."""
        now = given.now or datetime.now(UTC)
        draft = Draft(given)
        spared = draft.protected
        for at, unit in enumerate(draft.units):
            if at not in spared and self._is_old(given, unit, now):
                draft.kept[at] = False
        return draft.result()

    def _is_old(self, given: PolicyInput, unit: Unit, now: datetime) -> bool:
        place = unit.places[0]
        received = given.times[place] if given.times else created_at(given.messages[place])
        if received is None:
            return False
        try:
            return received < now - timedelta(minutes=self.window_minutes)
        except OverflowError:
            return False


def created_at(message: Message) -> datetime | None:
    """The time that a message itself names; None without one that can be read. UTC if unsaid."""
    value = message.get("created_at")
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)
