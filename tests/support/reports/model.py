"""The fake model of the notation: scripted replies, answers by rule, facts, and a pause.

Replies are for requests for a summary, unless they are errors about `response_format`, which only
requests with a schema can earn. `facts` answer judgements of pins. Without a script it summarises
and finds no facts.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, override

from support.fake_openai import Asked, FakeOpenAI, Json, Rule, completion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CHAT = "/v1/chat/completions"
SHORT_PATIENCE_SECONDS = 3.0
TOO_LONG_SECONDS = 4.0
"""For a reply that does not come in time. From then on the service waits that short only."""

_LINE = re.compile(r"^\{.*\}$", re.MULTILINE)
_LONGEST_PAUSE = 60


@dataclass(frozen=True)
class Entry:
    """One line of the data of a prompt."""

    role: str
    content: str
    turn: int | None


def entries_of(body: Json) -> list[Entry]:
    """What a request shows of the conversation."""
    content = body["messages"][-1].get("content")
    rows = [json.loads(line) for line in _LINE.findall(content if isinstance(content, str) else "")]
    return [Entry(row.get("role", "pin"), row["content"], row.get("turn")) for row in rows]


def kind_of(body: Json) -> str:
    """What a request is for: "judgement", "folding of pins" or "summary"."""
    asked = body["messages"][0].get("content") or ""
    if "never be forgotten" in asked:
        return "judgement"
    return "folding of pins" if "Fold the pinned facts" in asked else "summary"


class CaseModel(FakeOpenAI):
    """The endpoint of one case."""

    def __init__(self) -> None:
        super().__init__()
        self.replies: list[Any] = []
        self.facts: list[list[str]] = []
        self.facts_mode: str | None = None
        self.echo: str | None = None
        self.hold: threading.Event | None = None
        self.reached = threading.Event()
        self.when_summarised: Callable[[], None] | None = None
        self.texts_of_rounds: Callable[[int], Sequence[str]] = lambda _number: ()
        self._taking = threading.Lock()

    def chat_requests(self) -> list[Json]:
        """The bodies of what was asked so far."""
        return [one.body for one in self.requests() if one.path == CHAT]

    @override
    def take(self, asked: Asked) -> Rule | None:
        super().take(asked)
        if asked.path != CHAT:
            return None
        kind = kind_of(asked.body)
        with self._taking:
            rule = self._answer(kind, asked.body)
            hold, then = None, None
            if kind == "summary":
                hold, self.hold = self.hold, None
                then, self.when_summarised = self.when_summarised, None
        if then is not None:
            then()
        if hold is not None:
            self.reached.set()
            hold.wait(_LONGEST_PAUSE)
        return rule

    def _answer(self, kind: str, body: Json) -> Rule | None:
        at = next((at for at, one in enumerate(self.replies) if self._fits(one, kind, body)), None)
        if at is not None:
            return rule_of(self.replies.pop(at), body)
        if kind == "judgement":
            return Rule(text=self._judgement(body))
        if kind == "summary" and self.echo:
            return Rule(text=echoed(self.echo, entries_of(body)))
        return None

    def _fits(self, reply: Any, kind: str, body: Json) -> bool:
        if not isinstance(reply, dict):
            return kind == "summary"
        if "response_format" in json.dumps(reply):
            return "response_format" in body
        if kind != "summary":
            return False
        if "for_round" not in reply:
            return True
        shown = {one.content for one in entries_of(body)}
        return bool(shown.intersection(self.texts_of_rounds(reply["for_round"])))

    def _judgement(self, body: Json) -> str:
        said = [one for one in entries_of(body) if one.turn is not None]
        turns = sorted({one.turn for one in said if one.turn is not None})
        facts = []
        if self.facts_mode == "from_model":
            facts = [
                _fact(one.turn, sentence.strip(), one.role)
                for one in said
                for sentence in re.split(r"(?<=[.!?])\s+", one.content)
            ]
        for turn in turns if self.facts else ():
            scripted = self.facts.pop(0) if self.facts else []
            facts += [_fact(turn, text, "user") for text in scripted]
        return json.dumps({"facts": facts, "retracted_pin_ids": []}, ensure_ascii=False)


def _fact(turn: int | None, text: str, role: str) -> Json:
    return {
        "turn": turn,
        "text": text,
        "confidence": 0.9,
        "said_by": "user" if role == "user" else "assistant",
        "replaces_pin_id": None,
    }


def rule_of(reply: Any, body: Json) -> Rule:
    """A scripted reply as the endpoint's answer."""
    rule = _rule_of(reply, body)
    if isinstance(reply, dict) and "delay_s" in reply:
        rule.seconds = float(reply["delay_s"])
    return rule


def _rule_of(reply: Any, body: Json) -> Rule:
    if not isinstance(reply, dict):
        return Rule(message={"role": "assistant", "content": reply, "refusal": None})
    if "http" in reply:
        message = reply.get("error", f"failed with {reply['http']}")
        error = message if isinstance(message, dict) else {"message": message}
        return Rule(status=reply["http"], body={"error": error}, headers=reply.get("headers", {}))
    if reply.get("timeout"):
        return Rule(seconds=TOO_LONG_SECONDS, text="too late")
    if reply.get("hang_up"):
        return Rule(hang_up=True)
    if "raw" in reply:
        raw = reply["raw"]
        return Rule(body=raw.encode() if isinstance(raw, str) else raw)
    message = {"role": "assistant", "content": reply.get("content"), "refusal": None}
    if "refusal" in reply:
        message["refusal"] = reply["refusal"]
    reason = reply.get("finish_reason", "stop")
    return Rule(body=completion(body, message, reason))


def echoed(mode: str, entries: Sequence[Entry]) -> str | None:
    """What a model that answers by a rule makes of the entries; None for the usual summary."""
    texts = [one.content for one in entries]
    whole = " ".join(texts)
    if mode in ("append_previous_plus_new", "append", "echo", "same_length", "verbatim"):
        return whole
    if mode in ("labels_only", "labels", "generic"):
        return "The user told some details and asked questions. The assistant answered them."
    if mode in ("longer", "double"):
        return f"{whole} {whole}"
    if mode in ("empty", "blank"):
        return "  \n"
    if mode in ("refuse", "refusal"):
        return "I'm sorry, but I can't help with that."
    return None
