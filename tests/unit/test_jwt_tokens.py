"""Signed tokens: which pass, and that every forgery is refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from turnfold.adapters.jwks import KeySet
from turnfold.adapters.jwt_tokens import JwtTokens, algorithms_of

ISSUER, AUDIENCE = "https://issuer.example", "turnfold"
RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_RSA = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def jwk(key: Any, algorithm: str, **members: object) -> dict[str, Any]:
    made = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
    assert isinstance(made, dict)
    return made | {"use": "sig"} | members


KEYS = {
    "keys": [
        jwk(RSA_KEY, "RS256", kid="rsa"),
        jwk(RSA_KEY, "RS256", kid="rsa-512", alg="RS512"),
        jwk(RSA_KEY, "RS256", kid="rsa-enc", use="enc"),
        jwk(EC_KEY, "ES256", kid="ec"),
        jwk(ED_KEY, "EdDSA", kid="ed"),
        {"kid": "secret", "kty": "oct", "k": "c2VjcmV0"},
        {"no": "kid"},
        "not a key",
    ]
}


def reader(document: object = KEYS) -> JwtTokens:
    url = f"{ISSUER}/.well-known/jwks.json"
    return JwtTokens(ISSUER, AUDIENCE, KeySet(url, lambda _: json.dumps(document).encode()))


def claims(**changes: object) -> dict[str, object]:
    now = datetime.now(UTC)
    made = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": now + timedelta(minutes=5),
        "nbf": now - timedelta(minutes=5),
        "tenant": "acme",
        "scope": "read write",
        **changes,
    }
    return {name: value for name, value in made.items() if value is not None}


def token(
    key: Any = RSA_KEY, algorithm: str = "RS256", kid: str | None = "rsa", **changes: object
) -> str:
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(claims(**changes), key, algorithm=algorithm, headers=headers)


def raw_token(header: object, payload: object, signature: bytes = b"") -> str:
    parts = [json.dumps(part, default=str).encode() for part in (header, payload)]
    return ".".join(
        base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in [*parts, signature]
    )


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [
        (RSA_KEY, "RS256", "rsa"),
        (RSA_KEY, "RS384", "rsa"),
        (RSA_KEY, "PS256", "rsa"),
        (RSA_KEY, "RS512", "rsa-512"),
        (EC_KEY, "ES256", "ec"),
        (ED_KEY, "EdDSA", "ed"),
    ],
    ids=["RS256", "RS384", "PS256", "RS512", "ES256", "EdDSA"],
)
def test_a_good_token_tells_its_claims(key: Any, algorithm: str, kid: str) -> None:
    read = reader().read(token(key, algorithm, kid))
    assert read is not None
    assert (read["tenant"], read["scope"]) == ("acme", "read write")


def test_one_audience_of_several_is_enough() -> None:
    assert reader().read(token(aud=["other", AUDIENCE])) is not None


NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": NOW - timedelta(minutes=5)},
        {"exp": None},
        {"nbf": NOW + timedelta(minutes=5)},
        {"iat": NOW + timedelta(minutes=5)},
        {"iss": "https://other.example"},
        {"iss": f"{ISSUER}/"},
        {"iss": None},
        {"aud": "other"},
        {"aud": ["other"]},
        {"aud": None},
        {"aud": ""},
    ],
    ids=[
        "expired",
        "without end",
        "not yet valid",
        "made in the future",
        "of another issuer",
        "of an issuer that looks alike",
        "of no issuer",
        "for another audience",
        "for other audiences",
        "for no audience",
        "for a blank audience",
    ],
)
def test_wrong_claims_are_refused(changes: dict[str, Any]) -> None:
    assert reader().read(token(**changes)) is None


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [
        (OTHER_RSA, "RS256", "rsa"),
        (RSA_KEY, "RS256", "ec"),
        (EC_KEY, "ES256", "rsa"),
        (RSA_KEY, "RS256", "rsa-512"),
        (RSA_KEY, "RS256", "rsa-enc"),
        (RSA_KEY, "RS256", "unknown"),
        (RSA_KEY, "RS256", None),
        (b"secret" * 10, "HS256", "secret"),
        (b"secret" * 10, "HS256", "rsa"),
    ],
    ids=[
        "a stranger's",
        "of another kind",
        "of another kind, the other way round",
        "by another algorithm than the key's",
        "of a key to encrypt with",
        "of an unknown key",
        "of no key",
        "symmetric, by a symmetric key",
        "symmetric, by a public key",
    ],
)
def test_signatures_of_another_key_are_refused(key: Any, algorithm: str, kid: str | None) -> None:
    assert reader().read(token(key, algorithm, kid)) is None


@pytest.mark.parametrize("name", ["none", "None", "NONE", ""])
def test_a_token_without_signature_is_refused(name: str) -> None:
    for kid in ({"kid": "rsa"}, {}):
        assert reader().read(raw_token({"alg": name, **kid}, claims())) is None
    # And one whose signature was cut off.
    head, payload, _ = token().split(".")
    assert reader().read(f"{head}.{payload}.") is None


@pytest.mark.parametrize(
    "form",
    [
        (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
        (serialization.Encoding.PEM, serialization.PublicFormat.PKCS1),
    ],
    ids=["PEM", "DER", "PKCS #1"],
)
def test_the_public_key_is_no_secret_to_sign_with(form: tuple[Any, Any]) -> None:
    """The oldest forgery: HS256 with what everybody can fetch."""
    secret = RSA_KEY.public_key().public_bytes(*form)
    unsigned = raw_token({"alg": "HS256", "kid": "rsa"}, claims()).rpartition(".")[0]
    signature = hmac.digest(secret, unsigned.encode(), hashlib.sha256)
    sent = f"{unsigned}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    assert reader().read(sent) is None


def test_a_changed_payload_is_refused() -> None:
    head, _, signature = token().split(".")
    payload = raw_token({}, claims(tenant="victim")).split(".")[1]
    assert reader().read(f"{head}.{payload}.{signature}") is None


def test_a_key_inside_of_a_token_is_not_used() -> None:
    own = jwk(OTHER_RSA, "RS256", kid="rsa")
    for header in (
        {"jwk": own},
        {"jku": "https://evil.example/jwks.json"},
        {"x5u": "https://evil.example/x"},
    ):
        sent = jwt.encode(claims(), OTHER_RSA, "RS256", headers={"kid": "rsa", **header})
        assert reader().read(sent) is None


def test_extensions_that_nobody_here_understands_are_refused() -> None:
    sent = jwt.encode(claims(), RSA_KEY, "RS256", headers={"kid": "rsa", "crit": ["b64"]})
    assert reader().read(sent) is None


@pytest.mark.parametrize(
    "text",
    ["..", "a.b.c", "é.b.c", "e30.e30.", f"{'x' * 9000}.a.b", "bnVsbA.e30.e30", "W10.e30.e30"],
)
def test_what_is_no_token_is_refused(text: str) -> None:
    assert reader().read(text) is None


def test_weak_and_unknown_keys_are_not_used() -> None:
    weak = jwk(rsa.generate_private_key(65537, 1024), "RS256", kid="weak")  # noqa: S505 - weak on purpose
    assert algorithms_of(weak) == ()
    for other in ({"kty": "EC", "crv": "secp256k1"}, {"kty": "oct"}, {}, {"kty": ["RSA"]}):
        assert algorithms_of(other) == ()
    assert algorithms_of(KEYS["keys"][1]) == ("RS512",)  # type: ignore[arg-type]  # a key as its issuer publishes it
