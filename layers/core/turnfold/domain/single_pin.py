"""mm-memory's form of a pin judgement, for those who bring a prompt or a model that answers in it.

    {"shouldPin": true, "reason": "...", "pinContent": "...", "confidence": 0.9,
     "negatesPinId": null}

The service's own form, for several turns at once, is in `turnfold.domain.judgement`.
"""

import json
import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SinglePin:
    """What one answer says about one turn. `content` is empty where there is nothing to pin."""

    should_pin: bool
    content: str
    confidence: float = 1.0
    negates: str | None = None

    @property
    def creates_pin(self) -> bool:
        """Whether there is something to pin: a yes alone is not enough."""
        return self.should_pin and bool(self.content)


NOTHING = SinglePin(should_pin=False, content="")


def parse_single_pin(text: str) -> SinglePin:
    """The judgement inside a model's answer; `NOTHING` if there is none.

    JSON is read by JSON's own rules, alone, in a code fence or among other words. A confidence that
    is missing or no number counts as 1, others are brought into 0 to 1.
    """
    answer = _first_object(text)
    if answer is None:
        return NOTHING
    content, negates = answer.get("pinContent"), answer.get("negatesPinId")
    return SinglePin(
        should_pin=answer.get("shouldPin") is True,
        content=content.strip() if isinstance(content, str) and content != "null" else "",
        confidence=_confidence(answer.get("confidence")),
        negates=negates if isinstance(negates, str) and negates not in ("", "null") else None,
    )


def _first_object(text: str) -> dict[str, Any] | None:
    """The first JSON object of a text that judges."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            found, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and "shouldPin" in found:
            return found
        at = text.find("{", at + 1)
    return None


def _confidence(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 1.0
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return 1.0
    return 1.0 if math.isnan(number) else min(1.0, max(0.0, number))
