"""What a message must look like to be taken, and what makes a list of them a finished turn."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from turnfold.domain.errors import IncompleteTurnError, InvalidMessagesError
from turnfold.domain.limits import MAX_TURN_MESSAGES
from turnfold.domain.messages import (
    MEMORY_NAME,
    ROLES,
    Message,
    is_blank,
    is_leading,
    split_leading,
    tool_calls,
)

type Fault = tuple[str, str]
"""Where, and what to change."""

_MAX_NAME = 256
_SHOWN_IDS = 5


def check_messages(value: object, *, path: str = "messages") -> tuple[Message, ...]:
    """The messages, if each of them is well-formed for itself.

    Raises `InvalidMessagesError` with every fault found, at most one for each message.
    """
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InvalidMessagesError([(path, "must be a list of messages")])
    if not value:
        raise InvalidMessagesError([(path, "must hold at least one message")])
    if len(value) > MAX_TURN_MESSAGES:
        raise InvalidMessagesError([(path, f"must hold at most {MAX_TURN_MESSAGES} messages")])
    faults = [
        fault for at, one in enumerate(value) if (fault := message_fault(one, f"{path}[{at}]"))
    ]
    if faults:
        raise InvalidMessagesError(faults)
    return tuple(value)


def message_fault(message: object, loc: str) -> Fault | None:
    """The first fault of a message, looked at for itself."""
    return next(_message_faults(message, loc), None)


def _message_faults(message: object, loc: str) -> Iterator[Fault]:
    if not isinstance(message, Mapping):
        yield loc, "must be an object"
        return
    role = message.get("role")
    if role not in ROLES:
        yield f"{loc}.role", f"must be one of {', '.join(ROLES)}"
        return
    name = message.get("name")
    if name is not None and not (isinstance(name, str) and 1 <= len(name) <= _MAX_NAME):
        yield f"{loc}.name", f"must be a text of 1 to {_MAX_NAME} characters"
    if name == MEMORY_NAME:
        yield f"{loc}.name", "marks memory that this service made; leave such messages out"
    yield from _content_faults(role, message.get("content"), loc)
    if role == "assistant":
        yield from _assistant_faults(message, loc)
    elif message.get("tool_calls"):
        yield f"{loc}.tool_calls", "only an assistant message may have tool calls"
    if role == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str) or not call_id:
            yield f"{loc}.tool_call_id", "must name the call that this message answers"


def _content_faults(role: str, content: object, loc: str) -> Iterator[Fault]:
    where = f"{loc}.content"
    if content is None:
        if role != "assistant":
            yield where, f"a {role} message needs content"
    elif isinstance(content, str):
        if role == "user" and not content:
            yield where, "a user message must not be empty"
    elif isinstance(content, Sequence):
        if not content:
            yield where, "a list of parts must not be empty"
        for at, part in enumerate(content):
            yield from _part_faults(part, f"{where}[{at}]")
        if role == "user" and all(part["type"] == "text" and not part["text"] for part in content):
            yield where, "a user message must not be empty"
    else:
        yield where, "must be a text, a list of parts or null"


def _part_faults(part: object, loc: str) -> Iterator[Fault]:
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        yield loc, "must be an object with a type"
        return
    kind = part["type"]
    if kind in ("text", "refusal") and not isinstance(part.get(kind), str):
        yield f"{loc}.{kind}", "must be a text"
    if kind == "image_url" and not isinstance(part.get("image_url"), Mapping):
        yield f"{loc}.image_url", "must be an object with a url"
    for member in ("text", "refusal"):
        if member in part and not isinstance(part[member], str):
            yield f"{loc}.{member}", "must be a text"


def _assistant_faults(message: Message, loc: str) -> Iterator[Fault]:
    refusal = message.get("refusal")
    if refusal is not None and not isinstance(refusal, str):
        yield f"{loc}.refusal", "must be a text or null"
        return
    calls = message.get("tool_calls")
    if calls is not None:
        if not isinstance(calls, Sequence) or isinstance(calls, str):
            yield f"{loc}.tool_calls", "must be a list"
            return
        seen: set[str] = set()
        for at, call in enumerate(calls):
            fault = _call_fault(call, f"{loc}.tool_calls[{at}]")
            if fault:
                yield fault
                return
            if call["id"] in seen:
                yield f"{loc}.tool_calls[{at}].id", "is used by another call of this message"
            seen.add(call["id"])
    if is_blank(message):
        yield loc, "an assistant message needs content, tool calls or a refusal"


def _call_fault(call: object, loc: str) -> Fault | None:
    if not isinstance(call, Mapping):
        return loc, "must be an object"
    if not isinstance(call.get("id"), str) or not call["id"]:
        return f"{loc}.id", "must be a text that is not empty"
    member, given = ("custom", "input") if "custom" in call else ("function", "arguments")
    target: Any = call.get(member)
    if not isinstance(target, Mapping):
        return f"{loc}.{member}", "must be an object"
    if not isinstance(target.get("name"), str) or not target["name"]:
        return f"{loc}.{member}.name", "must be a text that is not empty"
    if not isinstance(target.get(given), str):
        return f"{loc}.{member}.{given}", "must be a text (JSON or not)"
    return None


def check_exchanges(
    conversation: Sequence[Message], *, path: str = "messages", offset: int = 0
) -> tuple[str, ...]:
    """The ids of the tool calls that are still unanswered at the end.

    Raises `InvalidMessagesError` if a tool message answers no open call, and `IncompleteTurnError`
    if another message comes before all calls are answered.
    """
    open_ids: list[str] = []
    for at, message in enumerate(conversation, start=offset):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                msg = "answers no open tool call of the assistant message before it"
                raise InvalidMessagesError([(f"{path}[{at}].tool_call_id", msg)])
            open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            msg = f"comes before the answers to the tool calls {_listed(open_ids)}"
            raise IncompleteTurnError([(f"{path}[{at}]", msg)])
        open_ids = [call["id"] for call in tool_calls(message)]
    return tuple(open_ids)


def check_turn(value: object) -> tuple[Message, ...]:
    """The messages, if they are one finished turn.

    A turn is optional system or developer messages, then at least one user message, then tool
    exchanges and assistant messages, and at the end an assistant message without open tool calls.
    Raises `InvalidMessagesError`, or `IncompleteTurnError` naming what is missing.
    """
    messages = check_messages(value)
    check_order(messages)
    leading, conversation = split_leading(messages)
    open_ids = check_exchanges(conversation, offset=len(leading))
    if open_ids:
        msg = f"the tool calls {_listed(open_ids)} have no answer"
        raise IncompleteTurnError([("messages", msg)])
    if conversation[-1]["role"] != "assistant":
        msg = "the turn must end with an assistant message; its answer is missing"
        raise IncompleteTurnError([("messages", msg)])
    return messages


def check_question(value: object) -> tuple[Message, ...]:
    """The messages, if a model can answer them: what is about to be sent after a context.

    Optional system messages, then user messages, then tool exchanges; at the end a user message or
    the answers to all tool calls. Raises `InvalidMessagesError`.
    """
    messages = check_messages(value)
    check_order(messages)
    leading, conversation = split_leading(messages)
    open_ids = check_exchanges(conversation, offset=len(leading))
    if open_ids or conversation[-1]["role"] not in ("user", "tool"):
        msg = "the messages must end with a question or with the answers to all tool calls"
        raise InvalidMessagesError([("messages", msg)])
    return messages


def check_begun(value: object) -> tuple[Message, ...]:
    """The messages, if they begin a turn; it may end anywhere, also with open tool calls.

    Raises `InvalidMessagesError`, or `IncompleteTurnError` if a call is left unanswered in between.
    """
    messages = check_messages(value)
    check_order(messages)
    leading, conversation = split_leading(messages)
    check_exchanges(conversation, offset=len(leading))
    return messages


def check_order(messages: Sequence[Message]) -> None:
    """Raise `InvalidMessagesError` unless system messages lead and user messages come next."""
    leading, conversation = split_leading(messages)
    if not conversation or conversation[0]["role"] != "user":
        msg = "after system and developer messages a turn starts with a user message"
        raise InvalidMessagesError([(f"messages[{min(len(leading), len(messages) - 1)}]", msg)])
    asked = next(
        (at for at, one in enumerate(conversation) if one["role"] != "user"), len(conversation)
    )
    for at, message in enumerate(conversation[asked:], start=len(leading) + asked):
        if is_leading(message):
            msg = "system and developer messages stand before the user's"
            raise InvalidMessagesError([(f"messages[{at}]", msg)])
        if message["role"] == "user":
            msg = "a user message after the answer begins another turn; commit it by itself"
            raise InvalidMessagesError([(f"messages[{at}]", msg)])


def _listed(ids: Sequence[str]) -> str:
    """Tool call ids, short; they are the caller's own words, so only what they can be told by."""
    shown = ", ".join(repr(one[:64]) for one in ids[:_SHOWN_IDS])
    more = len(ids) - _SHOWN_IDS
    return f"{shown} and {more} more" if more > 0 else shown
