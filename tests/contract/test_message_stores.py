"""The library's stores keep the contract that a user's own store is tested by."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract.conftest import moto_reached
from turnfold.adapters.dynamo_messages import DynamoMessages
from turnfold.adapters.file_messages import FileMessages
from turnfold.adapters.in_memory_messages import InMemoryMessages
from turnfold.domain.errors import StoreError
from turnfold.testing import FIRST, SECOND, MessageStoreContract, new_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.aws import Services
    from turnfold.application.message_store import MessageStore


class TestInMemoryMessages(MessageStoreContract):
    def make_store(self) -> MessageStore:
        return InMemoryMessages()


class TestFileMessages(MessageStoreContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "made" / "when needed"

    def make_store(self) -> MessageStore:
        return FileMessages(self.folder)

    def test_half_of_a_surrogate_pair_survives(self) -> None:
        store, memory_id = self.make_store(), "\ud800"
        store.update_messages(memory_id, [{"role": "user", "content": "\udfff"}])
        assert store.get_messages(memory_id) == [{"role": "user", "content": "\udfff"}]

    def test_a_damaged_file_is_an_error_and_not_an_empty_memory(self) -> None:
        store = self.make_store()
        store.update_messages("x", FIRST)
        [path] = self.folder.iterdir()
        path.write_text('{"messages": [', encoding="utf-8")
        with pytest.raises(StoreError):
            store.get_messages("x")

    def test_a_write_that_fails_leaves_the_old_list_and_no_rest(self) -> None:
        store = self.make_store()
        store.update_messages("x", FIRST)
        unfit: Any = [{"role": "user", "content": object()}]
        with pytest.raises(TypeError):
            store.update_messages("x", unfit)
        assert store.get_messages("x") == FIRST
        assert len(list(self.folder.iterdir())) == 1

    def test_files_are_json_for_people(self) -> None:
        self.make_store().update_messages("x", FIRST)
        [path] = self.folder.iterdir()
        assert json.loads(path.read_text(encoding="utf-8")) == {"id": "x", "messages": FIRST}


class TestDynamoMessages(MessageStoreContract):
    @pytest.fixture(autouse=True)
    def _services(self, moto_services: Services) -> Iterator[None]:
        self.services = moto_services
        with moto_reached():
            yield

    def make_store(self) -> MessageStore:
        return DynamoMessages(self.services.dynamodb, self.services.table)

    def test_tenants_are_apart(self) -> None:
        memory_id = new_id()
        client, table = self.services.dynamodb, self.services.table
        one, other = DynamoMessages(client, table, "one"), DynamoMessages(client, table, "one#two")
        one.update_messages(memory_id, FIRST)
        assert other.get_messages(memory_id) == []

    def test_a_small_list_costs_one_call_each_way(self) -> None:
        store, memory_id = self.make_store(), new_id()
        with self.services.counted_calls() as calls:
            store.update_messages(memory_id, SECOND)
            store.get_messages(memory_id)
        assert calls == {"PutItem": 1, "GetItem": 1}

    def test_nothing_is_left_of_a_large_list(self) -> None:
        store, memory_id = self.make_store(), new_id()
        large = "".join(new_id() for _ in range(40_000))
        store.update_messages(memory_id, [{"role": "user", "content": large}])
        store.delete_messages(memory_id)
        items = self.services.dynamodb.scan(TableName=self.services.table)["Items"]
        assert not [item for item in items if item["SK"]["S"].startswith("PIECE#")]


@pytest.mark.parametrize("wrong", [None, 7, b"x"])
def test_an_id_that_is_no_text_is_refused(tmp_path: Path, wrong: Any) -> None:
    for store in (InMemoryMessages(), FileMessages(tmp_path)):
        for call in (store.get_messages, store.delete_messages):
            with pytest.raises(ValueError, match="must be a text"):
                call(wrong)
