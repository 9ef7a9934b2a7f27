"""The policy of one tenant's credentials, by the rules of IAM.

The emulator's IAM decides in tests/integration/test_tenant_isolation.py. It does not undo IAM's
escapes of wildcards, so names that hold some are judged here, by a reading of IAM's documentation:
`*` and `?` are wildcards, `${*}`, `${?}` and `${$}` are the characters themselves, and any other
`${...}` would be a variable.
"""

import json
import re
from typing import Any

import pytest

from turnfold.adapters.dynamo_keys import (
    erased_session_partition,
    erased_user_partition,
    erasure_partition,
    partition_key,
    tenant_key,
    user_key,
)
from turnfold.adapters.s3_archive import record_key, session_prefix
from turnfold.adapters.tenant_policy import MAX_POLICY_CHARACTERS, tenant_policy
from turnfold.domain.errors import InvalidIdError
from turnfold.domain.sessions import SessionKey

TABLE, BUCKET = "arn:aws:dynamodb:eu-west-1:123456789012:table/m", "arn:aws:s3:::b"
NAMES = [
    "acme", "acme2", "acm", "ac*", "acm?", "*", "?", "$", "${*}", "${aws:userid}", "acme#", "#",
    "acme#S#s1", "acme%23", "acme/", "a/../b", "acme/session=s1", "session=s/", "漢字", "Acme",
    "x" * 256, "!" + "a" * 64, " acme",
]  # fmt: skip


def statements(tenant: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(tenant_policy(tenant, TABLE, BUCKET))["Statement"]
    return found


def matches(pattern: str, value: str) -> bool:
    parts = re.split(r"(\$\{[*?$]\}|\*|\?)", pattern)
    assert not any("${" in part for part in parts[::2]), "a variable"
    wild = {"*": ".*", "?": "."}
    expression = "".join(
        wild.get(part) or re.escape(part[2] if "${" in part else part) for part in parts
    )
    return re.fullmatch(expression, value, re.DOTALL) is not None


def may_use_keys(tenant: str, *keys: str) -> bool:
    """Whether a call on the table with these leading keys is allowed."""
    condition = statements(tenant)[0]["Condition"]
    patterns = condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    present = condition["Null"]["dynamodb:LeadingKeys"] == "false"
    return bool(keys or not present) and all(
        any(matches(pattern, key) for pattern in patterns) for key in keys
    )


def may_use_object(tenant: str, key: str) -> bool:
    return matches(statements(tenant)[1]["Resource"], f"{BUCKET}/{key}")


def may_list(tenant: str, prefix: str) -> bool:
    return matches(statements(tenant)[2]["Condition"]["StringLike"]["s3:prefix"], prefix)


def keys_of(tenant: str) -> list[str]:
    session = SessionKey(tenant, "a session")
    return [
        partition_key(session),
        tenant_key(tenant),
        user_key(tenant, "a user"),
        erasure_partition(tenant, "an erasure"),
        erased_session_partition(session),
        erased_user_partition(tenant, "a user"),
    ]


@pytest.mark.parametrize("tenant", NAMES)
def test_a_tenant_reaches_all_of_its_own(tenant: str) -> None:
    assert may_use_keys(tenant, *keys_of(tenant))
    session = SessionKey(tenant, "a session")
    assert may_use_object(tenant, record_key(session, 1, "t1"))
    assert may_list(tenant, f"{session_prefix(session)}turns/")


@pytest.mark.parametrize("tenant", NAMES)
def test_a_tenant_reaches_nothing_else(tenant: str) -> None:
    for other in set(NAMES) - {tenant}:
        for key in keys_of(other):
            assert not may_use_keys(tenant, key), (other, key)
            assert not may_use_keys(tenant, keys_of(tenant)[0], key), (other, key)
        session = SessionKey(other, "a session")
        assert not may_use_object(tenant, record_key(session, 1, "t1")), other
        assert not may_list(tenant, session_prefix(session)), other
    assert not may_use_keys(tenant)
    for prefix in ("", "v1/", "v1/tenant="):
        assert not may_list(tenant, prefix)
        assert not may_use_object(tenant, prefix)
    for key in ("D#0", "E#0", "T#", "T"):
        assert not may_use_keys(tenant, key)


def test_the_policy_names_the_stacks_table_and_bucket_only() -> None:
    memory, objects, lists, elsewhere = statements("acme")
    assert memory["Resource"] == [TABLE, f"{TABLE}/index/*"]
    assert objects["Resource"].startswith(f"{BUCKET}/v1/tenant=acme/")
    assert lists["Resource"] == BUCKET
    # Which index and which key, is said by the role. IAM knows no condition on what a vector search
    # looks at: one would never hold, and refuse every search.
    assert elsewhere == {
        "Effect": "Allow",
        "Action": ["dynamodb:SearchVectors", "kms:Decrypt", "kms:GenerateDataKey"],
        "Resource": "*",
    }
    for statement in (memory, lists):
        assert statement["Condition"]


@pytest.mark.parametrize("tenant", ["a" * 256, "%" * 100, "漢" * 80, "👩" * 40, '"' * 256])
def test_it_fits_into_what_sts_takes(tenant: str) -> None:
    text = tenant_policy(tenant, f"{TABLE}{'x' * 60}", f"{BUCKET}{'x' * 60}")
    assert len(text) <= MAX_POLICY_CHARACTERS
    assert text.isascii()


@pytest.mark.parametrize("tenant", ["漢" * 256, "*" * 256])
def test_a_name_that_does_not_fit_is_refused(tenant: str) -> None:
    with pytest.raises(InvalidIdError):
        tenant_policy(tenant, TABLE, BUCKET)
