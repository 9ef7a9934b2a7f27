"""A conformance suite for message stores of one's own. For pytest, which it does not import.

    class TestMyStore(MessageStoreContract):
        def make_store(self):
            return MyStore(...)

`make_store` gives a store; each call may give the same one, since every test uses ids of its own.
"""

import copy
import itertools
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from turnfold.application.message_store import MessageStore
from turnfold.library.windows import MessageWindowMemory

Messages = list[dict[str, Any]]

FIRST: Messages = [
    {"role": "user", "content": "first text"},
    {"role": "assistant", "content": "second text"},
]
SECOND: Messages = [{"role": "user", "content": "another text"}]

EVERY_KIND: Messages = [
    {"role": "system", "content": "rules", "name": "operator"},
    {"role": "developer", "content": [{"type": "text", "text": "in parts"}]},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "what is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ],
        "created_at": "2026-01-01T00:00:00Z",
    },
    {
        "role": "assistant",
        "content": "one moment",
        "tool_calls": [
            {
                "id": "t1",
                "type": "function",
                "function": {"name": "lookup", "arguments": '{"place": "Oslo"}'},
            },
            {"id": "t2", "type": "custom", "custom": {"name": "shell", "input": "ls\n"}},
        ],
    },
    {"role": "tool", "tool_call_id": "t1", "name": "lookup", "content": "rain"},
    {"role": "tool", "tool_call_id": "t2", "content": "", "is_error": True},
    {"role": "assistant", "content": None, "refusal": "no"},
    {"role": "assistant", "content": "", "own_member": {"deep": [1, 2.5, None, True, {}]}},
]
"""Every role and every member that a message may have, unknown ones included."""

TEXTS = (
    "line\nbreaks\r\n\u2028\u2029\u0085",
    "nul \x00 and escape \x1b",
    '{"json": "inside"} and \\ and "quotes"',
    "漢字 かな 한글 עברית العربية 👩‍👩‍👧 e\u0301",
    " " * 1000,
    "",
)

STRANGE_IDS = (
    "a/b/../c",
    "a#b",
    "..",
    "con",
    "ID",
    "id",
    " ",
    "",
    "%2F",
    "漢字",
    "line\nbreak",
    "x" * 1000,
)

LARGE_CHARACTERS = 1_000_000

_numbers = itertools.count(1)


class MessageStoreContract:
    """What every `MessageStore` has to do, one test for each promise."""

    def make_store(self) -> MessageStore:
        """The store to test."""
        raise NotImplementedError

    def test_an_unknown_id_reads_as_an_empty_list(self) -> None:
        """Neither None nor an error."""
        assert self.make_store().get_messages(new_id()) == []

    def test_an_update_is_read_back_in_order(self) -> None:
        """By another object of the same store too, if there is one."""
        memory_id = new_id()
        store = self.make_store()
        store.update_messages(memory_id, FIRST)
        assert store.get_messages(memory_id) == FIRST

    def test_an_update_replaces_everything(self) -> None:
        """It does not append."""
        store, memory_id = self.make_store(), new_id()
        store.update_messages(memory_id, FIRST)
        store.update_messages(memory_id, SECOND)
        assert store.get_messages(memory_id) == SECOND

    def test_an_empty_list_can_be_stored(self) -> None:
        """A token window may leave nothing."""
        store, memory_id = self.make_store(), new_id()
        store.update_messages(memory_id, FIRST)
        store.update_messages(memory_id, [])
        assert store.get_messages(memory_id) == []

    def test_deleting_empties(self) -> None:
        """And the id can be used again."""
        store, memory_id = self.make_store(), new_id()
        store.update_messages(memory_id, FIRST)
        store.delete_messages(memory_id)
        assert store.get_messages(memory_id) == []
        store.update_messages(memory_id, SECOND)
        assert store.get_messages(memory_id) == SECOND

    def test_deleting_an_unknown_id_is_no_error(self) -> None:
        """Once or twice."""
        store, memory_id = self.make_store(), new_id()
        store.delete_messages(memory_id)
        store.delete_messages(memory_id)
        assert store.get_messages(memory_id) == []

    def test_ids_are_apart(self) -> None:
        """What happens to one does not touch another."""
        store, one, other = self.make_store(), new_id(), new_id()
        store.update_messages(one, FIRST)
        store.update_messages(other, SECOND)
        store.delete_messages(one)
        assert store.get_messages(one) == []
        assert store.get_messages(other) == SECOND

    def test_any_text_is_an_id(self) -> None:
        """However alike two of them are."""
        store, base = self.make_store(), new_id()
        ids = [f"{base}{one}" for one in STRANGE_IDS]
        for number, memory_id in enumerate(ids):
            store.update_messages(memory_id, [{"role": "user", "content": str(number)}])
        for number, memory_id in enumerate(ids):
            assert store.get_messages(memory_id) == [{"role": "user", "content": str(number)}]

    def test_every_kind_of_message_survives(self) -> None:
        """With members that nobody knows, and numbers of their own type."""
        store, memory_id = self.make_store(), new_id()
        store.update_messages(memory_id, EVERY_KIND)
        read = store.get_messages(memory_id)
        assert read == EVERY_KIND
        assert [list(one) for one in read] == [list(one) for one in EVERY_KIND]
        deep = read[-1]["own_member"]["deep"]
        assert [type(one) for one in deep] == [int, float, type(None), bool, dict]

    def test_texts_survive_to_the_character(self) -> None:
        """Controls, line separators, scripts and emoji among them."""
        store, memory_id = self.make_store(), new_id()
        messages = [{"role": "user", "content": text} for text in TEXTS]
        store.update_messages(memory_id, messages)
        assert store.get_messages(memory_id) == messages

    def test_a_large_list_survives(self) -> None:
        """A million characters that do not compress well."""
        store, memory_id = self.make_store(), new_id()
        text = "".join(uuid.uuid4().hex for _ in range(LARGE_CHARACTERS // 32))
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "long"}]
        store.update_messages(memory_id, messages)
        assert store.get_messages(memory_id) == messages
        store.update_messages(memory_id, SECOND)
        assert store.get_messages(memory_id) == SECOND
        store.delete_messages(memory_id)
        assert store.get_messages(memory_id) == []

    def test_nothing_is_shared_with_the_caller(self) -> None:
        """Neither what was handed in nor what was handed out."""
        store, memory_id = self.make_store(), new_id()
        given = copy.deepcopy(EVERY_KIND)
        store.update_messages(memory_id, given)
        given[2]["content"][0]["text"] = "changed"
        given.append({"role": "user", "content": "more"})
        read: Any = store.get_messages(memory_id)
        read[3]["tool_calls"][0]["id"] = "changed"
        read.clear()
        assert store.get_messages(memory_id) == EVERY_KIND

    def test_readers_see_one_list_or_the_other(self) -> None:
        """Whatever writers do meanwhile."""
        store, memory_id = self.make_store(), new_id()
        lists = [
            [{"role": "user", "content": f"{number}-{at}"} for at in range(20)]
            for number in range(8)
        ]
        store.update_messages(memory_id, lists[0])

        def write_and_read(messages: Messages) -> list[Any]:
            store.update_messages(memory_id, messages)
            return list(store.get_messages(memory_id))

        with ThreadPoolExecutor(4) as pool:
            seen = list(pool.map(write_and_read, lists))
        assert all(one in lists for one in [*seen, store.get_messages(memory_id)])

    def test_a_window_works_on_it(self) -> None:
        """Two windows of one id see each other's messages."""
        store, memory_id = self.make_store(), new_id()
        window = MessageWindowMemory(3, memory_id=memory_id, store=store)
        other = MessageWindowMemory(3, memory_id=memory_id, store=store)
        for message in numbered(5):
            window.add(message)
        assert other.messages() == list(numbered(5))[2:]
        other.clear()
        assert window.messages() == []


def new_id() -> str:
    """An id that no other test has used."""
    return f"contract-{next(_numbers)}-{uuid.uuid4().hex}"


def numbered(count: int) -> Iterator[dict[str, Any]]:
    """User messages that name their number."""
    for number in range(count):
        yield {"role": "user", "content": f"message {number}"}
