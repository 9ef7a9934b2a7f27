"""Drivers: where a `MemoryManager` keeps its messages (Odin's drivers)."""

import copy
from collections.abc import Sequence
from typing import Any, Protocol

from turnfold.application.message_store import MessageStore
from turnfold.domain.messages import Message, is_leading

DEFAULT_MAX_MESSAGES = 200


class Driver(Protocol):
    """Keeps ordinary messages up to a number, and system messages apart without a limit."""

    def add_message(self, message: Message) -> None:
        """Append an ordinary message; the oldest leave when there are too many."""
        ...

    def add_system_message(self, message: Message) -> None:
        """Append a system message."""
        ...

    def get_messages(self) -> list[Message]:
        """The ordinary messages in order."""
        ...

    def get_system_messages(self) -> list[Message]:
        """The system messages in order."""
        ...

    def clear(self) -> None:
        """Forget everything."""
        ...


class InMemoryDriver:
    """A `Driver` in this process.

    Unlike Odin's it brings a list that a lowered maximum made too long down at once.
    """

    def __init__(self, max_messages: int = DEFAULT_MAX_MESSAGES) -> None:
        """Keep that many ordinary messages; `ValueError` for fewer than 1."""
        self._config: dict[str, Any] = {"max_messages": checked_maximum(max_messages)}
        self._messages: list[Message] = []
        self._system: list[Message] = []

    def add_message(self, message: Message) -> None:
        """See `Driver`."""
        self._messages.append(copy.deepcopy(message))
        del self._messages[: -self._config["max_messages"]]

    def add_system_message(self, message: Message) -> None:
        """See `Driver`."""
        self._system.append(copy.deepcopy(message))

    def get_messages(self) -> list[Message]:
        """See `Driver`."""
        return copy.deepcopy(self._messages[-self._config["max_messages"] :])

    def get_system_messages(self) -> list[Message]:
        """See `Driver`."""
        return copy.deepcopy(self._system)

    def clear(self) -> None:
        """See `Driver`."""
        self._messages.clear()
        self._system.clear()

    def get_config(self, key: str, default: object = None) -> Any:  # noqa: ANN401 - any setting
        """A setting of the driver."""
        return self._config.get(key, default)

    def set_config(self, key: str, value: object) -> None:
        """Change a setting; `max_messages` is the one that counts."""
        self._config[key] = checked_maximum(value) if key == "max_messages" else value


class StoreDriver:
    """A `Driver` over one id of a message store, so that a manager outlives its process.

    The newest system message and the others are told apart by their roles.
    """

    def __init__(
        self, store: MessageStore, memory_id: str, max_messages: int = DEFAULT_MAX_MESSAGES
    ) -> None:
        """Keep the messages under that id; `ValueError` for a maximum below 1."""
        self._store = store
        self._id = memory_id
        self._max = checked_maximum(max_messages)

    def add_message(self, message: Message) -> None:
        """See `Driver`."""
        self._write(self.get_system_messages(), [*self.get_messages(), message])

    def add_system_message(self, message: Message) -> None:
        """See `Driver`."""
        self._write([*self.get_system_messages(), message], self.get_messages())

    def get_messages(self) -> list[Message]:
        """See `Driver`."""
        return [one for one in self._store.get_messages(self._id) if not is_leading(one)]

    def get_system_messages(self) -> list[Message]:
        """See `Driver`."""
        return [one for one in self._store.get_messages(self._id) if is_leading(one)]

    def clear(self) -> None:
        """See `Driver`."""
        self._store.delete_messages(self._id)

    def _write(self, system: Sequence[Message], messages: Sequence[Message]) -> None:
        self._store.update_messages(self._id, [*system, *messages[-self._max :]])


def checked_maximum(value: object) -> int:
    """The maximum itself if it is a whole number of at least 1; `ValueError` otherwise."""
    if type(value) is not int or value < 1:
        raise ValueError("a maximum must be a whole number of at least 1")
    return value
