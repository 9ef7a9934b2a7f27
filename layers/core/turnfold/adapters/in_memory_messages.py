"""Lists of messages in this process."""

import copy
import threading
from collections.abc import Sequence

from turnfold.domain.memory_ids import check_memory_id
from turnfold.domain.messages import Message


class InMemoryMessages:
    """A `MessageStore` that forgets everything with the process. Safe for several threads."""

    def __init__(self) -> None:
        """Begin empty."""
        self._lock = threading.Lock()
        self._lists: dict[str, list[Message]] = {}

    def get_messages(self, memory_id: str) -> list[Message]:
        """See `MessageStore`."""
        with self._lock:
            return copy.deepcopy(self._lists.get(check_memory_id(memory_id), []))

    def update_messages(self, memory_id: str, messages: Sequence[Message]) -> None:
        """See `MessageStore`."""
        check_memory_id(memory_id)
        own = copy.deepcopy(list(messages))
        with self._lock:
            self._lists[memory_id] = own

    def delete_messages(self, memory_id: str) -> None:
        """See `MessageStore`."""
        with self._lock:
            self._lists.pop(check_memory_id(memory_id), None)
