"""What checking and keeping API keys needs from the outside. Adapters implement these protocols."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from turnfold.domain.api_keys import ApiKey, Peppers


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls, as a credential proved it.

    `credential` names the credential without its secret. `usage_key` is what a usage plan counts
    the caller's requests by; None where no plan does.
    """

    tenant: str
    scopes: frozenset[str]
    credential: str
    usage_key: str | None = None


class KeyStore(Protocol):
    """The records of API keys. Reads see every write that was acknowledged before.

    All methods raise `ThrottledError`, `StoreUnavailableError` and `StoreError`.
    """

    def get(self, key_id: str) -> ApiKey | None:
        """The record of a key, whatever its state."""
        ...

    def add(self, key: ApiKey) -> None:
        """Keep a new record. Raises `GuardFailedError` if there is one of that id."""
        ...

    def list_keys(self, tenant: str | None) -> tuple[ApiKey, ...]:
        """All records, or those of one tenant; oldest first."""
        ...

    def revoke(self, key_id: str, at: datetime) -> bool:
        """Note that a key is revoked; an earlier moment stays. False if there is no such key."""
        ...

    def note_use(self, used: ApiKey, at: datetime, verifier: bytes, pepper_id: str) -> None:
        """Note when a key was used, and put its verifier under that pepper.

        Nothing happens if the record was changed meanwhile, is revoked or gone.
        """
        ...


class PepperStore(Protocol):
    """Where the peppers lie, apart from the verifiers made with them.

    Both methods raise `StoreUnavailableError` and `StoreError`.
    """

    def read(self, wanted: str | None = None) -> Peppers:
        """The peppers as they are, or were some minutes ago.

        If those of some minutes ago lack the pepper that is wanted, they are read anew.
        """
        ...

    def write(self, peppers: Peppers, expected_current: str) -> None:
        """Replace the peppers. Raises `GuardFailedError` if another one is current by now."""
        ...


class UsageMeter(Protocol):
    """Counts and limits the requests of a key (a usage plan).

    Both methods raise `StoreUnavailableError` and `StoreError`.
    """

    def admit(self, key_id: str, usage_key: str) -> None:
        """Let requests that carry the usage key in, within the plan's limits; again is the same."""
        ...

    def dismiss(self, key_id: str) -> None:
        """Let them in no more; nothing happens if they were not."""
        ...


class TokenReader(Protocol):
    """Reads signed tokens."""

    def read(self, token: str) -> Mapping[str, Any] | None:
        """The claims of a token that is signed by its issuer, for this service, and valid now.

        None for any other. Raises `StoreUnavailableError` if the issuer's keys cannot be had.
        """
        ...
