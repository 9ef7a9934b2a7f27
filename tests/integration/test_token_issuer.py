"""Tokens of an issuer whose keys are fetched over HTTP, as the authorizer is wired."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from support.aws import aws_environment
from turnfold.adapters.jwks import MAX_BYTES, fetch_document
from turnfold.application.ports.access import Identity
from turnfold.bootstrap_access import Access, jwks_url
from turnfold.domain.errors import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = ec.generate_private_key(ec.SECP256R1())
ISSUER = "https://issuer.example/"


class Issuer(BaseHTTPRequestHandler):
    """Serves keys, something too large, and a redirection to the keys."""

    def do_GET(self) -> None:
        public = jwt.get_algorithm_by_name("ES256").to_jwk(KEY.public_key(), as_dict=True)
        assert isinstance(public, dict)
        body = json.dumps({"keys": [public | {"kid": "1"}]}).encode()
        if self.path == "/large":
            body += b" " * MAX_BYTES
        self.send_response(302 if self.path == "/moved" else 200)
        self.send_header("Location", "/keys")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def access(url: str) -> Access:
    return Access(
        {
            "TURNFOLD_KEY_TABLE": "keys",
            "TURNFOLD_PEPPER_SECRET": "pepper",
            "TURNFOLD_JWT_ISSUER": ISSUER,
            "TURNFOLD_JWT_AUDIENCE": "turnfold",
            "TURNFOLD_JWT_JWKS_URL": url,
            "TURNFOLD_JWT_TENANT_CLAIM": "org",
            "TURNFOLD_JWT_SCOPES_CLAIM": "",
            "TURNFOLD_JWT_SCOPE_PREFIX": "turnfold/",
            "TURNFOLD_JWT_USAGE_KEY": "usage of tokens",
        }
    )


def token(**changes: Any) -> str:
    claims = {
        "iss": ISSUER,
        "aud": "turnfold",
        "exp": datetime.now(UTC) + timedelta(minutes=1),
        "org": "acme",
        "scope": "openid turnfold/read",
        **changes,
    }
    return jwt.encode(claims, KEY, "ES256", {"kid": "1"})


def test_a_token_is_taken_and_a_forged_one_is_not(address: str) -> None:
    with aws_environment(None):
        identify = access(f"{address}/keys").identify
    expected = Identity("acme", frozenset({"read"}), "token", "usage of tokens")
    assert identify(token()) == expected
    for changes in ({"iss": "https://other.example/"}, {"org": ""}, {"scope": "openid"}):
        assert identify(token(**changes)) is None
    stranger = ec.generate_private_key(ec.SECP256R1())
    assert identify(jwt.encode({"iss": ISSUER}, stranger, "ES256", {"kid": "1"})) is None


@pytest.mark.parametrize("path", ["large", "moved"])
def test_keys_that_cannot_be_had_are_no_refusal(address: str, path: str) -> None:
    with aws_environment(None):
        identify = access(f"{address}/{path}").identify
    with pytest.raises(StoreUnavailableError):
        identify(token())
    with pytest.raises((OSError, ValueError)):
        fetch_document(f"{address}/{path}")


def test_where_an_issuer_has_its_keys() -> None:
    assert jwks_url("https://a.example") == jwks_url("https://a.example/")
    assert jwks_url("https://a.example/x/") == "https://a.example/x/.well-known/jwks.json"
