"""Windows over a conversation in a store: LangChain4j's message window and token window.

Both keep one system message. One of the same text is ignored; another one takes its place at the
end, or at the front with `system_first`. The system message never leaves. When the rest is too
large, the oldest unit leaves first: a message, or a tool request with all its results. Even the
newest leaves if it is too large by itself, unless `keep_newest`.

Reading repairs: orphaned tool results and requests that can no longer be answered are not shown,
while a request at the end that still waits for its results is.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from turnfold.application.message_store import MessageStore
from turnfold.domain.estimators import Estimator, as_estimator
from turnfold.domain.memory_ids import check_memory_id
from turnfold.domain.messages import Message, content_texts, is_leading
from turnfold.domain.policies.policy import OVER_BUDGET, OVER_LIMIT
from turnfold.domain.policies.units import Kind, Unit, read_units, repaired
from turnfold.library.drivers import checked_maximum
from turnfold.library.wiring import in_memory_messages

DEFAULT_ID = "default"

type Maximum = int | Callable[[str], int]
"""A number, or what gives one for an id; it is asked at every use."""


class WindowMemory(ABC):
    """What both windows have in common."""

    _over: str

    def __init__(
        self,
        maximum: Maximum,
        *,
        memory_id: str = DEFAULT_ID,
        store: MessageStore | None = None,
        system_first: bool = False,
        keep_newest: bool = False,
    ) -> None:
        """Without a store the messages live in this process.

        Raises `ValueError` for a maximum below 1 and for an id that is no text.
        """
        if not callable(maximum):
            checked_maximum(maximum)
        self._maximum = maximum
        self._id = check_memory_id(memory_id)
        self._store: MessageStore = in_memory_messages() if store is None else store
        self._system_first = system_first
        self._keep_newest = keep_newest
        self._flags: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """The id of the conversation."""
        return self._id

    @property
    def flags(self) -> frozenset[str]:
        """What has to be said about the last read or write: "over_limit" or "over_budget"."""
        return self._flags

    def add(self, *messages: Message) -> None:
        """Append messages in order. None at all change nothing and touch no store.

        Raises `ValueError` for a maximum below 1.
        """
        if not messages:
            return
        stored = self._store.get_messages(self._id)
        result: list[Message] = stored
        for message in messages:
            result = self._appended(result, message)
        if result is not stored:
            self._store.update_messages(self._id, self._trimmed(result))

    def add_all(self, messages: Iterable[Message] | None) -> None:
        """Append messages in order, if there are any."""
        self.add(*(messages or ()))

    def set(self, messages: Iterable[Message]) -> None:
        """Put these messages in the place of all. Of several system messages the last counts.

        Raises `ValueError` for an empty list and for a maximum below 1. The caller's list is
        neither changed nor kept.
        """
        given = list(messages)
        if not given:
            raise ValueError("set needs at least one message; clear empties a memory")
        system = [at for at, one in enumerate(given) if is_leading(one)]
        kept = [one for at, one in enumerate(given) if at not in system[:-1]]
        self._store.update_messages(self._id, self._trimmed(self._placed(kept)))

    def messages(self) -> list[Message]:
        """The messages of the window. Raises `ValueError` for a maximum below 1."""
        return self._shown(self._store.get_messages(self._id))

    def preview(self, *messages: Message) -> list[Message]:
        """What the window would show after `add`, while nothing is stored."""
        result: list[Message] = self._store.get_messages(self._id)
        for message in messages:
            result = self._appended(result, message)
        return self._shown(result)

    def clear(self) -> None:
        """Forget everything, the system message too."""
        self._store.delete_messages(self._id)
        self._flags = frozenset()

    @abstractmethod
    def _fixed_cost(self) -> int:
        """What an empty window takes of the maximum."""

    @abstractmethod
    def _cost(self, messages: Sequence[Message]) -> int:
        """What messages take of the maximum."""

    def _limit(self) -> int:
        maximum = self._maximum(self._id) if callable(self._maximum) else self._maximum
        return checked_maximum(maximum)

    def _shown(self, stored: list[Message]) -> list[Message]:
        """What is shown of what is stored."""
        return self._trimmed(self._placed(repaired(stored)))

    def _appended(self, messages: list[Message], message: Message) -> list[Message]:
        """The messages with one more; the same list if nothing changes."""
        if not is_leading(message):
            return [*messages, message]
        before = [one for one in messages if is_leading(one)]
        if before and _says(before[-1]) == _says(message):
            return messages
        return self._placed([*(one for one in messages if not is_leading(one)), message])

    def _placed(self, messages: list[Message]) -> list[Message]:
        """The messages with the system message where it belongs."""
        if not self._system_first:
            return messages
        return sorted(messages, key=lambda one: not is_leading(one))

    def _trimmed(self, messages: Sequence[Message]) -> list[Message]:
        """The messages without what must leave; what is dead leaves first."""
        excess = self._fixed_cost() + self._cost(messages) - self._limit()
        self._flags = frozenset()
        gone: set[int] = set()
        for places in self._leaving(messages) if excess > 0 else ():
            if excess <= 0:
                break
            excess -= self._cost([messages[place] for place in places])
            gone.update(places)
        if excess > 0:
            self._flags = frozenset({self._over})
        return [one for at, one in enumerate(messages) if at not in gone]

    def _leaving(self, messages: Sequence[Message]) -> list[tuple[int, ...]]:
        """What may leave, in order."""
        conversation = read_units(messages)
        units: list[Unit] = [one for one in conversation.units if one.kind is not Kind.FIXED]
        if self._keep_newest:
            del units[-1:]
        return [*((place,) for place in conversation.dead), *(unit.places for unit in units)]


class MessageWindowMemory(WindowMemory):
    """Keeps the newest messages up to a number, the system message counted."""

    _over = OVER_LIMIT

    def __init__(self, max_messages: Maximum, **options: Any) -> None:  # noqa: ANN401 - see base
        """`max_messages` is a number or a function of the id; for `options` see `WindowMemory`."""
        super().__init__(max_messages, **options)

    def _fixed_cost(self) -> int:
        return 0

    def _cost(self, messages: Sequence[Message]) -> int:
        return len(messages)


class TokenWindowMemory(WindowMemory):
    """Keeps the newest messages up to a number of tokens, the system message counted."""

    _over = OVER_BUDGET

    def __init__(
        self,
        max_tokens: Maximum,
        estimator: Estimator | Callable[[Message], int] | float,
        **options: Any,  # noqa: ANN401 - see base
    ) -> None:
        """`max_tokens` is a number or a function of the id; for `options` see `WindowMemory`.

        `estimator` prices a message: an estimator, a function, or characters a token.
        """
        self._estimator = as_estimator(estimator)
        super().__init__(max_tokens, **options)

    def total_tokens(self) -> int:
        """What the window costs now, the list's own tokens included."""
        return self._fixed_cost() + self._cost(self.messages())

    def _fixed_cost(self) -> int:
        return self._estimator.list_tokens

    def _cost(self, messages: Sequence[Message]) -> int:
        return sum(map(self._estimator.message, messages))


def _says(message: Message) -> tuple[str, tuple[str, ...]]:
    return message["role"], tuple(content_texts(message))
