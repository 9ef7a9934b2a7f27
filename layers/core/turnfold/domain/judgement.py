"""What a model is asked when it judges turns for pins or folds pins, and how its answer is read.

The schemas are in OpenAI's strict form: every member required, none besides. The answer is still
not trusted: ids and turns that were not asked about are ignored, and nothing but the stated shape
is taken.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from turnfold.domain.clean_json import parse_json
from turnfold.domain.errors import BadJsonError, RejectedAnswerError
from turnfold.domain.limits import MAX_PIN_CHARACTERS

MAX_FACTS_PER_TURN = 5
"""A turn that seems to hold more lasting facts than this was taken apart into trifles."""

MAX_FACT_CHARACTERS = 400
"""A fact is one short sentence. A longer text is dropped whole, since half a fact can be false."""

MAX_RETRACTED = 20
"""Pins retracted by one answer. An answer that would retract more is not trusted with the rest."""

SPEAKERS = ("user", "assistant")


def _strict(**members: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


JUDGEMENT_SCHEMA: Mapping[str, Any] = _strict(
    facts={
        "type": "array",
        "items": _strict(
            turn={"type": "integer"},
            text={"type": "string"},
            confidence={"type": "number"},
            said_by={"type": "string", "enum": list(SPEAKERS)},
            replaces_pin_id={"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
    },
    retracted_pin_ids={"type": "array", "items": {"type": "string"}},
)
"""Asked when turns are judged; `parse_judgement` reads the answer."""

AGGREGATION_SCHEMA: Mapping[str, Any] = _strict(
    facts={
        "type": "array",
        "items": _strict(
            text={"type": "string"},
            folds_pin_ids={"type": "array", "items": {"type": "string"}},
        ),
    },
)
"""Asked when pins are folded; `parse_aggregation` reads the answer."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that a model would pin. `confidence` is from 0 to 1."""

    turn: int
    text: str
    confidence: float
    said_by: str
    replaces_pin_id: str | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The facts of the judged turns in order, and the pins taken back without a new fact."""

    facts: tuple[Fact, ...]
    retracted_pin_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoldedFact:
    """One sentence that stands for several pins."""

    text: str
    folds_pin_ids: tuple[str, ...]


def parse_judgement(text: str, turns: Collection[int], pin_ids: Collection[str]) -> Judgement:
    """The judgement inside a model's answer about these turns and active pins.

    Facts of other turns, blank and over-long facts, repeated ones, and those over
    `MAX_FACTS_PER_TURN` are dropped; a pin id that is not in `pin_ids` is ignored. A pin that a
    fact replaces is not retracted besides. A confidence that is no number counts as 1.

    Raises `RejectedAnswerError("schema")` if the answer is not JSON of the schema's shape.
    """
    answer = _object(_parsed(text))
    retracted = _known(_texts(answer.get("retracted_pin_ids")), pin_ids)[:MAX_RETRACTED]
    facts: list[Fact] = []
    for item in _list(answer.get("facts")):
        fact = _fact(_object(item), pin_ids)
        alike = [one for one in facts if one.turn == fact.turn]
        if (
            fact.turn in turns
            and 0 < len(fact.text) <= MAX_FACT_CHARACTERS
            and len(alike) < MAX_FACTS_PER_TURN
            and fact.text not in [one.text for one in alike]
        ):
            facts.append(fact)
    facts.sort(key=lambda fact: fact.turn)
    replaced = {fact.replaces_pin_id for fact in facts}
    return Judgement(tuple(facts), tuple(one for one in retracted if one not in replaced))


def parse_aggregation(text: str, pin_ids: Collection[str]) -> tuple[FoldedFact, ...]:
    """Fewer sentences for all of these pins, none lost.

    Raises `RejectedAnswerError`: "schema" if the answer is not JSON of the schema's shape or a
    sentence is blank; "too_long" for a sentence over `MAX_PIN_CHARACTERS`; "coverage" unless every
    pin is folded exactly once and no other one; "not_fewer" unless there are fewer sentences than
    pins.
    """
    facts = tuple(
        FoldedFact(_one_line(_text(fact.get("text"))), tuple(_texts(fact.get("folds_pin_ids"))))
        for fact in map(_object, _list(_object(_parsed(text)).get("facts")))
    )
    if not all(fact.text for fact in facts):
        raise RejectedAnswerError("schema")
    if any(len(fact.text) > MAX_PIN_CHARACTERS for fact in facts):
        raise RejectedAnswerError("too_long")
    folded = [pin_id for fact in facts for pin_id in fact.folds_pin_ids]
    if sorted(folded) != sorted(pin_ids) or not all(fact.folds_pin_ids for fact in facts):
        raise RejectedAnswerError("coverage")
    if len(facts) >= len(pin_ids):
        raise RejectedAnswerError("not_fewer")
    return facts


def _fact(item: Mapping[str, Any], pin_ids: Collection[str]) -> Fact:
    turn = item.get("turn")
    if isinstance(turn, float) and turn.is_integer():
        turn = int(turn)
    if type(turn) is not int:
        raise RejectedAnswerError("schema")
    replaces = item.get("replaces_pin_id")
    said_by = item.get("said_by")
    return Fact(
        turn=turn,
        text=_one_line(_text(item.get("text"))),
        confidence=_confidence(item.get("confidence")),
        # Whatever is not clearly the user's word gets the lesser trust.
        said_by=said_by if said_by in SPEAKERS else "assistant",
        replaces_pin_id=replaces if isinstance(replaces, str) and replaces in pin_ids else None,
    )


def _confidence(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 1.0
    # Not float() first: a whole number may be too large for one.
    return 1.0 if isinstance(value, float) and math.isnan(value) else float(min(1, max(0, value)))


def _known(ids: Iterable[str], pin_ids: Collection[str]) -> list[str]:
    return [one for one in dict.fromkeys(ids) if one in pin_ids]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise RejectedAnswerError("schema")
    return value


def _texts(value: object) -> list[str]:
    return [_text(one) for one in _list(value)]


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise RejectedAnswerError("schema")
    return value


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RejectedAnswerError("schema")
    return value


_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A\s*```[\w-]*\s*\n(?P<inside>.*)\n\s*```\s*\Z", re.DOTALL)


def _parsed(text: str) -> Any:  # noqa: ANN401 - JSON can be anything
    """The JSON document of an answer, which may stand in a code fence or after thoughts."""
    text = _THOUGHTS.sub("", text).lstrip("\ufeff")
    fenced = _FENCE.match(text)
    try:
        return parse_json(fenced["inside"] if fenced else text)
    except BadJsonError:
        raise RejectedAnswerError("schema") from None
