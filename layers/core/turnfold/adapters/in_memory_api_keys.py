"""API keys, peppers and a usage meter in memory, for tests and programs without AWS."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from turnfold.domain.api_keys import ApiKey, Peppers
from turnfold.domain.errors import GuardFailedError


class InMemoryKeyStore:
    """A `KeyStore` in a dictionary."""

    def __init__(self) -> None:
        """Begin without keys."""
        self._keys: dict[str, ApiKey] = {}

    def get(self, key_id: str) -> ApiKey | None:
        """See `KeyStore`."""
        return self._keys.get(key_id)

    def add(self, key: ApiKey) -> None:
        """See `KeyStore`."""
        if key.key_id in self._keys:
            raise GuardFailedError("key")
        self._keys[key.key_id] = key

    def list_keys(self, tenant: str | None) -> tuple[ApiKey, ...]:
        """See `KeyStore`."""
        chosen = [key for key in self._keys.values() if tenant in (None, key.tenant)]
        return tuple(sorted(chosen, key=lambda key: (key.created_at, key.key_id)))

    def revoke(self, key_id: str, at: datetime) -> bool:
        """See `KeyStore`."""
        key = self._keys.get(key_id)
        if key is None:
            return False
        self._keys[key_id] = replace(key, revoked_at=key.revoked_at or at)
        return True

    def note_use(self, used: ApiKey, at: datetime, verifier: bytes, pepper_id: str) -> None:
        """See `KeyStore`."""
        key = self._keys.get(used.key_id)
        if key is not None and key.revoked_at is None and key.verifier == used.verifier:
            self._keys[key.key_id] = replace(
                key, last_used_at=at, verifier=verifier, pepper_id=pepper_id
            )


class InMemoryPeppers:
    """A `PepperStore` that forgets with the process."""

    def __init__(self, current: str, secrets: Mapping[str, bytes]) -> None:
        """Begin with these peppers."""
        self._peppers = Peppers(current, dict(secrets))

    def read(self, _wanted: str | None = None) -> Peppers:
        """See `PepperStore`."""
        return self._peppers

    def write(self, peppers: Peppers, expected_current: str) -> None:
        """See `PepperStore`."""
        if self._peppers.current != expected_current:
            raise GuardFailedError("pepper")
        self._peppers = peppers


class InMemoryMeter:
    """A `UsageMeter` that only remembers whom it lets in."""

    def __init__(self) -> None:
        """Let nobody in yet."""
        self.admitted: dict[str, str] = {}

    def admit(self, key_id: str, usage_key: str) -> None:
        """See `UsageMeter`."""
        self.admitted[key_id] = usage_key

    def dismiss(self, key_id: str) -> None:
        """See `UsageMeter`."""
        self.admitted.pop(key_id, None)
