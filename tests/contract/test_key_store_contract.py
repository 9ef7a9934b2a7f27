"""What every `KeyStore` promises."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from contract.conftest import MINISTACK, MOTO
from infra.local.definitions import Definitions
from support.aws import TEMPLATE
from support.sessions import START
from turnfold.adapters.dynamo_api_keys import DynamoKeyStore
from turnfold.adapters.in_memory_api_keys import InMemoryKeyStore
from turnfold.domain.api_keys import ApiKey
from turnfold.domain.errors import GuardFailedError, StoreError

if TYPE_CHECKING:
    from support.aws import Services
    from turnfold.application.ports.access import KeyStore

pytestmark = pytest.mark.parametrize("backend", ["in-memory", MOTO, MINISTACK])

_numbers = itertools.count(1)


@pytest.fixture
def store(services_of_backend: Services | None) -> KeyStore:
    if services_of_backend is None:
        return InMemoryKeyStore()
    name = f"keys-{next(_numbers)}"
    table: Any = Definitions.load(TEMPLATE).properties("KeyTable")
    services_of_backend.dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=table["AttributeDefinitions"],
        KeySchema=table["KeySchema"],
    )
    return DynamoKeyStore(services_of_backend.dynamodb, name)


def a_key(key_id: str = "abcdefghijklmnop", **fields: Any) -> ApiKey:
    key = ApiKey(
        key_id=key_id,
        tenant="acme",
        scopes=frozenset({"read", "write"}),
        verifier=bytes(range(32)),
        pepper_id="p1",
        usage_key="usage",
        created_at=START,
    )
    return replace(key, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tenant": "漢 #1/%", "name": "for 'CI'", "scopes": frozenset({"admin"})},
        {
            "expires_at": START + timedelta(days=1),
            "revoked_at": START + timedelta(hours=1),
            "last_used_at": START + timedelta(minutes=1),
        },
    ],
)
def test_a_record_is_kept_as_it_is(store: KeyStore, fields: dict[str, Any]) -> None:
    key = a_key(**fields)
    store.add(key)
    assert store.get(key.key_id) == key
    assert store.list_keys(None) == (key,)


def test_what_is_not_there(store: KeyStore) -> None:
    assert store.get("abcdefghijklmnop") is None
    assert store.list_keys(None) == ()
    assert store.revoke("abcdefghijklmnop", START) is False
    store.note_use(a_key(), START, b"x" * 32, "p2")
    assert store.get("abcdefghijklmnop") is None


def test_an_id_is_taken_once(store: KeyStore) -> None:
    store.add(a_key())
    with pytest.raises(GuardFailedError):
        store.add(a_key(tenant="other"))
    assert store.get(a_key().key_id) == a_key()


def test_lists_are_sorted_by_age(store: KeyStore) -> None:
    keys = [
        a_key(f"key{n}", tenant=f"t{n % 2}", created_at=START - timedelta(hours=n))
        for n in range(6)
    ]
    for key in keys:
        store.add(key)
    assert store.list_keys(None) == tuple(reversed(keys))
    assert store.list_keys("t1") == tuple(reversed(keys[1::2]))
    assert store.list_keys("t") == ()


def test_the_first_revocation_counts(store: KeyStore) -> None:
    store.add(a_key())
    assert store.revoke(a_key().key_id, START) is True
    assert store.revoke(a_key().key_id, START + timedelta(days=1)) is True
    assert store.get(a_key().key_id) == a_key(revoked_at=START)


def test_a_use_is_noted_with_its_verifier(store: KeyStore) -> None:
    store.add(a_key())
    later = START + timedelta(hours=2)
    store.note_use(a_key(), later, b"y" * 32, "p2")
    expected = a_key(last_used_at=later, verifier=b"y" * 32, pepper_id="p2")
    assert store.get(a_key().key_id) == expected
    # One that was read before that change notes nothing.
    store.note_use(a_key(), later + timedelta(hours=2), b"z" * 32, "p1")
    assert store.get(a_key().key_id) == expected


def test_a_revoked_key_is_not_touched(store: KeyStore) -> None:
    store.add(a_key())
    store.revoke(a_key().key_id, START)
    store.note_use(a_key(), START, b"y" * 32, "p2")
    assert store.get(a_key().key_id) == a_key(revoked_at=START)


def test_a_table_that_is_missing_is_an_error_of_the_store(
    services_of_backend: Services | None,
) -> None:
    if services_of_backend is None:
        pytest.skip("memory is always there")
    lost = DynamoKeyStore(services_of_backend.dynamodb, "no-such-table")
    with pytest.raises(StoreError):
        lost.get("abcdefghijklmnop")
    with pytest.raises(StoreError):
        lost.note_use(a_key(), START, b"y" * 32, "p2")
