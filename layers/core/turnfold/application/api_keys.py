"""API keys by hand: create, list, revoke, and change the pepper."""

import secrets
from dataclasses import dataclass
from datetime import datetime

from turnfold.application.ports.access import KeyStore, PepperStore, UsageMeter
from turnfold.application.ports.clock import Clock
from turnfold.domain.api_keys import (
    ID_ALPHABET,
    ID_LENGTH,
    SECRET_ALPHABET,
    SECRET_LENGTH,
    ApiKey,
    KeyState,
    Peppers,
    SentKey,
    check_expiry,
    check_name,
    check_scopes,
    check_tenant,
    write_key,
)
from turnfold.domain.errors import ConflictError, NotFoundError, StoreError

USAGE_KEY_LENGTH = 40
PEPPER_BYTES = 32


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """What a new key shall be."""

    tenant: str
    scopes: frozenset[str]
    name: str = ""
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PepperRotation:
    """What a change of the pepper came to."""

    current: str
    kept: tuple[str, ...]
    dropped: tuple[str, ...]


class ApiKeys:
    """The operator's side of API keys. All raise what `KeyStore` and `PepperStore` raise."""

    def __init__(
        self, store: KeyStore, peppers: PepperStore, clock: Clock, meter: UsageMeter | None = None
    ) -> None:
        """Without a meter, nobody counts requests; keys can be admitted to one later."""
        self._store = store
        self._peppers = peppers
        self._clock = clock
        self._meter = meter

    def create(self, request: KeyRequest) -> tuple[str, ApiKey]:
        """A new key, and its record. The key cannot be had again. Raises `InvalidInputError`."""
        now = self._clock()
        sent = SentKey(_random(ID_ALPHABET, ID_LENGTH), _random(SECRET_ALPHABET, SECRET_LENGTH))
        peppers = self._peppers.read()
        key = ApiKey(
            key_id=sent.key_id,
            tenant=check_tenant(request.tenant),
            scopes=check_scopes(request.scopes),
            verifier=peppers.verifier(sent),
            pepper_id=peppers.current,
            usage_key=_random(SECRET_ALPHABET, USAGE_KEY_LENGTH),
            created_at=now,
            name=check_name(request.name),
            expires_at=check_expiry(request.expires_at, now),
        )
        # The meter first: a key that is stored but not admitted would be refused at the door,
        # while an admitted one that is not stored opens nothing.
        if self._meter:
            self._meter.admit(key.key_id, key.usage_key)
        try:
            self._store.add(key)
        except StoreError:
            if self._meter:
                self._meter.dismiss(key.key_id)
            raise
        return write_key(sent), key

    def list_keys(self, tenant: str | None = None) -> tuple[ApiKey, ...]:
        """All keys, or those of a tenant; oldest first."""
        return self._store.list_keys(tenant)

    def revoke(self, key_id: str) -> ApiKey:
        """Close a key for good; closing it twice is no error. Raises `NotFoundError`.

        It stays open for as long as the API keeps the authorizer's answers.
        """
        if not self._store.revoke(key_id, self._clock()):
            raise NotFoundError("there is no such key")
        if self._meter:
            self._meter.dismiss(key_id)
        key = self._store.get(key_id)
        if key is None:
            raise NotFoundError("there is no such key")
        return key

    def admit_all(self) -> int:
        """Admit all active keys to the meter, and say how many; those that are in stay in.

        For keys that were made while there was no usage plan.
        """
        if self._meter is None:
            return 0
        now = self._clock()
        active = [key for key in self._store.list_keys(None) if key.state(now) is KeyState.ACTIVE]
        for key in active:
            self._meter.admit(key.key_id, key.usage_key)
        return len(active)

    def rotate_pepper(self, *, force: bool = False) -> PepperRotation:
        """Make a new current pepper and keep the one before it.

        A key moves to the current pepper when it is used, so none has to be made anew. Peppers
        older than the one before are dropped; as long as active keys hang on one of those, this
        raises `ConflictError` naming them, unless `force`: then these keys are lost.
        """
        before = self._peppers.read()
        dropped = tuple(name for name in before.secrets if name != before.current)
        stuck = [] if force else self._on(dropped)
        if stuck:
            listed = ", ".join(key.key_id for key in stuck)
            raise ConflictError(
                f"active keys have not been used since the last rotation: {listed};"
                " use or revoke them, or force it and lose them"
            )
        current = f"p{secrets.token_hex(6)}"
        kept = {before.current: before.secrets[before.current]}
        after = Peppers(current, kept | {current: new_pepper()})
        self._peppers.write(after, before.current)
        return PepperRotation(current, tuple(kept), dropped)

    def _on(self, peppers: tuple[str, ...]) -> list[ApiKey]:
        """Active keys whose verifier was made with one of the peppers."""
        now = self._clock()
        return [
            key
            for key in (self._store.list_keys(None) if peppers else ())
            if key.pepper_id in peppers and key.state(now) is KeyState.ACTIVE
        ]


def new_pepper() -> bytes:
    """A random pepper of 256 bits. It is text, since it has to lie in JSON."""
    return secrets.token_hex(PEPPER_BYTES).encode()


def public_view(key: ApiKey, now: datetime) -> dict[str, object]:
    """What may be shown of a key: everything but its verifier and usage key."""
    times = ("created_at", "expires_at", "revoked_at", "last_used_at")
    return {
        "key_id": key.key_id,
        "tenant": key.tenant,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "state": str(key.state(now)),
        "pepper": key.pepper_id,
        **{name: _written(getattr(key, name)) for name in times},
    }


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _random(alphabet: str, length: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))
