"""Makes moto's transactions cheap.

Before each transaction moto copies the whole table, deeply and once for each of its parts, to be
able to take it back. With some hundred items that is most of a test's time. Here the copy shares
the items, and an item is copied when it is updated, the only place where moto changes one.
"""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from moto.dynamodb import models
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table

if TYPE_CHECKING:
    import pytest


def make_transactions_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the end of the test."""
    update = DynamoDBBackend.update_item

    def update_item(self: Any, table_name: str, key: dict[str, Any], **options: Any) -> Any:
        table = self.get_table(table_name)
        parts = table.items.get(DynamoType(key[table.hash_key_attr]), {})
        place = DynamoType(key[table.range_key_attr])
        if place in parts:
            parts[place] = copy.deepcopy(parts[place])
        return update(self, table_name, key, **options)

    monkeypatch.setattr(DynamoDBBackend, "update_item", update_item)
    monkeypatch.setattr(models, "copy", SimpleNamespace(deepcopy=_copied, copy=copy.copy))


def _copied(value: Any) -> Any:
    if not isinstance(value, Table):
        return copy.deepcopy(value)
    other = copy.copy(value)
    other.items = copy.copy(value.items)
    other.items.update({name: dict(parts) for name, parts in value.items.items()})
    return other
