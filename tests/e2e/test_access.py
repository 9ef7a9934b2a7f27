"""Bad credentials at the deployed API: each is refused, and all in the same words."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.deployed.stack import DeployedStack

pytestmark = [pytest.mark.ministack, pytest.mark.slow, pytest.mark.timeout(400)]

SESSION = "/v1/sessions/guarded"
TURN = {
    "messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hello"}]
}


@pytest.fixture(scope="module")
def nobody(stack: DeployedStack) -> Iterator[httpx.Client]:
    """A client without a key."""
    with httpx.Client(base_url=stack.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module", autouse=True)
def session(nobody: httpx.Client, key: str) -> None:
    """Something to be refused."""
    answer = nobody.post(f"{SESSION}/turns", json=TURN, headers=bearer(key))
    assert answer.status_code == 201, answer.text


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The problem document, without what differs from request to request."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    document: dict[str, Any] = answer.json()
    assert answer.headers["X-Request-Id"] == document.pop("request_id")
    assert document["status"] == status
    assert document["code"] == code
    return document


def claims() -> dict[str, Any]:
    later = datetime.now(UTC) + timedelta(hours=1)
    return {"iss": "https://x", "aud": "turnfold", "exp": later, "tenant": "acme", "scope": "read"}


def unsigned() -> str:
    parts = ({"alg": "none", "typ": "JWT"}, claims())
    encoded = (json.dumps(part, default=str).encode() for part in parts)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in encoded) + "."


def bad_credentials(stack: DeployedStack, key: str) -> dict[str, dict[str, str]]:
    revoked = stack.new_key("acme")
    stack.turnfold("keys", "revoke", revoked)
    soon = (datetime.now(UTC) + timedelta(seconds=4)).isoformat(timespec="seconds")
    made = stack.turnfold("keys", "create", "--tenant", "acme", "--expires", soon, "--json")
    expired = json.loads(made)["key"]
    time.sleep(5)
    prefix, key_id, secret = key.split("_")
    forger = rsa.generate_private_key(65537, 2048)
    return {
        "none": {},
        "no token": {"Authorization": "Bearer"},
        "without scheme": {"Authorization": key},
        "another scheme": {"Authorization": f"Basic {key}"},
        "two keys": {"Authorization": f"Bearer {key} {key}"},
        "not a key": bearer("no-such-key"),
        "unknown id": bearer(f"{prefix}_{'a' * 16}_{secret}"),
        "wrong secret": bearer(f"{prefix}_{key_id}_{'A' * 43}"),
        "expired": bearer(expired),
        "revoked": bearer(revoked),
        "token without signature": bearer(unsigned()),
        "token by a symmetric key": bearer(jwt.encode(claims(), "k" * 64, "HS256")),
        "token by a stranger": bearer(jwt.encode(claims(), forger, "RS256", {"kid": "1"})),
        "key in another header": {"X-Api-Key": key},
    }


def test_every_bad_credential_is_refused_in_the_same_words(
    stack: DeployedStack, nobody: httpx.Client, key: str
) -> None:
    told = {}
    for name, headers in bad_credentials(stack, key).items():
        for method, path in (("GET", SESSION), ("POST", f"{SESSION}/turns"), ("GET", "/nowhere")):
            answer = nobody.request(method, path, headers=headers)
            told[name, path] = problem(answer, 401, "unauthorized")
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    first = next(iter(told.values()))
    assert {name: one for name, one in told.items() if one != first} == {}
    assert nobody.get(SESSION, headers=bearer(key)).json()["turns"] == 1


def test_a_key_in_the_query_is_no_key(nobody: httpx.Client, key: str) -> None:
    problem(nobody.get(SESSION, params={"key": key, "api_key": key}), 401, "unauthorized")


def test_a_key_does_what_its_scopes_say(stack: DeployedStack, nobody: httpx.Client) -> None:
    reader, writer = stack.new_key("acme", "read"), stack.new_key("acme", "write")
    assert nobody.get(SESSION, headers=bearer(reader)).status_code == 200
    problem(nobody.post(f"{SESSION}/turns", json=TURN, headers=bearer(reader)), 403, "forbidden")
    problem(nobody.delete(SESSION, headers=bearer(reader)), 403, "forbidden")
    problem(nobody.get(SESSION, headers=bearer(writer)), 403, "forbidden")


def test_another_tenants_key_finds_nothing(stack: DeployedStack, nobody: httpx.Client) -> None:
    """And cannot tell what there is from what there is not."""
    stranger = bearer(stack.new_key("stranger"))
    told = [
        problem(nobody.get(path, headers=stranger), 404, "session_not_found")
        for path in (SESSION, "/v1/sessions/never-was")
    ]
    assert told[0] == told[1]
    assert nobody.get("/v1/sessions", headers=stranger).json()["items"] == []


def test_only_get_and_head_are_open(nobody: httpx.Client) -> None:
    for path in ("/healthz", "/openapi.json", "/docs"):
        assert nobody.get(path).status_code == 200
        assert nobody.head(path).status_code == 200
        problem(nobody.post(path), 401, "unauthorized")
    for path in ("/", "/healthz/x", "/docs/../v1/sessions", "/HEALTHZ", "//healthz"):
        problem(nobody.get(path), 401, "unauthorized")


def test_the_pepper_rotates_while_keys_are_in_use(
    stack: DeployedStack, nobody: httpx.Client, key: str
) -> None:
    before = stack.new_key("acme")
    stack.turnfold("keys", "rotate-pepper", "--json")
    after = stack.new_key("acme")
    for one in (key, before, after):
        assert nobody.get(SESSION, headers=bearer(one)).status_code == 200


def test_a_use_is_noted(stack: DeployedStack, nobody: httpx.Client) -> None:
    made = json.loads(stack.turnfold("keys", "create", "--tenant", "noted", "--json"))
    assert nobody.get("/v1/sessions", headers=bearer(made["key"])).status_code == 200
    (listed,) = json.loads(stack.turnfold("keys", "list", "--tenant", "noted", "--json"))
    assert listed["last_used_at"] is not None
