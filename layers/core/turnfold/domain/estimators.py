"""What messages cost in tokens: exactly, or by one of several estimates, behind one interface.

An estimator prices one message at a time; a list of messages costs the sum and `list_tokens`.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from turnfold.domain.messages import Message, call_name_and_input, content_texts, tool_calls
from turnfold.domain.tokens import PER_LIST, CountText, count_message

CHARACTERS_PER_TOKEN = 3.5
"""Odin's ratio: about right for English, far too low a price for Chinese or Japanese."""

OTHER_PART_TOKENS = 5
"""What mm-memory counts for a part that is no text."""


@runtime_checkable
class Estimator(Protocol):
    """Prices messages in tokens. The same message always costs the same, and never less than 0."""

    @property
    def list_tokens(self) -> int:
        """What a list of messages costs beside its messages."""
        ...

    def message(self, message: Message) -> int:
        """Tokens of one message."""
        ...

    def text(self, text: str) -> int:
        """Tokens of a text by itself."""
        ...


def estimate_all(estimator: Estimator, messages: Iterable[Message]) -> int:
    """Tokens of a list of messages."""
    return estimator.list_tokens + sum(map(estimator.message, messages))


@dataclass(frozen=True, slots=True)
class ExactEstimator:
    """The service's own count (see `turnfold.domain.tokens`), by a tokenizer's `count`."""

    count: CountText

    @property
    def list_tokens(self) -> int:
        """See `Estimator`."""
        return PER_LIST

    def message(self, message: Message) -> int:
        """See `Estimator`."""
        return count_message(message, self.count)

    def text(self, text: str) -> int:
        """See `Estimator`."""
        return self.count(text)


@dataclass(frozen=True, slots=True)
class CharacterEstimator:
    """Odin's estimate: characters by a ratio, rounded up for each message.

    Beside the text it counts the names and arguments of tool calls, which Odin leaves out; without
    them a budget would mean nothing to agents.
    """

    token_ratio: float = CHARACTERS_PER_TOKEN

    def __post_init__(self) -> None:
        """Refuse a ratio that is no positive number."""
        if not (self.token_ratio > 0 and math.isfinite(self.token_ratio)):
            raise ValueError("token_ratio must be a number above 0")

    @property
    def list_tokens(self) -> int:
        """See `Estimator`."""
        return 0

    def message(self, message: Message) -> int:
        """See `Estimator`."""
        characters = sum(map(len, content_texts(message)))
        for call in tool_calls(message):
            name, given = call_name_and_input(call)
            characters += len(name) + len(given)
        return math.ceil(characters / self.token_ratio)

    def text(self, text: str) -> int:
        """See `Estimator`."""
        return math.ceil(len(text) / self.token_ratio)


BY_CHARACTERS = CharacterEstimator()
"""The one that is used where none is given."""


@dataclass(frozen=True, slots=True)
class OverheadEstimator:
    """mm-memory's estimate: characters by a ratio, rounded up for each piece, and overheads.

    A message costs its overhead, its role's and its name's pieces, and its content; a tool call and
    a tool result cost an overhead and their pieces. A message without a role (a pin) has no piece
    for it.
    """

    characters_per_token: float = 2.5
    message_overhead: int = 5
    tool_call_overhead: int = 10
    tool_result_overhead: int = 8

    @property
    def list_tokens(self) -> int:
        """See `Estimator`."""
        return 0

    def message(self, message: Message) -> int:
        """See `Estimator`."""
        role, name = message.get("role"), message.get("name")
        tokens = self.message_overhead + self._piece(role)
        if role == "tool":
            tokens += self.tool_result_overhead + self._piece(message.get("tool_call_id"))
        tokens += self._piece(name) + self._content(message.get("content"))
        return tokens + sum(self._call(call) for call in tool_calls(message))

    def text(self, text: str) -> int:
        """See `Estimator`. A text by itself is priced as a message without a role, as pins are."""
        return self.message_overhead + self._piece(text)

    def _piece(self, text: object) -> int:
        if not isinstance(text, str):
            return 0
        return math.ceil(len(text) / self.characters_per_token)

    def _content(self, content: object) -> int:
        if isinstance(content, list | tuple):
            return sum(self._part(part) for part in content)
        return self._piece(content)

    def _part(self, part: Mapping[str, Any]) -> int:
        text = part.get("text")
        return self._piece(text) if isinstance(text, str) else OTHER_PART_TOKENS

    def _call(self, call: Mapping[str, Any]) -> int:
        name, given = call_name_and_input(call)
        arguments = 0 if given in ("", "{}") else self._piece(compact_json(given))
        return self.tool_call_overhead + self._piece(name) + self._piece(call["id"]) + arguments


@dataclass(frozen=True, slots=True)
class CallableEstimator:
    """Any function from a message to its tokens."""

    of_message: Callable[[Message], int]
    list_tokens: int = 0

    def message(self, message: Message) -> int:
        """See `Estimator`."""
        return self.of_message(message)

    def text(self, text: str) -> int:
        """See `Estimator`. The price of a user message with that text."""
        return self.of_message({"role": "user", "content": text})


def as_estimator(source: "Estimator | Callable[[Message], int] | float") -> Estimator:
    """The estimator of an estimator, a function of one message, or characters a token.

    Raises `TypeError` for anything else and `ValueError` for a ratio that is not above 0.
    """
    if isinstance(source, Estimator):
        return source
    if isinstance(source, int | float) and not isinstance(source, bool):
        return CharacterEstimator(source)
    if callable(source):
        return CallableEstimator(source)
    raise TypeError("an estimator, a function of a message or a ratio is needed")


def compact_json(text: str) -> str:
    """JSON without the blanks of its layout; the text itself if it is not JSON."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return text
