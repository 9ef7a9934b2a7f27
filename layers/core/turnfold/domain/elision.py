"""Shortening a turn that is too long for a budget: long texts lose their middle, visibly."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from turnfold.domain.messages import Message, call_name_and_input, tool_calls
from turnfold.domain.tokens import CountText, count_messages

MIN_KEPT_CHARACTERS = 60
"""A text is not cut below this: less would tell a model nothing."""

MAX_CHARACTERS_PER_TOKEN = 16
"""Where the search for a fitting length begins; common text has 4 characters a token."""


@dataclass(frozen=True, slots=True)
class Elision:
    """What was left out of one message of a turn."""

    message: int
    characters: int


def elide(
    messages: Sequence[Message], turn: int | None, max_tokens: int, count: CountText
) -> tuple[tuple[Message, ...], tuple[Elision, ...]] | None:
    """The messages cut to at most `max_tokens`, and what was cut; None if that cannot be done.

    The longest texts lose most: all texts over a common length are cut to it in the middle, with a
    marker that names the turn to fetch, or the open turn where that is None. Tool arguments are cut
    only when texts alone do not do; they stay valid JSON.
    """
    for with_arguments in (False, True):
        lengths = _lengths(messages, with_arguments=with_arguments)
        low, high = MIN_KEPT_CHARACTERS, max([MIN_KEPT_CHARACTERS, *lengths])
        high = min(high, max(low, max_tokens * MAX_CHARACTERS_PER_TOKEN))
        best = None
        while low <= high:
            middle = (low + high) // 2
            cut = _cut_all(messages, turn, middle, with_arguments=with_arguments)
            if count_messages(cut[0], count) <= max_tokens:
                best, low = cut, middle + 1
            else:
                high = middle - 1
        if best:
            return best
    return None


def _lengths(messages: Sequence[Message], *, with_arguments: bool) -> list[int]:
    lengths = []
    for message in messages:
        content = message.get("content")
        parts = (
            [content] if isinstance(content, str) else [one.get("text") for one in content or ()]
        )
        lengths += [len(text) for text in parts if isinstance(text, str)]
        if with_arguments:
            lengths += [len(call_name_and_input(call)[1]) for call in tool_calls(message)]
    return lengths


def _cut_all(
    messages: Sequence[Message], turn: int | None, keep: int, *, with_arguments: bool
) -> tuple[tuple[Message, ...], tuple[Elision, ...]]:
    cut: list[Message] = []
    elisions: list[Elision] = []
    for at, message in enumerate(messages):
        shorter, lost = _cut_message(message, turn, keep, with_arguments=with_arguments)
        cut.append(shorter)
        if lost:
            elisions.append(Elision(at, lost))
    return tuple(cut), tuple(elisions)


def _cut_message(
    message: Message, turn: int | None, keep: int, *, with_arguments: bool
) -> tuple[Message, int]:
    lost = 0

    def cut(text: str) -> str:
        nonlocal lost
        shorter, missing = cut_middle(text, turn, keep)
        lost += missing
        return shorter

    result: dict[str, Any] = dict(message)
    content = message.get("content")
    if isinstance(content, str):
        result["content"] = cut(content)
    elif content:
        result["content"] = [
            {**part, "text": cut(part["text"])} if isinstance(part.get("text"), str) else part
            for part in content
        ]
    if with_arguments and tool_calls(message):
        result["tool_calls"] = [_cut_call(call, cut) for call in tool_calls(message)]
    return result, lost


def _cut_call(call: Any, cut: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON of a caller
    given = call_name_and_input(call)[1]
    shorter = cut(given)
    if shorter == given:
        return dict(call)
    if "custom" in call:
        return {**call, "custom": {**call["custom"], "input": shorter}}
    arguments = json.dumps({"elided": shorter}, ensure_ascii=False)
    return {**call, "function": {**call["function"], "arguments": arguments}}


def cut_middle(text: str, turn: int | None, keep: int) -> tuple[str, int]:
    """The text with about `keep` characters, less its middle, and how many characters are lost.

    A text that would not get shorter stays whole.
    """
    if len(text) <= keep:
        return text, 0
    start = text[: (keep + 1) // 2]
    end = text[len(text) - keep // 2 :] if keep > 1 else ""
    lost = len(text) - len(start) - len(end)
    where = "see the open turn" if turn is None else f"fetch turn {turn}"
    marker = f" [... {lost} characters left out; {where} for the whole text ...] "
    if lost <= len(marker):
        return text, 0
    return start + marker + end, lost
