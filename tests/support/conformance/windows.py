"""Windows, stores and memories by id, as LangChain4j has them."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from support.conformance.notation import Among, Case, Runner, labels
from turnfold.adapters.file_messages import FileMessages
from turnfold.adapters.in_memory_messages import InMemoryMessages
from turnfold.domain.estimators import (
    CallableEstimator,
    CharacterEstimator,
    Estimator,
    OverheadEstimator,
)
from turnfold.library.chat_memories import ChatMemories
from turnfold.library.windows import (
    DEFAULT_ID,
    MessageWindowMemory,
    TokenWindowMemory,
    WindowMemory,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnfold.application.message_store import MessageStore


class CountingStore:
    """A store that counts its calls."""

    def __init__(self, store: MessageStore) -> None:
        self.store = store
        self.calls = Counter({"get": 0, "update": 0, "delete": 0})

    def get_messages(self, memory_id: str) -> list[Any]:
        self.calls["get"] += 1
        return self.store.get_messages(memory_id)

    def update_messages(self, memory_id: str, messages: Sequence[Any]) -> None:
        self.calls["update"] += 1
        self.store.update_messages(memory_id, messages)

    def delete_messages(self, memory_id: str) -> None:
        self.calls["delete"] += 1
        self.store.delete_messages(memory_id)


def make_store(case: Case) -> MessageStore:
    """In memory, or in files where the case wants a persistent store."""
    if case.config.get("persistent"):
        return FileMessages(case.folder / "messages")
    return InMemoryMessages()


def estimator_of(name: str | None) -> Estimator:
    """The estimator that a case names."""
    match name:
        case None | "listed_tokens_plus_3":
            return CallableEstimator(lambda message: message["tokens"], list_tokens=3)
        case "odin":
            return CharacterEstimator()
        case "mm-memory":
            return OverheadEstimator()
        case _:
            raise AssertionError(f"the adapter does not know the estimator {name!r}")


class WindowRunner(Runner):
    """A message window or a token window."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.store = CountingStore(make_store(case))
        self.calls = self.store.calls
        config = dict(case.config)
        by_id = config.pop("max_messages_by_id", None) or config.pop("max_tokens_by_id", None)
        self.maximum = config.pop("max_messages", None) or config.pop("max_tokens", None)
        if case.given["component"] == "message_window":
            self.maximum = case.config.get("max_messages")
        else:
            self.maximum = case.config.get("max_tokens")
        options: dict[str, Any] = {
            "memory_id": config.pop("id", DEFAULT_ID),
            "store": self.store,
            "system_first": config.pop("system_first", False),
            "keep_newest": config.pop("keep_newest", False),
        }
        config.pop("persistent", None)
        config.pop("max_messages", None)
        config.pop("max_tokens", None)
        estimator = estimator_of(config.pop("estimator", None))
        assert not config, f"the adapter does not know {config}"
        maximum: Any = self.maximum
        if by_id is not None:
            maximum = lambda memory_id: by_id.get(memory_id, by_id.get("*"))  # noqa: E731 - two forms of one rule
        elif any(step["op"] == "set_max" for step in case.steps):
            maximum = lambda _id: self.maximum  # noqa: E731 - two forms of one rule
        self.window: WindowMemory = (
            MessageWindowMemory(maximum, **options)
            if case.given["component"] == "message_window"
            else TokenWindowMemory(maximum, estimator, **options)
        )
        if "store" in case.given:
            self.store.store.update_messages(self.window.id, case.picked(case.given["store"]))
        self.lists: dict[str, list[Any]] = {}

    def op_id(self) -> str:
        return self.window.id

    def op_add(self, ref: str) -> None:
        self.window.add(self.case.messages[ref])

    def op_add_many(
        self, refs: list[str] | None, caller_list: str | None = None, form: str = "list"
    ) -> None:
        messages = None if refs is None else self._caller_list(refs, caller_list)
        if form == "varargs":
            self.window.add(*(messages or ()))
        else:
            self.window.add_all(messages)

    def op_set(
        self, refs: list[str] | None, caller_list: str | None = None, form: str = "list"
    ) -> None:
        assert form in ("list", "varargs")
        messages: Any = None if refs is None else self._caller_list(refs, caller_list)
        self.window.set(messages)

    def op_read(self) -> list[str]:
        return labels(self.window.messages())

    def op_clear(self) -> None:
        self.window.clear()

    def op_set_max(self, value: int) -> None:
        self.maximum = value

    def op_mutate_caller_list(
        self, caller_list: str, append: str | None = None, remove: str | None = None
    ) -> None:
        if append is not None:
            self.lists[caller_list].append(self.case.messages[append])
        if remove is not None:
            self.lists[caller_list].remove(self.case.messages[remove])

    def op_mutate_read(self, append: str) -> None:
        self.window.messages().append(self.case.messages[append])

    def read(self) -> list[str]:
        return labels(self.window.messages())

    def after_step(self, step: dict[str, Any], value: Any) -> Any:
        return self.read()

    def checked(self) -> dict[str, Callable[[], Any]]:
        window = self.window
        checks: dict[str, Callable[[], Any]] = {
            "flags": self._flags,
            "caller_list": lambda: {name: labels(one) for name, one in self.lists.items()},
            "stored": lambda: labels(self.store.store.get_messages(window.id)),
        }
        if isinstance(window, TokenWindowMemory):
            checks["total_tokens"] = window.total_tokens
        return checks

    def _flags(self) -> Among:
        self.window.messages()
        return Among(self.window.flags)

    def _caller_list(self, refs: list[str], name: str | None) -> list[Any]:
        if name is None:
            return self.case.picked(refs)
        return self.lists.setdefault(name, self.case.picked(refs))


class StoreRunner(Runner):
    """A message store."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.deep_equal = True

    @property
    def store(self) -> MessageStore:
        if self.case.config.get("persistent"):
            return make_store(self.case)
        if not hasattr(self, "_store"):
            self._store = make_store(self.case)
        return self._store

    def op_get(self, id: str) -> list[str]:  # noqa: A002 - the notation's word
        messages = self.store.get_messages(id)
        known = self.case.messages
        self.deep_equal &= all(one == known[one["id"]] for one in messages)
        return labels(messages)

    def op_update(self, id: str, refs: list[str]) -> None:  # noqa: A002 - the notation's word
        self.store.update_messages(id, self.case.picked(refs))

    def op_delete(self, id: str) -> None:  # noqa: A002 - the notation's word
        self.store.delete_messages(id)

    def read(self) -> Any:
        return self.last

    def checked(self) -> dict[str, Callable[[], Any]]:
        return {"deep_equal": lambda: self.deep_equal}


class MemoriesRunner(Runner):
    """The memories of an application, by id."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        config = dict(case.config)
        self.created = 0
        self.sent: list[list[str]] = []
        self._lock = threading.Lock()
        self._maximum = config.pop("max_messages")
        self._system_first = config.pop("system_first", False)
        self._store = make_store(case) if config.pop("persistent", False) else None
        self.memories = ChatMemories(
            self._make, store_retrieved_content=config.pop("store_retrieved_content", True)
        )
        assert not config, f"the adapter does not know {config}"
        self.touched = DEFAULT_ID

    def _make(self, memory_id: str) -> WindowMemory:
        with self._lock:
            self.created += 1
        return MessageWindowMemory(
            self._maximum,
            memory_id=memory_id,
            store=self._store,
            system_first=self._system_first,
        )

    def op_add(self, ref: str, id: str = DEFAULT_ID) -> None:  # noqa: A002 - the notation's word
        self._memory(id).add(self.case.messages[ref])

    def op_read(self, id: str = DEFAULT_ID) -> list[str]:  # noqa: A002 - the notation's word
        return labels(self._memory(id).messages())

    def op_get_or_create(self, id: str = DEFAULT_ID) -> None:  # noqa: A002 - the notation's word
        self._memory(id)

    def op_evict(self, id: str) -> None:  # noqa: A002 - the notation's word
        self.memories.evict(id)

    def op_clear(self, id: str | None = None) -> None:  # noqa: A002 - the notation's word
        if id is None:
            self.memories.clear()
        else:
            self._memory(id).clear()

    def op_concurrently(self, times: int, do: dict[str, Any]) -> None:
        barrier = threading.Barrier(times)

        def run(_number: int) -> None:
            barrier.wait()
            self.do(do)

        with ThreadPoolExecutor(times) as pool:
            list(pool.map(run, range(times)))

    def op_turn(
        self,
        user: str,
        answer: str | None,
        augmented: str | None = None,
        model_error: bool = False,
        id: str = DEFAULT_ID,  # noqa: A002 - the notation's word
        system: str | None = None,
    ) -> str:
        if system is not None:
            self._memory(id).add(self.case.messages[system])
        self.touched = id

        def ask(messages: Sequence[Any]) -> dict[str, Any]:
            self.sent.append(labels(messages))
            if model_error or answer is None:
                raise ConnectionError("scripted")
            return self.case.messages[answer]

        extra = None if augmented is None else self.case.messages[augmented]
        try:
            self.memories.turn(id, self.case.messages[user], ask, augmented=extra)
        except ConnectionError:
            return "error"
        return "ok"

    def read(self) -> Any:
        if isinstance(self.last, list):
            return self.last
        return labels(self._memory(self.touched).messages())

    def checked(self) -> dict[str, Callable[[], Any]]:
        return {"created": lambda: self.created, "sent_to_model": self._sent}

    def _sent(self) -> list[Any]:
        expected = self.case.then["sent_to_model"]
        if expected and isinstance(expected[0], list):
            return self.sent
        return self.sent[-1] if self.sent else []

    def _memory(self, memory_id: str) -> WindowMemory:
        memory = self.memories.get_or_create(memory_id)
        self.touched = memory_id
        return memory
