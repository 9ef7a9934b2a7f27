"""API keys: what they look like, what is kept of them, and when one is good.

A key is `tf_<id>_<secret>`. The id is public and finds the record; of the secret only an
HMAC-SHA256 is kept, made with a pepper that lies elsewhere. So neither the table nor the pepper
alone tells whether a guess is right, and a record names the pepper it was made with, so that the
pepper can be changed while keys are in use.
"""

import hashlib
import hmac
import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from turnfold.domain.errors import InvalidIdError, InvalidInputError
from turnfold.domain.sessions import check_id

SCOPES = ("read", "write", "admin")
"""Each allows what it names and nothing else; a key may have several."""

ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
ID_LENGTH = 16
SECRET_ALPHABET = string.ascii_letters + string.digits
SECRET_LENGTH = 43
"""256 bits, so a secret needs no slow hash: there is nothing to guess."""

MAX_NAME_CHARACTERS = 100
LAST_USED_STEP = timedelta(hours=1)
"""`last_used_at` is written at most this often, so that a busy key costs no write per request."""

_KEY = re.compile(
    rf"tf_(?P<id>[{ID_ALPHABET}]{{{ID_LENGTH}}})_(?P<secret>[A-Za-z0-9]{{{SECRET_LENGTH}}})"
)
_NOBODYS_VERIFIER = bytes(32)


class KeyState(StrEnum):
    """Whether a key opens anything."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class SentKey:
    """A key as a client sends it, taken apart."""

    key_id: str
    secret: str


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is kept of a key.

    `verifier` is the HMAC of the secret, `pepper_id` names what it was made with. `usage_key` is
    what a usage plan counts the key's requests by; clients never see it.
    """

    key_id: str
    tenant: str
    scopes: frozenset[str]
    verifier: bytes
    pepper_id: str
    usage_key: str
    created_at: datetime
    name: str = ""
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    def state(self, now: datetime) -> KeyState:
        """Revoked, expired (from the very moment of `expires_at`), or active."""
        if self.revoked_at is not None:
            return KeyState.REVOKED
        if self.expires_at is not None and self.expires_at <= now:
            return KeyState.EXPIRED
        return KeyState.ACTIVE

    def use_is_news(self, now: datetime) -> bool:
        """Whether a use now is worth a write."""
        return self.last_used_at is None or now - self.last_used_at >= LAST_USED_STEP


@dataclass(frozen=True, slots=True)
class Peppers:
    """The peppers that are valid, by id; new verifiers are made with the current one."""

    current: str
    secrets: Mapping[str, bytes]

    def verifier(self, sent: SentKey, pepper_id: str | None = None) -> bytes:
        """The HMAC-SHA256 of a key; with the current pepper unless a known one is named.

        The id is part of what is hashed, so a verifier is of no use in another key's record.
        """
        pepper = self.secrets[self.current if pepper_id is None else pepper_id]
        return hmac.digest(pepper, f"{sent.key_id}:{sent.secret}".encode(), hashlib.sha256)


def read_key(text: str) -> SentKey | None:
    """The parts of a key; None if the text is not shaped like one."""
    match = _KEY.fullmatch(text)
    return SentKey(match["id"], match["secret"]) if match else None


def write_key(sent: SentKey) -> str:
    """The key as it is shown, once, to whoever asked for it."""
    return f"tf_{sent.key_id}_{sent.secret}"


def is_good(sent: SentKey, key: ApiKey | None, peppers: Peppers, now: datetime) -> bool:
    """Whether the key is the one of the record and opens anything now.

    The same work is done whether there is a record or not, and which state it is in: one HMAC and
    one comparison in constant time.
    """
    known = key is not None and key.pepper_id in peppers.secrets
    made = peppers.verifier(sent, key.pepper_id if key is not None and known else None)
    same = hmac.compare_digest(made, key.verifier if key is not None else _NOBODYS_VERIFIER)
    return same and known and key is not None and key.state(now) is KeyState.ACTIVE


def check_scopes(scopes: Iterable[str]) -> frozenset[str]:
    """The scopes, if there are any and all exist. Raises `InvalidInputError`."""
    found = frozenset(scopes)
    if not found or not found <= set(SCOPES):
        raise InvalidInputError(f"scopes are one or more of {', '.join(SCOPES)}")
    return found


def check_tenant(tenant: str) -> str:
    """The tenant, if it can be one. Raises `InvalidInputError`."""
    try:
        return check_id(tenant, "the tenant")
    except InvalidIdError as error:
        raise InvalidInputError(str(error)) from None


def check_name(name: str) -> str:
    """A key's name, if it can be shown. Raises `InvalidInputError`."""
    if len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise InvalidInputError(f"a name has at most {MAX_NAME_CHARACTERS} printable characters")
    return name


def check_expiry(expires_at: datetime | None, now: datetime) -> datetime | None:
    """When a key ends, if that is still to come. Raises `InvalidInputError`."""
    if expires_at is not None and expires_at <= now:
        raise InvalidInputError("the key would have expired already")
    return expires_at
