"""Chat messages in OpenAI's chat format: their shape, their texts, and their form in a prompt."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

type Message = Mapping[str, Any]
"""One message as committed, with members that this service does not know."""

LEADING_ROLES = ("system", "developer")
ROLES = (*LEADING_ROLES, "user", "assistant", "tool")
MEMORY_NAME = "turnfold_memory"
"""The `name` that marks a message made by this service, so that it is never stored as a user's."""

_CHAT_MEMBERS = {
    "system": ("role", "content", "name"),
    "developer": ("role", "content", "name"),
    "user": ("role", "content", "name"),
    "assistant": ("role", "content", "name", "tool_calls", "refusal", "audio"),
    "tool": ("role", "content", "name", "tool_call_id"),
}


def is_leading(message: Message) -> bool:
    """Whether the message is a system or developer message."""
    return message["role"] in LEADING_ROLES


def split_leading(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The system and developer messages at the start, and the conversation after them."""
    start = next((at for at, one in enumerate(messages) if not is_leading(one)), len(messages))
    return tuple(messages[:start]), tuple(messages[start:])


def tool_calls(message: Message) -> Sequence[Mapping[str, Any]]:
    """The tool calls of an assistant message; none for any other."""
    calls = message.get("tool_calls") if message.get("role") == "assistant" else None
    return calls or ()


def call_name_and_input(call: Mapping[str, Any]) -> tuple[str, str]:
    """Name and raw input of a function call or a custom tool call."""
    if "custom" in call:
        return call["custom"]["name"], call["custom"]["input"]
    return call["function"]["name"], call["function"]["arguments"]


def content_texts(message: Message) -> Iterator[str]:
    """The texts of a message's content, without pictures, sound and files."""
    content = message.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, Sequence):
        for part in content:
            text = part.get("text", part.get("refusal"))
            if isinstance(text, str):
                yield text


def is_blank(message: Message) -> bool:
    """Whether a message says nothing: no visible text, no other part, no call, no refusal."""
    content = message.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        spoken = any(
            part.get("type") not in ("text", "refusal") or (part.get(part["type"]) or "").strip()
            for part in content
        )
    else:
        spoken = bool((content or "").strip())
    return not (spoken or tool_calls(message) or message.get("refusal"))


def chat_form(message: Message) -> dict[str, Any]:
    """The message as a chat completions endpoint accepts it.

    Members that the endpoint does not know, members that are null and an empty list of calls are
    left out; the text of the content is untouched. Beside calls an empty content becomes null,
    since some providers refuse an empty text.
    """
    members = _CHAT_MEMBERS[message["role"]]
    form = {
        name: message[name]
        for name in message
        if name in members and (message[name] is not None or name == "content")
    }
    if not form.get("tool_calls", True):
        del form["tool_calls"]
    if "tool_calls" in form and form.get("content") == "":
        form["content"] = None
    return form
