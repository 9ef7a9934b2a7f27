"""Vectors in the table: items, calls, and a table without the index. moto has no SearchVectors."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from contract.conftest import DIMENSIONS, Stores
from contract.test_vector_index_contract import EMPTY, MODEL, found, pointing, talked
from turnfold.adapters.dynamo_keys import VECTOR, VECTORS, partition_key
from turnfold.adapters.dynamo_vectors import INDEX, DynamoVectors
from turnfold.domain.errors import VectorsUnavailableError
from turnfold.domain.recall.vectors import unit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mypy_boto3_dynamodb import DynamoDBClient

    from support.aws import Services
    from turnfold.domain.sessions import Session

pytestmark = [pytest.mark.ministack, pytest.mark.parametrize("backend", ["ministack"])]


@pytest.fixture
def client(services: Services) -> DynamoDBClient:
    return services.dynamodb


@pytest.fixture
def table(services: Services) -> DynamoVectors:
    return DynamoVectors(services.dynamodb, services.table, DIMENSIONS)


def vector_items(client: DynamoDBClient, session: Session) -> Sequence[dict[str, Any]]:
    pages = client.get_paginator("query").paginate(
        TableName="memory",
        KeyConditionExpression="PK = :pk AND begins_with(SK, :vector)",
        ExpressionAttributeValues={
            ":pk": {"S": partition_key(session.key)},
            ":vector": {"S": VECTOR},
        },
    )
    return [item for page in pages for item in page["Items"]]


def test_what_another_model_left_is_removed_also_after_a_crash(
    stores: Stores, services: Services, table: DynamoVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = services.dynamodb
    session = talked(stores, 1)
    table.put(session, MODEL, 1, pointing(*range(1, 131)))
    table.put(session, "newer/8", 1, pointing(1, 2))
    assert len(vector_items(client, session)) == 132
    write, writes = client.transact_write_items, iter(range(10))

    def dies(**request: Any) -> Any:
        if next(writes):
            raise SystemExit
        return write(**request)

    with monkeypatch.context() as patch:
        patch.setattr(client, "transact_write_items", dies)
        with pytest.raises(SystemExit):
            table.resume(session, "newer/8")
    assert 2 < len(vector_items(client, session)) < 132
    assert table.resume(session, "newer/8") == 2
    assert len(vector_items(client, session)) == 2
    with services.counted_calls() as calls:
        assert table.resume(session, "newer/8") == 2
    assert calls == {"GetItem": 1}


def begin_anew(client: DynamoDBClient, session: Session) -> Session:
    """The session's own item was lost and made anew from its transcript."""
    client.update_item(
        TableName="memory",
        Key={"PK": {"S": partition_key(session.key)}, "SK": {"S": "META"}},
        UpdateExpression="SET epoch = :new",
        ExpressionAttributeValues={":new": {"S": "e2"}},
    )
    return replace(session, epoch="e2")


def test_vectors_of_a_life_before_are_replaced_and_removed(
    stores: Stores, client: DynamoDBClient, table: DynamoVectors
) -> None:
    before = talked(stores, 1)
    assert table.put(before, MODEL, 1, pointing(1, 2, 3))
    now = begin_anew(client, before)
    assert table.resume(now, MODEL) == 0
    assert found(table, now, 1) == []
    assert not table.put(before, MODEL, 4, pointing(4))
    assert table.put(now, MODEL, 1, pointing(1))
    assert table.resume(now, MODEL) == 1
    assert len(vector_items(client, now)) == 1
    assert found(table, now, 1) == [1]


def test_whoever_tidies_up_for_a_life_before_removes_nothing_of_this_one(
    stores: Stores, client: DynamoDBClient, table: DynamoVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = talked(stores, 1)
    assert table.put(before, "older/8", 1, pointing(1, 2, 3))
    assert table.put(before, MODEL, 1, pointing(1))
    read = client.get_item

    def read_and_sleep(**request: Any) -> Any:
        answer = read(**request)
        now = begin_anew(client, before)
        assert table.put(now, MODEL, 1, pointing(1, 2))
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(client, "get_item", read_and_sleep)
        assert table.resume(before, MODEL) == 1
    now = replace(before, epoch="e2")
    assert found(table, now, 1) == [1, 2]
    assert table.resume(now, MODEL) == 2
    assert len(vector_items(client, now)) == 2


def test_one_transaction_for_64_turns_and_one_search(
    stores: Stores, services: Services, table: DynamoVectors
) -> None:
    session = talked(stores, 1)
    with services.counted_calls() as calls:
        assert table.put(session, MODEL, 1, pointing(*range(1, 65)))
        assert table.closest(session, MODEL, pointing(1)[0], 100)
    assert calls == {"TransactWriteItems": 1, "SearchVectors": 1}


def test_vectors_of_other_dimensions_are_refused_before_they_are_sent(
    stores: Stores, client: DynamoDBClient, table: DynamoVectors
) -> None:
    session = talked(stores, 1)
    with pytest.raises(VectorsUnavailableError, match="2 numbers, the index takes 8"):
        table.closest(session, MODEL, unit([1.0, 1.0]), 3)
    with pytest.raises(VectorsUnavailableError, match="2 numbers, the index takes 8"):
        table.put(session, MODEL, 1, [unit([1.0, 1.0])])
    # In this process no more are made, which would cost money.
    with pytest.raises(VectorsUnavailableError, match="2 numbers, the index takes 8"):
        table.resume(session, MODEL)
    assert DynamoVectors(client, "memory", DIMENSIONS).resume(session, MODEL) == 0


def test_an_index_of_other_dimensions_than_it_is_said_to_have_takes_nothing(
    stores: Stores, client: DynamoDBClient
) -> None:
    wrong = DynamoVectors(client, "memory", 2)
    session = talked(stores, 1)
    assert wrong.resume(session, MODEL) == 0
    for _ in range(2):
        with pytest.raises(VectorsUnavailableError, match="another length"):
            wrong.put(session, MODEL, 1, [unit([1.0, 1.0])])
        with pytest.raises(VectorsUnavailableError, match="another length"):
            wrong.resume(session, MODEL)
    with pytest.raises(VectorsUnavailableError):
        wrong.closest(session, MODEL, unit([1.0, 1.0]), 3)
    assert vector_items(client, session) == []


def test_vectors_made_with_other_dimensions_are_not_gone_on_with(
    stores: Stores, client: DynamoDBClient, table: DynamoVectors
) -> None:
    """The index was made anew for a model of the same name."""
    session = talked(stores, 1)
    assert table.put(session, MODEL, 1, pointing(1, 2))
    other = DynamoVectors(client, "memory", DIMENSIONS * 2)
    assert other.resume(session, MODEL) == 0


@pytest.mark.slow
def test_a_table_without_the_index_takes_vectors_and_finds_them_when_it_is_built(
    stores: Stores, client: DynamoDBClient, table: DynamoVectors
) -> None:
    described = client.describe_table(TableName="memory")["Table"]
    settings = ("VectorAttribute", "SearchSchema", "Projection", "Dimensions", "DistanceFunction")
    index: Any = described["VectorIndexes"][0]
    create: Any = {"IndexName": INDEX} | {name: index[name] for name in settings}
    keys = [one for one in described["AttributeDefinitions"] if one["AttributeName"] in "PK SK"]
    name = f"plain-{stores.tenant}"
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=described["KeySchema"],
        AttributeDefinitions=keys,
    )
    session = talked(stores, 1)
    meta = {"PK": {"S": partition_key(session.key)}, "SK": {"S": "META"}}
    live = {"epoch": {"S": session.epoch}, "status": {"S": "live"}}
    client.put_item(TableName=name, Item=meta | live)
    plain = DynamoVectors(client, name, DIMENSIONS)
    assert plain.put(session, MODEL, 1, pointing(1))
    with pytest.raises(VectorsUnavailableError):
        found(plain, session, 1)
    client.update_table(
        TableName=name,
        AttributeDefinitions=[*keys, {"AttributeName": "vec_scope", "AttributeType": "S"}],
        VectorIndexUpdates=[{"Create": create}],
    )
    deadline = time.monotonic() + 60
    refusals: set[str] = set()
    hits: list[int] = []
    while not hits:
        assert time.monotonic() < deadline, "the index is not built"
        try:
            hits = found(plain, session, 1)
        except VectorsUnavailableError as error:
            refusals.add(str(error))
            time.sleep(0.5)
    # It was not searched while it was being built, neither did anything else go wrong.
    assert refusals == {"search vectors: ValidationException"}
    assert hits == [1]


def test_a_table_that_is_not_there_cannot_be_searched(
    stores: Stores, client: DynamoDBClient, table: DynamoVectors
) -> None:
    absent = DynamoVectors(client, "no-such-table", DIMENSIONS)
    with pytest.raises(VectorsUnavailableError):
        found(absent, talked(stores, 1), 1)


def test_the_item_that_says_how_far_vectors_go_is_no_vector(
    stores: Stores, client: DynamoDBClient, table: DynamoVectors
) -> None:
    session = talked(stores, 1)
    assert table.put(session, MODEL, 1, [EMPTY])
    assert vector_items(client, session) == []
    key = {"PK": {"S": partition_key(session.key)}, "SK": {"S": VECTORS}}
    item = client.get_item(TableName="memory", Key=key)["Item"]
    assert set(item) == {"PK", "SK", "scope", "former", "through"}
