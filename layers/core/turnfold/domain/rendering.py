"""A turn as plain passages of text: what summaries are made from and pins are judged by.

Pictures, sound and files become a short placeholder, tool calls become `name(arguments)`, and a
long tool result loses its middle. Everything else is the text as it was said, and nothing in it is
expanded.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from turnfold.domain.blobs import without_blobs
from turnfold.domain.messages import Message, call_name_and_input, tool_calls
from turnfold.domain.passages import Passage
from turnfold.domain.turns import Turn

MAX_TOOL_CHARACTERS = 2000
"""Of a tool's input or result. What a tool returned goes into a summary as one clause, and the
beginning and the end say what it was."""

_FRONT_SHARE = 0.7
_PLACEHOLDERS = {
    "image_url": "[image]",
    "input_image": "[image]",
    "image": "[image]",
    "input_audio": "[audio]",
    "audio": "[audio]",
    "video_url": "[video]",
}
_MAX_FILE_NAME = 80


def elide_middle(text: str, max_characters: int | None) -> str:
    """The text with its middle replaced by a note if it has more characters than that.

    The note says how many characters are missing. The answer is never longer than `max_characters`,
    except that the note itself is always whole.
    """
    if max_characters is None or len(text) <= max_characters:
        return text
    room = max(0, max_characters - len(_elision(len(text))))
    front = int(room * _FRONT_SHARE)
    back = room - front
    return text[:front] + _elision(len(text) - room) + text[len(text) - back :]


def _elision(characters: int) -> str:
    return f" [... {characters} characters left out ...] "


def _part_text(part: Mapping[str, Any]) -> str:
    for member in ("text", "refusal"):
        if isinstance(part.get(member), str):
            return without_blobs(part[member])
    kind = str(part.get("type"))
    if kind == "file":
        name = part["file"].get("filename") if isinstance(part.get("file"), Mapping) else None
        return f"[file: {name[:_MAX_FILE_NAME]}]" if isinstance(name, str) and name else "[file]"
    return _PLACEHOLDERS.get(kind, "[attachment]")


def _spoken(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        pieces = [without_blobs(content)]
    else:
        pieces = [_part_text(part) for part in content or ()]
    refusal = message.get("refusal")
    if isinstance(refusal, str):
        pieces.append(refusal)
    return "\n".join(piece for piece in pieces if piece.strip())


def _compact(arguments: str) -> str:
    """A call's arguments, which are JSON more often than not, without the blanks of its layout."""
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False, separators=(", ", ": "))
    except (ValueError, RecursionError):
        return arguments


def _shown_call(call: Mapping[str, Any], max_characters: int | None) -> str:
    name, given = call_name_and_input(call)
    return f"{name}({elide_middle(without_blobs(_compact(given)), max_characters)})"


def _message_passages(
    message: Message, turn: int, max_tool_characters: int | None
) -> Iterator[Passage]:
    speaker = message["role"]
    text = _spoken(message)
    if speaker == "tool":
        yield Passage("tool", elide_middle(text, max_tool_characters) or "(nothing)", turn)
        return
    if text:
        yield Passage(speaker, text, turn)
    for call in tool_calls(message):
        yield Passage(speaker, _shown_call(call, max_tool_characters), turn)


def render_turn(
    turn: Turn, *, max_tool_characters: int | None = MAX_TOOL_CHARACTERS
) -> tuple[Passage, ...]:
    """The passages of a turn in order, without the system messages that came with it.

    The speaker is the message's role; a tool call is a passage of the assistant. No passage is
    blank, and none carries base64 or a data URL. With `max_tool_characters` None, what tools were
    given and what they returned is whole.
    """
    return tuple(
        passage
        for message in turn.conversation
        for passage in _message_passages(message, turn.number, max_tool_characters)
    )
