"""Who calls."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, as the credential says."""

    tenant: str
    scopes: frozenset[str]


class KeyRing(Protocol):
    """Knows who holds an API key."""

    def identify(self, api_key: str) -> "Caller | None":
        """The caller of a key; None if it is not a good key."""
        ...
