"""A model that answers well or in one of the ways in which models fail."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.service import Reply, ScriptedModel, down
from turnfold.application.ports.models import ModelAnswer

if TYPE_CHECKING:
    from turnfold.application.ports.models import ModelRequest

MOODS = ("good", "down", "refusal", "blank", "length", "too_long", "language", "not_json", "busy")
REFUSAL = "I'm sorry, but I can't help with that."
FOREIGN = "मौसम आज बहुत अच्छा है और हम सब बाज़ार जा रहे हैं ताकि सब्ज़ियाँ खरीद सकें।"
CUT = "This answer was cut off in the middle"
POISON = (REFUSAL, FOREIGN, CUT, "BLAHBLAH")
"""What must never be stored."""

_CAP = re.compile(r"at most (\d+) tokens")
_ROW = re.compile(r"^\{.*\}$", re.MULTILINE)


_BAD: dict[str, Reply] = {
    "refusal": ModelAnswer(REFUSAL, "stop", "scripted"),
    "blank": ModelAnswer(" \n", "stop", "scripted"),
    "length": ModelAnswer(CUT, "length", "scripted"),
    "too_long": "BLAHBLAH " * 4000,
    "language": FOREIGN,
}


@dataclass
class MoodyModel(ScriptedModel):
    """Its `mood` is one of `MOODS`; "busy" pins something of every turn and rewords pins."""

    mood: str = "good"

    def _reply(self, request: ModelRequest) -> Reply:
        if self.mood == "down":
            return down(request)
        if self.mood == "not_json" and request.schema:
            return "{'facts': oops}"
        return _BAD.get(self.mood) or self._good(request)

    def _good(self, request: ModelRequest) -> str:
        rows = [json.loads(row) for row in _ROW.findall(request.data)]
        if request.purpose == "pin_judgement":
            return self._judgement(rows)
        texts = [str(row["content"]) for row in rows]
        if request.purpose == "pin_aggregation":
            ids = [row["pin_id"] for row in rows]
            return json.dumps({"facts": [{"text": "; ".join(texts), "folds_pin_ids": ids}]})
        source = " ".join(texts).encode()
        asked = _CAP.search(request.instruction)
        cap = int(asked[1]) if asked else 100
        return source[: max(8, min(len(source) // 3, cap * 3))].decode(errors="ignore")

    def _judgement(self, rows: list[dict[str, object]]) -> str:
        pins = [str(row["pin_id"]) for row in rows if "pin_id" in row]
        facts = []
        for row in rows:
            if self.mood != "busy" or row.get("role") != "user":
                continue
            said = " ".join(str(row["content"]).split()[:6])
            replaced = pins[0] if pins and len(said) % 3 == 0 else None
            facts.append(
                {
                    "turn": row["turn"],
                    "text": f"The user said: {said}"[:200],
                    "confidence": 0.9,
                    "said_by": "user" if len(said) % 5 else "assistant",
                    "replaces_pin_id": replaced,
                }
            )
        retracted = pins[-1:] if len(facts) % 4 == 3 else []
        return json.dumps({"facts": facts, "retracted_pin_ids": retracted})
