"""The vector index of the table: made if it is asked for, and searched by the API alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infra.local.definitions import Definitions
from turnfold.adapters.dynamo_vectors import INDEX
from turnfold.bootstrap.resources import DEFAULT_DIMENSIONS

if TYPE_CHECKING:
    from pathlib import Path

ROLES = ("ApiRole", "TenantRole", "AuthorizerRole", "CompactorRole", "SweeperRole", "ArchivistRole")
ON = {"VectorIndex": "true", "EmbeddingDimensions": "1024"}


def actions(role: dict[str, Any]) -> dict[str, Any]:
    """The resources of every action that a role may take."""
    found = {}
    for policy in role["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            listed = statement["Action"]
            for action in listed if isinstance(listed, list) else [listed]:
                found[action] = statement
    return found


def test_without_vectors_in_the_table_there_is_no_index(root: Path) -> None:
    off = {"VectorIndex": "false"}
    table = Definitions.load(root / "template.yaml", off).properties("MemoryTable")
    assert "VectorIndexes" not in table
    # DynamoDB refuses the definition of an attribute that no key uses.
    assert "vec_scope" not in str(table["AttributeDefinitions"])


def test_the_index_takes_vectors_of_the_dimensions_that_the_model_is_asked_for(root: Path) -> None:
    definitions = Definitions.load(root / "template.yaml", ON)
    table = definitions.properties("MemoryTable")
    (index,) = table["VectorIndexes"]
    assert index == {
        "IndexName": INDEX,
        "VectorAttribute": {"AttributeName": "vector"},
        # Required by DynamoDB in every search, as it is the HASH element.
        "SearchSchema": [{"AttributeName": "vec_scope", "SearchSchemaElementType": "HASH"}],
        # What was said is in no projection, and neither is anything that names a user.
        "Projection": {"ProjectionType": "KEYS_ONLY"},
        "Dimensions": 1024,
        "DistanceFunction": "COSINE",
    }
    assert {"AttributeName": "vec_scope", "AttributeType": "S"} in table["AttributeDefinitions"]
    for function in ("ApiFunction", "CompactorFunction"):
        variables = definitions.function(function).environment
        assert variables["TURNFOLD_VECTOR_INDEX"] == "true"
        assert variables["TURNFOLD_EMBEDDING_DIMENSIONS"] == "1024"


def test_the_default_dimensions_are_the_codes(parameters: dict[str, Any]) -> None:
    assert parameters["EmbeddingDimensions"]["Default"] == DEFAULT_DIMENSIONS
    assert parameters["VectorIndex"]["Default"] == "true"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("isolation", ["on", "off"])
def test_only_who_serves_searches_may_search(root: Path, role: str, isolation: str) -> None:
    """The API function, or the tenant's own credentials where tenants are isolated."""
    parameters = ON | {"TenantIsolation": isolation}
    allowed = actions(Definitions.load(root / "template.yaml", parameters).properties(role))
    searches = role == ("TenantRole" if isolation == "on" else "ApiRole")
    # The tenant's role is not made where tenants share credentials.
    if not (role == "TenantRole" and isolation == "off"):
        assert ("dynamodb:SearchVectors" in allowed) is searches
    if searches:
        statement = allowed["dynamodb:SearchVectors"]
        assert statement["Action"] == "dynamodb:SearchVectors"
        assert statement["Resource"].endswith(":table/turnfold-memory/index/vectors")
        # Conditions on keys are not in a search's context, and would refuse it always.
        assert "Condition" not in statement


@pytest.mark.parametrize("role", ROLES)
def test_without_the_index_nobody_may_search(root: Path, role: str) -> None:
    for isolation in ("on", "off"):
        off = {"VectorIndex": "false", "TenantIsolation": isolation}
        definitions = Definitions.load(root / "template.yaml", off)
        assert "dynamodb:SearchVectors" not in actions(definitions.properties(role))


def test_the_compactor_may_write_what_is_searched(root: Path) -> None:
    allowed = actions(Definitions.load(root / "template.yaml", ON).properties("CompactorRole"))
    needed = {"PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem", "GetItem", "Query"}
    assert {f"dynamodb:{one}" for one in needed} <= set(allowed)
