"""Messages of other software, as OpenAI chat messages.

- LangChain: `messages_to_dict` (`{"type": "human", "data": {...}}`), `model_dump`
  (`{"type": "human", "content": ...}`) and `dumpd` (`{"lc": 1, "id": [..., "HumanMessage"],
  "kwargs": {...}}`).
- mm-memory: messages with blocks (`{"role": "USER", "content": [{"type": "text", ...}]}`), pairs of
  them, and the documents of its collection of original pairs.

What is no such thing is handed back as it is; whether it is a message is checked afterwards.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_LANGCHAIN_ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "SystemMessage": "system",
    "ToolMessage": "tool",
}
_BLOCK_ROLES = {"USER": "user", "ASSISTANT": "assistant", "SYSTEM": "system", "TOOL": "tool"}


def flattened(values: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Every message of a dump, with the number of the entry that it stands in, from 1."""
    for number, value in enumerate(values, start=1):
        for message in _messages_of(value):
            yield number, message


def _messages_of(value: Any) -> Iterator[Any]:  # noqa: ANN401 - anything a dump may hold
    if not isinstance(value, Mapping):
        yield value
        return
    pair = value.get("messagePair", value)
    if isinstance(pair, Mapping) and ("userMessage" in pair or "assistantMessage" in pair):
        middle = pair.get("intermediateMessages") or []
        between = middle if isinstance(middle, list) else [middle]
        for one in (pair.get("userMessage"), *between, pair.get("assistantMessage")):
            if one is not None:
                yield from _from_blocks(one)
        return
    role = value.get("role")
    if isinstance(role, str) and role in _BLOCK_ROLES:
        yield from _from_blocks(value)
        return
    yield _from_langchain(value)


def _from_langchain(value: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a message, or what it was
    kind, data = value.get("type"), value.get("data")
    if value.get("lc") is not None and isinstance(value.get("kwargs"), Mapping):
        path = value.get("id")
        kind = path[-1] if isinstance(path, Sequence) and path else None
        data = value["kwargs"]
    role = _LANGCHAIN_ROLES.get(kind) if isinstance(kind, str) else None
    if role is None or "role" in value:
        return value
    said: Mapping[str, Any] = data if isinstance(data, Mapping) else value
    message: dict[str, Any] = {"role": role, "content": said.get("content")}
    if isinstance(said.get("name"), str) and said["name"]:
        message["name"] = said["name"]
    if role == "tool":
        message["tool_call_id"] = said.get("tool_call_id") or said.get("name")
        message.pop("name", None)
    calls = said.get("tool_calls")
    if role == "assistant" and isinstance(calls, Sequence) and calls:
        message["tool_calls"] = [_call(one) for one in calls]
        message["content"] = message["content"] or None
    return message


def _call(call: Any) -> Any:  # noqa: ANN401 - a call, or what it was
    """A tool call: LangChain's has `name` and `args`, OpenAI's a `function`."""
    if not isinstance(call, Mapping) or "function" in call or "custom" in call:
        return call
    arguments = call.get("args", call.get("input"))
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {}, ensure_ascii=False)
    function = {"name": call.get("name"), "arguments": arguments}
    return {"id": call.get("id"), "type": "function", "function": function}


def _from_blocks(value: Any) -> Iterator[Any]:  # noqa: ANN401 - anything a dump may hold
    """A message of blocks: its results become tool messages, its uses tool calls."""
    if not isinstance(value, Mapping):
        yield value
        return
    if value.get("status") == "INVALIDATED":
        return
    role = _BLOCK_ROLES.get(str(value.get("role")))
    blocks = value.get("content")
    if role is None or not isinstance(blocks, Sequence) or isinstance(blocks, str):
        yield {**value, "role": role or value.get("role")}
        return
    texts, calls = [], []
    for block in blocks:
        if not isinstance(block, Mapping):
            yield value
            return
        kind = block.get("type", "text")
        if kind == "tool_use":
            calls.append(_call(block))
        elif kind == "tool_result":
            yield {
                "role": "tool",
                "tool_call_id": block.get("id"),
                "content": _text_of(block.get("output")),
            }
        else:
            texts.append(str(block.get("text") or ""))
    text = "\n".join(texts)
    if role == "tool" or (not text and not calls):
        return
    message: dict[str, Any] = {"role": role, "content": text}
    if isinstance(value.get("name"), str) and value["name"]:
        message["name"] = value["name"]
    if calls and role == "assistant":
        message["tool_calls"] = calls
        message["content"] = text or None
    yield message


def _text_of(blocks: Any) -> str:  # noqa: ANN401 - anything a dump may hold
    if isinstance(blocks, str):
        return blocks
    if not isinstance(blocks, Sequence):
        return ""
    return "\n".join(str(one.get("text") or "") for one in blocks if isinstance(one, Mapping))
