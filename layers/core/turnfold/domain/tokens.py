"""What a list of messages costs in tokens (api.md, "Tokens").

A message costs 3, its role, the text of its content, its name (and 1), and per tool call its id,
name and arguments; the list costs 3 more. Pictures, sound and files cost a bounded estimate, since
their price depends on the model: see `PART_TOKENS`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from turnfold.domain.messages import Message, call_name_and_input, tool_calls

type CountText = Callable[[str], int]
"""Counts the tokens of one text; never more than its bytes in UTF-8."""

PER_LIST = 3
PER_MESSAGE = 3
PER_NAME = 1
PART_TOKENS = {"image_url": 765, "input_image": 765, "input_audio": 1500, "file": 2000}
LOW_DETAIL_TOKENS = 85
OTHER_PART_TOKENS = 1000
"""Estimates: a high-detail picture of 1024 by 1024 costs 765 at OpenAI and one of low detail 85; a
minute of sound about 600; a page of a file about 1,000. Base64 is never counted as text."""

AUDIO_CHARACTERS_PER_TOKEN = 533
LEAST_AUDIO_TOKENS = 50
"""Sound costs ten tokens a second, so a short piece must not be taken for minutes. 533 characters
of base64 are 400 bytes, a tenth of a second at 32 kbit/s; most recordings have more."""


def count_part(part: Mapping[str, Any], count: CountText) -> int:
    """Tokens of one content part."""
    for member in ("text", "refusal"):
        if isinstance(part.get(member), str):
            return count(part[member])
    sound = part.get("input_audio")
    if isinstance(sound, Mapping) and isinstance(sound.get("data"), str):
        tokens = len(sound["data"]) // AUDIO_CHARACTERS_PER_TOKEN
        return min(max(tokens, LEAST_AUDIO_TOKENS), PART_TOKENS["input_audio"])
    picture = part.get("image_url")
    if isinstance(picture, Mapping) and picture.get("detail") == "low":
        return LOW_DETAIL_TOKENS
    return PART_TOKENS.get(str(part.get("type")), OTHER_PART_TOKENS)


def count_message(message: Message, count: CountText) -> int:
    """Tokens of one message, framing included."""
    tokens = PER_MESSAGE + count(message["role"])
    content = message.get("content")
    if isinstance(content, str):
        tokens += count(content)
    elif content is not None:
        tokens += sum(count_part(part, count) for part in content)
    if message.get("name"):
        tokens += PER_NAME + count(message["name"])
    if message.get("refusal"):
        tokens += count(message["refusal"])
    for call in tool_calls(message):
        name, given = call_name_and_input(call)
        tokens += count(call["id"]) + count(name) + count(given)
    return tokens


def count_messages(messages: Iterable[Message], count: CountText) -> int:
    """Tokens of the messages without the cost of the list (`PER_LIST`)."""
    return sum(count_message(message, count) for message in messages)


def byte_bound(messages: Iterable[Message]) -> int:
    """An upper bound of `count_messages` without a tokenizer: a byte is never less than a token."""
    return count_messages(messages, lambda text: len(text.encode()))


BYTES_PER_TOKEN = 4
"""English has about 4.5 bytes a token, Chinese 4, code 3.5 by o200k_base."""


def estimate(messages: Iterable[Message]) -> int:
    """About what the messages cost, without a tokenizer: for answers that must not load one."""
    return count_messages(messages, lambda text: -(-len(text.encode()) // BYTES_PER_TOKEN))
