"""One window for each conversation of an application: LangChain4j's memories by id."""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from turnfold.domain.memory_ids import check_memory_id
from turnfold.domain.messages import Message
from turnfold.library.windows import WindowMemory


class AskModel(Protocol):
    """The model of an application: the messages of a prompt to the message it answers."""

    def __call__(self, messages: Sequence[Message], /) -> Message:
        """Answer a prompt. An answer with tool calls is handed back to the application."""
        ...


class ChatMemories:
    """Makes and keeps a memory for each id; each id has its own and never sees another's.

    Any text is an id here, blank ones included. Safe for several threads.
    """

    def __init__(
        self,
        make_memory: Callable[[str], WindowMemory],
        *,
        store_retrieved_content: bool = True,
    ) -> None:
        """`make_memory` makes the memory of an id, at most once as long as it is kept.

        With `store_retrieved_content` false, what retrieval adds to a question goes to the model
        but not into memory.
        """
        self._make = make_memory
        self._stores_retrieved = store_retrieved_content
        self._memories: dict[str, WindowMemory] = {}
        self._lock = threading.Lock()

    def get_or_create(self, memory_id: str) -> WindowMemory:
        """The memory of an id. Raises `ValueError` for an id that is no text."""
        check_memory_id(memory_id)
        with self._lock:
            if memory_id not in self._memories:
                self._memories[memory_id] = self._make(memory_id)
            return self._memories[memory_id]

    def get(self, memory_id: str) -> WindowMemory | None:
        """The memory of an id if it is kept here."""
        with self._lock:
            return self._memories.get(check_memory_id(memory_id))

    def evict(self, memory_id: str) -> bool:
        """Keep the memory of an id no longer; what its store holds stays. Whether there was one."""
        with self._lock:
            return self._memories.pop(check_memory_id(memory_id), None) is not None

    def clear(self) -> None:
        """Keep no memory any longer; what stores hold stays."""
        with self._lock:
            self._memories.clear()

    def turn(
        self,
        memory_id: str,
        user: Message,
        ask: AskModel,
        *,
        augmented: Message | None = None,
        run_tools: Callable[[Message], Sequence[Message]] | None = None,
    ) -> Message:
        """One turn: ask the model, run the tools that it asks for, remember all of it at the end.

        `augmented` is the question with what retrieval found; the model gets it at every call. If
        the model or a tool fails, its error comes through and nothing of the turn is remembered.
        """
        memory = self.get_or_create(memory_id)
        remembered = augmented if augmented is not None and self._stores_retrieved else user
        shown = augmented if augmented is not None else user
        made: list[Message] = []
        while True:
            answer = ask(memory.preview(shown, *made))
            made.append(answer)
            if not answer.get("tool_calls") or run_tools is None:
                break
            made.extend(run_tools(answer))
        memory.add(remembered, *made)
        return answer
