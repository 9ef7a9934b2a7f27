"""Pins: confirmed facts that are never dropped to save tokens."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class PinStatus(StrEnum):
    """The life of a pin. Only active pins reach a context."""

    ACTIVE = "active"
    INVALIDATED = "invalidated"
    FOLDED = "folded"
    QUARANTINED = "quarantined"


class Trust(StrEnum):
    """Who stands behind a pin's text."""

    USER = "user"
    ASSISTANT = "assistant"
    OPERATOR = "operator"


_FROM_WEAK_TO_STRONG = (Trust.ASSISTANT, Trust.USER, Trust.OPERATOR)


def weakest(trusts: Iterable[Trust]) -> Trust:
    """The trust of a text made of several: that of the weakest, or folding would add trust."""
    return min(trusts, key=_FROM_WEAK_TO_STRONG.index)


@dataclass(frozen=True, slots=True)
class Pin:
    """One pinned fact with its provenance.

    `rev` is the session's pin revision that wrote it: a reader that knows an older revision has
    read a mixture and reads again. `reason` says why a quarantined pin was held back.
    """

    pin_id: str
    text: str
    tokens: int
    status: PinStatus
    trust: Trust
    confidence: float
    sources: tuple[int, ...]
    created_at: datetime
    updated_at: datetime
    rev: int
    replaces: str | None = None
    folded_from: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def etag(self) -> str:
        """Tells apart every state of this pin."""
        return f"{self.pin_id}.{self.rev}"
