"""`Completions` in this process: says what it is told to, and remembers what it was asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.fake_openai import completion, in_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

type Json = dict[str, Any]


def spoken(text: str = "Fine.") -> Json:
    return {"role": "assistant", "content": text, "refusal": None}


def calling(*ids: str) -> Json:
    """A message that calls a tool once for each id."""
    calls = [
        {"id": one, "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
        for one in ids
    ]
    return {"role": "assistant", "content": None, "refusal": None, "tool_calls": calls}


def result(call_id: str, text: str = "42") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


@dataclass
class FakeCompletions:
    """Says the `replies` in turn, the last one for ever. `before` is called before each answer.

    A reply is a message, a whole answer, or an error. A stream breaks off after `cut_after` chunks.
    """

    replies: list[Json | Exception] = field(default_factory=lambda: [spoken()])
    finish_reason: str = "stop"
    cut_after: int | None = None
    before: Callable[[], object] = lambda: None
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    closed: int = 0

    def complete(self, body: Mapping[str, Any]) -> Json:
        return self._next(body)

    def stream(
        self, body: Mapping[str, Any], *, with_usage: bool = False
    ) -> Generator[Mapping[str, Any]]:
        return self._chunks(self._next(body), with_usage=with_usage)

    def models(self) -> Json:
        return {"object": "list", "data": [{"id": "talker"}]}

    def _next(self, body: Mapping[str, Any]) -> Json:
        self.asked.append(body)
        self.before()
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        if "choices" in reply:
            return reply
        reason = "tool_calls" if reply.get("tool_calls") else self.finish_reason
        return completion({"model": body.get("model", "talker")}, reply, reason)

    def _chunks(self, whole: Json, *, with_usage: bool) -> Generator[Mapping[str, Any]]:
        try:
            for number, one in enumerate(in_chunks(whole, with_usage=with_usage)):
                if number == self.cut_after:
                    return
                yield one
        finally:
            self.closed += 1
