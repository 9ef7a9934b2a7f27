"""The OpenAPI document: up to date, complete, and true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from api.app import ROUTES
from infra.openapi.document import FILE, document, written
from infra.openapi.operations import OPERATIONS


def test_the_served_document_is_the_generated_one() -> None:
    assert FILE.read_text(encoding="utf-8") == written(), "run: python -m infra.openapi"


def test_every_route_is_described_and_nothing_else() -> None:
    assert {route.name for route in ROUTES} == set(OPERATIONS)
    assert len({route.name for route in ROUTES}) == len(ROUTES)


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(document())
    names = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert names <= document()["components"]["schemas"].keys()


def test_operations_are_named_once_and_say_what_they_do() -> None:
    operations = [one for path in document()["paths"].values() for one in path.values()]
    names = [one["operationId"] for one in operations]
    assert len(set(names)) == len(names)
    assert all(one["summary"] and one["responses"] for one in operations)


@pytest.mark.parametrize("name", ["docs.html", "openapi.json"])
def test_what_is_served_lies_beside_the_handler(name: str) -> None:
    assert (Path(FILE).parent / name).is_file()
