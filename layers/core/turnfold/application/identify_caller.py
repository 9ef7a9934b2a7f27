"""Who calls, by an API key or a signed token."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turnfold.application.ports.access import Identity, KeyStore, PepperStore, TokenReader
from turnfold.application.ports.clock import Clock
from turnfold.domain.api_keys import SCOPES, ApiKey, Peppers, SentKey, is_good, read_key
from turnfold.domain.errors import InvalidIdError, StoreError
from turnfold.domain.sessions import check_id

_JWT_DOTS = 2

logger = logging.getLogger("turnfold")


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """Which claims of a token say what.

    `scopes` is a list or a text with blanks; only entries that begin with `scope_prefix` count, and
    count without it.
    """

    tenant: str = "tenant"
    scopes: str = "scope"
    scope_prefix: str = ""


class IdentifyCaller:
    """Tells who holds a credential.

    It never says why one is not good. All API keys that are not good take the same work: one read,
    one HMAC, one comparison.
    """

    def __init__(
        self,
        keys: KeyStore,
        peppers: PepperStore,
        clock: Clock,
        tokens: TokenReader | None = None,
        claims: ClaimNames | None = None,
        token_usage_key: str | None = None,
    ) -> None:
        """Without `tokens`, only API keys are known. All tokens share one usage key."""
        self._keys = keys
        self._peppers = peppers
        self._clock = clock
        self._tokens = tokens
        self._claims = claims or ClaimNames()
        self._token_usage_key = token_usage_key

    def __call__(self, credential: str) -> Identity | None:
        """Who holds it; None if it is not good. Raises `StoreError` if that cannot be told now."""
        sent = read_key(credential)
        if sent is not None:
            return self._by_key(sent)
        if self._tokens is not None and credential.count(".") == _JWT_DOTS:
            claims = self._tokens.read(credential)
            return None if claims is None else self._by_claims(claims)
        return None

    def _by_key(self, sent: SentKey) -> Identity | None:
        key = self._keys.get(sent.key_id)
        peppers = self._peppers.read(None if key is None else key.pepper_id)
        now = self._clock()
        if not is_good(sent, key, peppers, now) or key is None:
            return None
        if key.use_is_news(now) or key.pepper_id != peppers.current:
            self._note_use(key, sent, peppers)
        return Identity(key.tenant, key.scopes, key.key_id, key.usage_key)

    def _note_use(self, key: ApiKey, sent: SentKey, peppers: Peppers) -> None:
        """Best effort: a caller is not turned away because a note could not be written."""
        try:
            self._keys.note_use(key, self._clock(), peppers.verifier(sent), peppers.current)
        except StoreError as error:
            logger.warning("use not noted", extra={"code": "USE_NOT_NOTED", "reason": str(error)})

    def _by_claims(self, claims: Mapping[str, Any]) -> Identity | None:
        tenant = claims.get(self._claims.tenant)
        scopes = _scopes(claims.get(self._claims.scopes), self._claims.scope_prefix)
        if not isinstance(tenant, str) or not scopes:
            return None
        try:
            check_id(tenant, "the tenant")
        except InvalidIdError:
            return None
        return Identity(tenant, scopes, "token", self._token_usage_key)


def _scopes(claim: object, prefix: str) -> frozenset[str]:
    """The scopes of this service among those of a claim."""
    words = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else []
    named = {word.removeprefix(prefix) for word in map(str, words) if word.startswith(prefix)}
    return frozenset(named) & set(SCOPES)
