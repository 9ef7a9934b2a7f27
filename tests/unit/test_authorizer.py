"""The authorizer: what API Gateway is told of a good credential, and of every bad one."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from authorizer import app
from turnfold.adapters.in_memory_api_keys import InMemoryKeyStore, InMemoryPeppers
from turnfold.application.api_keys import ApiKeys, KeyRequest
from turnfold.application.identify_caller import IdentifyCaller
from turnfold.domain.api_keys import read_key

ARN = "arn:aws:execute-api:us-east-1:123456789012:abcdef1234/live/POST/v1/sessions/s1/turns"
NOW = datetime(2026, 5, 1, tzinfo=UTC)


class Access:
    """Keys in memory, and no tokens."""

    def __init__(self) -> None:
        self.now = NOW
        self.store = InMemoryKeyStore()
        peppers = InMemoryPeppers("p1", {"p1": b"1" * 64})
        self.keys = ApiKeys(self.store, peppers, lambda: self.now)
        self.identify = IdentifyCaller(self.store, peppers, lambda: self.now)

    def create(self, tenant: str = "acme", **options: Any) -> str:
        return self.keys.create(KeyRequest(tenant, frozenset({"write", "read"}), **options))[0]


@pytest.fixture
def access(monkeypatch: pytest.MonkeyPatch) -> Access:
    made = Access()
    monkeypatch.setattr(app, "access", lambda: made)
    return made


def ask(header: object) -> dict[str, Any]:
    event = {"type": "TOKEN", "authorizationToken": header, "methodArn": ARN}
    return app.handler(event, None)


def effect(answer: dict[str, Any]) -> str:
    (statement,) = answer["policyDocument"]["Statement"]
    assert statement["Action"] == "execute-api:Invoke"
    assert statement["Resource"] == ARN.split("/POST", maxsplit=1)[0] + "/*"
    found: str = statement["Effect"]
    return found


def test_a_good_key(access: Access) -> None:
    key = access.create("acme 漢#1")
    sent = read_key(key)
    assert sent is not None
    record = access.store.get(sent.key_id)
    assert record is not None
    answer = ask(f"Bearer {key}")
    assert effect(answer) == "Allow"
    assert answer["principalId"] == sent.key_id
    assert answer["context"] == {
        "tenant_id": "acme 漢#1",
        "scopes": "read write",
        "key_id": sent.key_id,
    }
    assert answer["usageIdentifierKey"] == record.usage_key
    assert sent.secret not in json.dumps(answer)


def test_all_bad_keys_are_told_the_same(access: Access) -> None:
    good, revoked = access.create(), access.create()
    expired = access.create(expires_at=NOW + timedelta(seconds=1))
    access.now += timedelta(seconds=1)
    access.keys.revoke(revoked.split("_")[1])
    wrong_secret = f"{good.rpartition('_')[0]}_{'A' * 43}"
    answers = [
        ask(header)
        for header in (
            f"Bearer {revoked}",
            f"Bearer {expired}",
            f"Bearer {wrong_secret}",
            f"Bearer tf_{'a' * 16}_{'A' * 43}",
            "Bearer no-such-key",
            "Bearer",
            "",
            None,
            ["Bearer x"],
            good,
            f"Basic {good}",
            f"Bearer {good} {good}",
            f"Bearer {good}x",
            "Bearer a.b.c",
            f"Bearer {'x' * 9000}",
        )
    ]
    assert effect(answers[0]) == "Deny"
    assert all(answer == answers[0] for answer in answers)
    assert "context" not in answers[0]
    assert effect(ask(f"bearer {good}")) == "Allow"


def test_when_it_cannot_be_told_nothing_of_it_is_said(
    access: Access, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: str) -> None:
        raise ValueError("tf_the_secret")

    monkeypatch.setattr(access, "identify", fail)
    with caplog.at_level(logging.ERROR), pytest.raises(RuntimeError) as caught:
        ask("Bearer anything")
    assert str(caught.value) == "cannot tell who calls"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert [record.__dict__["code"] for record in caplog.records] == ["AUTHORIZER_FAILED"]
    assert "tf_the_secret" not in caplog.records[0].getMessage()


def test_it_loads_none_of_the_memorys_code() -> None:
    import subprocess
    import sys

    script = "import sys, authorizer.app, turnfold.bootstrap_access; print(*sys.modules)"
    path = ":".join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    for name in ("jwt", "cryptography", "openai", "tiktoken", "boto3", "aws_lambda_powertools"):
        assert name not in loaded
    assert "turnfold.bootstrap" not in loaded
    assert "turnfold.adapters.dynamo_memory" not in loaded
