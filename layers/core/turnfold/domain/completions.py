"""Chat completions in OpenAI's format: what of an answer is remembered, and answers in chunks."""

from collections.abc import Generator, Mapping
from typing import Any

from turnfold.domain.errors import ModelFailedError
from turnfold.domain.message_rules import message_fault
from turnfold.domain.messages import Message, tool_calls
from turnfold.domain.settings import MAX_MODEL_NAME
from turnfold.domain.usage import Usage

CHAT_STEP = "chat"
"""The step under which the ledger of a session counts what talking to the user costs."""

UNKNOWN_FINISH = "unknown"
"""The finish reason of an answer that gives none."""

FILTERED = "content_filter"
"""The finish reason of an answer that a filter stopped."""

_FINISH_REASONS = ("stop", "length", FILTERED, "tool_calls")
_FRAME = ("id", "object", "created", "model", "service_tier", "system_fingerprint", "usage")


def reply_message(message: Mapping[str, Any], finish_reason: str) -> dict[str, Any]:
    """A model's message without members that are null or empty, but for its content.

    It says something: text, a tool call or a refusal. Raises `ModelFailedError` otherwise.
    """
    reply = {"role": "assistant", "content": message.get("content") or None} | {
        name: value for name, value in message.items() if value not in (None, "", [], {})
    }
    calls = reply.get("tool_calls", [])
    if not (
        reply["role"] == "assistant"
        and isinstance(reply["content"], str | list | None)
        and isinstance(reply.get("refusal", ""), str)
        and isinstance(calls, list)
        and all(_is_call(call) for call in calls)
    ):
        raise ModelFailedError("the model's message has another form than the chat format")
    text = content_text(reply["content"])
    if not (calls or reply.get("refusal") or (text and text.strip())):
        # A reasoning model that used up `max_tokens` before it spoke has the reason "length".
        reason = f" (finish reason {finish_reason})" if finish_reason in _FINISH_REASONS else ""
        raise ModelFailedError(f"the model's message is empty{reason}")
    return reply


def _is_call(call: object) -> bool:
    if not isinstance(call, dict) or not isinstance(call.get("id"), str):
        return False
    for kind, given in (("function", "arguments"), ("custom", "input")):
        inside = call.get(kind)
        if isinstance(inside, dict):
            return isinstance(inside.get("name"), str) and isinstance(inside.get(given), str)
    return False


def content_text(content: object) -> str | None:
    """The text of a content; of a list of parts, that of its texts."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str)) or None
    return content if isinstance(content, str) else None


def finish_reason_of(choice: Mapping[str, Any]) -> str:
    """Why an answer ended."""
    reason = choice.get("finish_reason")
    return reason if isinstance(reason, str) and reason else UNKNOWN_FINISH


def first_choice(completion: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The first choice that has a message; None if there is none."""
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    usable = isinstance(choice, dict) and isinstance(choice.get("message"), dict)
    return choice if usable else None


def memorable_reply(completion: Mapping[str, Any]) -> Message | None:
    """What of an answer goes into the memory: the message, or None.

    A refusal and an answer that was cut off at its length are remembered, for the user has read
    them and the conversation goes on from there. Not remembered is what a filter stopped (a prompt
    that holds it would be stopped as well, each time), a tool call that was cut off (nobody can
    run it), and a message that says nothing or has no known form.
    """
    choice = first_choice(completion)
    if choice is None:
        return None
    reason = finish_reason_of(choice)
    try:
        reply = reply_message(choice["message"], reason)
    except ModelFailedError:
        return None
    cut_call = reason == "length" and bool(tool_calls(reply))
    if reason == FILTERED or cut_call or message_fault(reply, "reply"):
        return None
    return reply


def usage_of(completion: Mapping[str, Any], asked_model: object) -> Usage:
    """What an answer cost, for the ledger."""
    said = completion.get("usage")
    tokens = said if isinstance(said, Mapping) else {}
    names = (completion.get("model"), asked_model)
    model = next((one for one in names if isinstance(one, str) and one), "unknown")
    return Usage(
        CHAT_STEP,
        model[:MAX_MODEL_NAME],
        prompt_tokens=_count(tokens.get("prompt_tokens")),
        completion_tokens=_count(tokens.get("completion_tokens")),
    )


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


def frame_of(completion: Mapping[str, Any]) -> dict[str, Any]:
    """An answer without its message, small enough to be stored beside the turn."""
    frame = {name: completion[name] for name in _FRAME if name in completion}
    choice = first_choice(completion) or {}
    return {**frame, "finish_reason": choice.get("finish_reason")}


def from_frame(frame: Mapping[str, Any], message: Message) -> dict[str, Any]:
    """The answer again, from its frame and the message that was remembered."""
    choice = {
        "index": 0,
        "message": {"refusal": None, **message},
        "logprobs": None,
        "finish_reason": frame.get("finish_reason"),
    }
    kept = {name: value for name, value in frame.items() if name != "finish_reason"}
    return {**kept, "choices": [choice]}


def chunks_of(completion: Mapping[str, Any], *, with_usage: bool) -> Generator[dict[str, Any]]:
    """A finished answer as the chunks of a stream."""
    frame = {name: completion[name] for name in _FRAME if name in completion and name != "usage"}
    frame["object"] = "chat.completion.chunk"
    choice = first_choice(completion) or {}
    delta = {name: value for name, value in choice.get("message", {}).items() if value is not None}
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": at, **one} for at, one in enumerate(delta["tool_calls"])]
    last: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}
    yield {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**frame, "choices": [last]}
    if with_usage:
        yield {**frame, "choices": [], "usage": completion.get("usage")}


class Assembly:
    """A whole answer, put together from the chunks of its first choice."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._frame: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._calls: list[tuple[object, dict[str, Any]]] = []
        self._finish_reason: str | None = None

    @property
    def finished(self) -> bool:
        """Whether the model said why it ended; without that, the answer broke off."""
        return self._finish_reason is not None

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Take the next chunk; what has no known form in it is passed over."""
        self._frame |= {name: chunk[name] for name in _FRAME if chunk.get(name) is not None}
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict) or choice.get("index", 0) != 0:
                continue
            if isinstance(choice.get("finish_reason"), str):
                self._finish_reason = choice["finish_reason"]
            if isinstance(choice.get("delta"), dict):
                self._add_delta(choice["delta"])

    def completion(self) -> dict[str, Any]:
        """The answer so far, as it would have come in one piece."""
        message = dict(self._message)
        if self._calls:
            message["tool_calls"] = [call for _, call in self._calls]
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason}
        return {**self._frame, "object": "chat.completion", "choices": [choice]}

    def _add_delta(self, delta: Mapping[str, Any]) -> None:
        for name, value in delta.items():
            if name == "tool_calls":
                for call in value if isinstance(value, list) else ():
                    if isinstance(call, dict):
                        self._add_call(call)
            elif name == "role":
                self._message[name] = value
            elif value is not None:
                _join(self._message, name, value)

    def _add_call(self, piece: Mapping[str, Any]) -> None:
        """Add to the newest call of that index. Where servers give none, a new id begins a call.

        So does a new id with a name: some servers give the same index to all calls of an answer.
        """
        at: object = piece.get("index")
        if at is None:
            at = piece.get("id") or (self._calls[-1][0] if self._calls else 0)
        call = next((known for index, known in reversed(self._calls) if index == at), None)
        if call is None or _begins_another(call, piece):
            call = {}
            self._calls.append((at, call))
        for name in ("id", "type"):
            if piece.get(name):
                call[name] = piece[name]
        for kind in ("function", "custom"):
            inside = piece.get(kind)
            if isinstance(inside, dict):
                known = call.setdefault(kind, {})
                for name, value in inside.items():
                    # Some servers repeat the whole name with every piece.
                    if value is not None and not (name == "name" and known.get(name) == value):
                        _join(known, name, value)


def _begins_another(call: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    """Whether a piece belongs to another call. An id alone does not tell: some change with it."""
    named = any(
        isinstance(piece.get(kind), dict) and piece[kind].get("name")
        for kind in ("function", "custom")
    )
    return bool(named and piece.get("id") and call.get("id") not in (None, piece["id"]))


def _join(target: dict[str, Any], name: str, value: object) -> None:
    """Texts come in pieces; of anything else the last one counts."""
    known = target.get(name)
    target[name] = known + value if isinstance(known, str) and isinstance(value, str) else value
