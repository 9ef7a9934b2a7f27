"""How a context's messages are laid out: as OpenAI's endpoint takes them, or strictly alternating.

Some providers want user and assistant to take turns, beginning with the user. The alternating
layout keeps every word and changes only the seams: what the same side says twice in a row becomes
one message (`joined`), and memory is told by the user and acknowledged by the assistant
(`acknowledged`). Tool messages belong to the assistant's side, behind the calls that they answer.
A turn looks the same whatever stands around it, so the prefix of a context stays the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from turnfold.domain.messages import MEMORY_NAME, Message

SEAM = "\n\n"
"""Between two texts that become one."""

ACKNOWLEDGEMENT: Message = {"role": "assistant", "name": MEMORY_NAME, "content": "Understood."}
"""What the assistant says to memory: always the same few tokens, and marked as none of its own."""


@dataclass(frozen=True, slots=True)
class Layout:
    """`spoken` lays out messages of a conversation in a row, `remembered` a memory message.

    `whole` lays out a list with memory among it, and tells for each message the places in the list
    that it is made of; none for what stands nowhere in it.
    """

    spoken: Callable[[Sequence[Message]], tuple[Message, ...]]
    remembered: Callable[[Message], tuple[Message, ...]]
    whole: Callable[[Sequence[Message]], tuple[tuple[Message, Sequence[int]], ...]]


def joined(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages, those of the same side in a row made one.

    Texts are put together with an empty line between them; where one is a list of parts, all become
    parts of one list. A name stays if all have it; otherwise a text begins with the name of who
    said it, but memory keeps its mark. Tool calls end a message: nothing is joined behind them.
    System messages and tool messages stay as they are.
    """
    return tuple(_one([messages[at] for at in run]) for run in _runs(messages))


def acknowledged(memory: Message) -> tuple[Message, ...]:
    """A memory message as the user's, and the assistant's acknowledgement."""
    return ({**memory, "role": "user"}, ACKNOWLEDGEMENT)


def alternated(messages: Sequence[Message]) -> tuple[tuple[Message, Sequence[int]], ...]:
    """A list of messages with memory among it; with each, the places that it is made of."""
    told: list[Message] = []
    places: list[int | None] = []
    for at, message in enumerate(messages):
        is_memory = message.get("name") == MEMORY_NAME and message["role"] != "assistant"
        told += acknowledged(message) if is_memory else (message,)
        places += (at, None) if is_memory else (at,)
    return tuple(
        (
            _one([told[at] for at in run]),
            [place for at in run if (place := places[at]) is not None],
        )
        for run in _runs(told)
    )


def as_it_is(messages: Sequence[Message]) -> tuple[tuple[Message, Sequence[int]], ...]:
    """The messages, each with its place."""
    return tuple((message, (at,)) for at, message in enumerate(messages))


PLAIN = Layout(tuple, lambda memory: (memory,), as_it_is)
ALTERNATING = Layout(joined, acknowledged, alternated)

DEFAULT_LAYOUT = "openai"
LAYOUTS: Mapping[str, Layout] = {DEFAULT_LAYOUT: PLAIN, "alternating": ALTERNATING}
"""By the names of the contract's `format`."""


def _runs(messages: Sequence[Message]) -> list[list[int]]:
    """The places of the messages that become one, run by run."""
    side = 0
    sides: list[int] = []
    for at, message in enumerate(messages):
        before = messages[at - 1] if at else None
        together = (
            before is not None
            and message["role"] == before["role"]
            and message["role"] in ("user", "assistant")
            and not before.get("tool_calls")
        )
        side += not together
        sides.append(side)
    return [list(run) for _, run in groupby(range(len(messages)), key=sides.__getitem__)]


def _one(run: Sequence[Message]) -> Message:
    if len(run) == 1:
        return run[0]
    names = {message.get("name") for message in run}
    if len(names) > 1:
        run = [_named(message) for message in run]
    # Of what cannot be put together, such as calls and the id of a sound, the last one counts.
    whole: dict[str, Any] = {}
    for message in run:
        whole |= message
    whole["content"] = _contents([message.get("content") for message in run])
    refusals = [message["refusal"] for message in run if message.get("refusal")]
    if refusals:
        whole["refusal"] = SEAM.join(refusals)
    if MEMORY_NAME in names:
        whole["name"] = MEMORY_NAME
    return whole


def _named(message: Message) -> Message:
    """A message that says by its text who speaks."""
    name, content = message.get("name"), message.get("content")
    rest = {member: value for member, value in message.items() if member != "name"}
    if not name or name == MEMORY_NAME or not content:
        return rest
    if isinstance(content, str):
        return rest | {"content": f"{name}: {content}"}
    return rest | {"content": [{"type": "text", "text": f"{name}:"}, *content]}


def _contents(contents: Sequence[Any]) -> Any:  # noqa: ANN401 - a message's content: text or parts
    said = [content for content in contents if content]
    if all(isinstance(content, str) for content in said):
        return SEAM.join(said) or None
    parts: list[Mapping[str, Any]] = []
    for content in said:
        parts += [_text(content)] if isinstance(content, str) else map(_beside_others, content)
    return parts


def _beside_others(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part as it may stand in a list; a refusal would have to be the only one."""
    return _text(part["refusal"]) if part.get("type") == "refusal" else part


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
