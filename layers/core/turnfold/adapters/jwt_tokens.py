"""Signed tokens (JWT), checked against the issuer's public keys.

Only signatures that a public key verifies are taken. Which algorithm a key may be used with follows
from the key, never from the token alone: so neither `none` nor an HMAC made with the public key as
its secret can pass.
"""

import binascii
import json
from collections.abc import Mapping
from typing import Any

from turnfold.adapters.jwks import KeySet

LEEWAY_SECONDS = 30
"""Clocks of issuers may differ by this much."""

MAX_CHARACTERS = 8192

_ALGORITHMS = {
    ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
_SMALLEST_RSA_MODULUS = 342
"""Characters of base64 that 2,048 bits take."""


class JwtTokens:
    """A `TokenReader` for one issuer and one audience."""

    def __init__(self, issuer: str, audience: str, keys: KeySet) -> None:
        """Take tokens of that issuer (`iss`) for that audience (`aud`)."""
        self._issuer = issuer
        self._audience = audience
        self._keys = keys

    def read(self, token: str) -> Mapping[str, Any] | None:
        """See `TokenReader`; `exp` is asked for, `nbf` and `iat` are checked where they are."""
        header = _header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        # `crit` names extensions that a reader must understand; this one understands none.
        if not isinstance(algorithm, str) or not isinstance(key_id, str) or "crit" in header:
            return None
        if not any(algorithm in allowed for allowed in _ALGORITHMS.values()):
            return None
        key = self._keys.find(key_id)
        if key is None or algorithm not in algorithms_of(key):
            return None
        import jwt

        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                jwt.PyJWK.from_dict(dict(key), algorithm=algorithm),
                algorithms=[algorithm],
                issuer=self._issuer,
                audience=self._audience,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            return None
        return claims


def algorithms_of(key: Mapping[str, Any]) -> tuple[str, ...]:
    """The algorithms that a public key may be used with; none for a key that must not be used."""
    if key.get("use") not in (None, "sig"):
        return ()
    kind = key.get("kty")
    curve = None if kind == "RSA" else key.get("crv")
    if kind == "RSA" and len(str(key.get("n", ""))) < _SMALLEST_RSA_MODULUS:
        return ()
    allowed = _ALGORITHMS.get((str(kind), curve), ())
    named = key.get("alg")
    return allowed if named is None else tuple(one for one in allowed if one == named)


def _header(token: str) -> Mapping[str, Any]:
    """The header of a token; empty if it is not one. Nothing in it is trusted yet."""
    if len(token) > MAX_CHARACTERS:
        return {}
    encoded = token.partition(".")[0]
    try:
        header = json.loads(binascii.a2b_base64(_standard(encoded)))
    except (ValueError, RecursionError):
        return {}
    return header if isinstance(header, dict) else {}


def _standard(encoded: str) -> str:
    """Base64 for addresses as base64 with its padding."""
    return encoded.replace("-", "+").replace("_", "/") + "=" * (-len(encoded) % 4)
