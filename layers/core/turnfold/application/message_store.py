"""The store contract of the in-process library: lists of messages by the id of a conversation."""

from collections.abc import Sequence
from typing import Protocol

from turnfold.domain.messages import Message


class MessageStore(Protocol):
    """Keeps one list of messages for each id. `turnfold.testing` checks a store of one's own.

    What goes in comes out deeply equal and in order; what was handed in or out can be changed by
    its owner without touching what is stored. Any text is an id, and no id sees another's messages;
    what is no text raises `ValueError`.
    """

    def get_messages(self, memory_id: str) -> list[Message]:
        """The messages of an id; an empty list for one that is not known."""
        ...

    def update_messages(self, memory_id: str, messages: Sequence[Message]) -> None:
        """Put these messages in the place of all that the id had. An empty list may be stored."""
        ...

    def delete_messages(self, memory_id: str) -> None:
        """Forget an id; nothing happens to one that is not known."""
        ...
