"""Conversations by id, each with a count policy: Odin's message history."""

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Self

from turnfold.domain.messages import Message
from turnfold.domain.policies.limit_count import LimitCountPolicy
from turnfold.domain.sessions import check_id
from turnfold.library.memory_manager import MemoryManager

DEFAULT_MAX_RECORD = 10


class MessageHistory:
    """Keeps any number of conversations apart. A conversation is made when it is first named."""

    def __init__(
        self,
        max_record: int = DEFAULT_MAX_RECORD,
        make_manager: Callable[[str], MemoryManager] | None = None,
    ) -> None:
        """Show at most `max_record` messages of each, the first user message among them.

        `make_manager` makes the manager of a conversation in another way. Raises
        `InvalidPolicyError` (a `ValueError`) for a number below 1.
        """
        policy = LimitCountPolicy(max_record)
        self._make = make_manager or (lambda _id: MemoryManager(policy=policy))
        self._managers: dict[str, MemoryManager] = {}
        self._lock = threading.Lock()

    def add(self, conversation: str, message: Message) -> Self:
        """Append a message to a conversation. Raises `InvalidIdError` for a blank id."""
        self.manager(conversation).add(message)
        return self

    def add_all(self, conversation: str, messages: Iterable[Message]) -> Self:
        """Append messages in order."""
        for message in messages:
            self.add(conversation, message)
        return self

    def set_system(self, conversation: str, message: Message) -> Self:
        """Put a system message in the place of all that the conversation had."""
        manager = self.manager(conversation)
        kept = manager.messages()
        manager.clear().add_system(message)
        for one in kept:
            manager.add(one)
        return self

    def get(self, conversation: str) -> list[Message]:
        """What a conversation shows; nothing of one that is not known."""
        manager = self._managers.get(check_id(conversation, "a conversation's id"))
        return manager.processed_messages() if manager else []

    def clear(self, conversation: str) -> Self:
        """Forget one conversation."""
        with self._lock:
            manager = self._managers.pop(check_id(conversation, "a conversation's id"), None)
        if manager:
            manager.clear()
        return self

    def manager(self, conversation: str) -> MemoryManager:
        """The manager of a conversation, made if need be."""
        check_id(conversation, "a conversation's id")
        with self._lock:
            if conversation not in self._managers:
                self._managers[conversation] = self._make(conversation)
            return self._managers[conversation]

    def __len__(self) -> int:
        """How many conversations there are."""
        return len(self._managers)

    def __iter__(self) -> Iterator[str]:
        """Their ids."""
        return iter(tuple(self._managers))
