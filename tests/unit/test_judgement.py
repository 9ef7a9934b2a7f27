import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.domain.errors import RejectedAnswerError
from turnfold.domain.judgement import (
    AGGREGATION_SCHEMA,
    JUDGEMENT_SCHEMA,
    MAX_FACT_CHARACTERS,
    MAX_FACTS_PER_TURN,
    MAX_RETRACTED,
    Fact,
    FoldedFact,
    Judgement,
    parse_aggregation,
    parse_judgement,
)
from turnfold.domain.limits import MAX_PIN_CHARACTERS

TURNS = {3, 4}
PINS = {"p1", "p2", "p3"}


def fact(text: str = "The user eats no nuts.", **members: object) -> dict[str, Any]:
    return {
        "turn": 3,
        "text": text,
        "confidence": 0.9,
        "said_by": "user",
        "replaces_pin_id": None,
        **members,
    }


def judged(*facts: object, retracted: object = ()) -> Judgement:
    retracted = list(retracted) if isinstance(retracted, tuple) else retracted
    answer = {"facts": list(facts), "retracted_pin_ids": retracted}
    return parse_judgement(json.dumps(answer), TURNS, PINS)


def strict_objects(schema: object) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for one in schema for found in strict_objects(one)]
    if not isinstance(schema, dict):
        return []
    inside = [found for one in schema.values() for found in strict_objects(one)]
    return ([schema] if schema.get("type") == "object" else []) + inside


@pytest.mark.parametrize("schema", [JUDGEMENT_SCHEMA, AGGREGATION_SCHEMA])
def test_schemas_are_strict(schema: dict[str, Any]) -> None:
    objects = strict_objects(schema)
    assert len(objects) == 2
    for one in objects:
        assert one["additionalProperties"] is False
        assert one["required"] == list(one["properties"])
    assert json.loads(json.dumps(schema)) == schema


def test_a_judgement_is_read() -> None:
    judgement = judged(
        fact("The user lives in Bern.", turn=4, said_by="assistant", replaces_pin_id="p2"),
        fact(),
        retracted=("p1",),
    )
    assert judgement == Judgement(
        (
            Fact(3, "The user eats no nuts.", 0.9, "user", None),
            Fact(4, "The user lives in Bern.", 0.9, "assistant", "p2"),
        ),
        ("p1",),
    )


def test_no_facts_are_a_judgement() -> None:
    assert judged() == Judgement((), ())


@pytest.mark.parametrize(
    "wrapped",
    ["```json\n{}\n```", "```\n{}\n```", "\n  {}\n", "\ufeff{}", "<think>\nHm. }}{{\n</think>\n{}"],
)
def test_wrappers_do_not_matter(wrapped: str) -> None:
    answer = json.dumps({"facts": [fact()], "retracted_pin_ids": []}, indent=1)
    assert len(parse_judgement(wrapped.replace("{}", answer), TURNS, PINS).facts) == 1


def test_unknown_ids_and_turns_are_ignored() -> None:
    judgement = judged(
        fact(replaces_pin_id="p9"), fact("Other.", turn=5), retracted=("p9", "p1", "p1", "p2")
    )
    assert [one.replaces_pin_id for one in judgement.facts] == [None]
    assert judgement.retracted_pin_ids == ("p1", "p2")


def test_a_replaced_pin_is_not_retracted_besides() -> None:
    assert judged(fact(replaces_pin_id="p1"), retracted=("p1", "p2")).retracted_pin_ids == ("p2",)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (0.5, 0.5),
        (0, 0.0),
        (1, 1.0),
        (-3, 0.0),
        (7.5, 1.0),
        (10**400, 1.0),
        (None, 1.0),
        ("high", 1.0),
        (True, 1.0),
    ],
)
def test_a_confidence_is_from_0_to_1(given: object, read: float) -> None:
    (one,) = judged(fact(confidence=given)).facts
    assert one.confidence == read
    assert isinstance(one.confidence, float)


def test_a_missing_confidence_or_speaker_is_no_reason_to_lose_the_fact() -> None:
    bare = {"turn": 3, "text": "The user eats no nuts."}
    assert judged(bare).facts == (Fact(3, "The user eats no nuts.", 1.0, "assistant", None),)
    assert judged(fact(said_by="a tool")).facts[0].said_by == "assistant"
    assert judged(fact(turn=4.0)).facts[0].turn == 4


def test_blank_over_long_and_repeated_facts_are_dropped() -> None:
    judgement = judged(
        fact(" \n "), fact("x" * (MAX_FACT_CHARACTERS + 1)), fact(" one\n fact "), fact("one fact")
    )
    assert [one.text for one in judgement.facts] == ["one fact"]


def test_a_turn_has_only_so_many_facts() -> None:
    facts = [fact(f"Fact {at}.", turn=turn) for at in range(9) for turn in (4, 3)]
    judgement = judged(*facts)
    assert [one.turn for one in judgement.facts] == [3] * MAX_FACTS_PER_TURN + [
        4
    ] * MAX_FACTS_PER_TURN
    assert judgement.facts[0].text == "Fact 0."


def test_an_answer_retracts_only_so_many_pins() -> None:
    pins = [f"p{at}" for at in range(99)]
    answer = json.dumps({"facts": [], "retracted_pin_ids": pins})
    assert len(parse_judgement(answer, TURNS, pins).retracted_pin_ids) == MAX_RETRACTED


def test_texts_can_be_stored() -> None:
    answer = '{"facts": [{"turn": 3, "text": "a \\ud83d b\\u0000"}], "retracted_pin_ids": []}'
    (one,) = parse_judgement(answer, TURNS, PINS).facts
    assert one.text == "a \ufffd b\ufffd"


NOT_OF_THE_SHAPE = [
    "",
    "   ",
    "no",
    "null",
    "[]",
    "7",
    '"facts"',
    "{}",
    '{"facts": []',
    '{"facts": [], "retracted_pin_ids": null}',
    '{"facts": null, "retracted_pin_ids": []}',
    '{"facts": {}, "retracted_pin_ids": []}',
    '{"facts": ["The user eats no nuts."], "retracted_pin_ids": []}',
    '{"facts": [{"turn": "3", "text": "x"}], "retracted_pin_ids": []}',
    '{"facts": [{"turn": true, "text": "x"}], "retracted_pin_ids": []}',
    '{"facts": [{"turn": 3, "text": null}], "retracted_pin_ids": []}',
    '{"facts": [{"turn": 3}], "retracted_pin_ids": []}',
    '{"facts": [], "retracted_pin_ids": [7]}',
    '{"facts": [], "retracted_pin_ids": [], "x": NaN}',
    "[" * 100_000,
    '{"facts": [], "retracted_pin_ids": []} and more',
]


@pytest.mark.parametrize("answer", NOT_OF_THE_SHAPE)
def test_other_shapes_are_rejected(answer: str) -> None:
    with pytest.raises(RejectedAnswerError) as caught:
        parse_judgement(answer, TURNS, PINS)
    assert caught.value.reason == "schema"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["facts", "turn", "text", "retracted_pin_ids", "folds_pin_ids", "confidence"]
            ),
            inside,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_or_rejected(value: object) -> None:
    text = json.dumps(value)
    reasons = set()
    for parse in (
        lambda: parse_judgement(text, TURNS, PINS),
        lambda: parse_aggregation(text, PINS),
    ):
        try:
            parse()
        except RejectedAnswerError as error:
            reasons.add(error.reason)
    assert reasons <= {"schema", "coverage", "not_fewer", "too_long"}


def folded(
    *facts: tuple[str, list[str]], pins: object = ("p1", "p2", "p3")
) -> tuple[FoldedFact, ...]:
    answer = {"facts": [{"text": text, "folds_pin_ids": ids} for text, ids in facts]}
    return parse_aggregation(json.dumps(answer), pins)  # type: ignore[arg-type]  # any collection will do


def test_an_aggregation_is_read() -> None:
    assert folded((" Both\nfacts. ", ["p3", "p1"]), ("The other.", ["p2"])) == (
        FoldedFact("Both facts.", ("p3", "p1")),
        FoldedFact("The other.", ("p2",)),
    )


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ([], "coverage"),
        ([("One.", ["p1", "p2"])], "coverage"),
        ([("One.", ["p1", "p2", "p3", "p3"])], "coverage"),
        ([("One.", ["p1", "p2", "p3"]), ("Two.", ["p1"])], "coverage"),
        ([("One.", ["p1", "p2", "p9"])], "coverage"),
        ([("One.", ["p1", "p2", "p3", "p9"])], "coverage"),
        ([("One.", ["p1", "p2", "p3"]), ("Two.", [])], "coverage"),
        ([("One.", ["p1"]), ("Two.", ["p2"]), ("Three.", ["p3"])], "not_fewer"),
        ([("One. " * MAX_PIN_CHARACTERS, ["p1", "p2", "p3"])], "too_long"),
        ([(" ", ["p1", "p2", "p3"])], "schema"),
    ],
)
def test_an_aggregation_that_loses_or_saves_nothing_is_rejected(
    facts: list[tuple[str, list[str]]], reason: str
) -> None:
    with pytest.raises(RejectedAnswerError) as caught:
        folded(*facts)
    assert caught.value.reason == reason


def test_a_folded_fact_may_be_longer_than_a_single_one() -> None:
    text = "a fact " * 200
    assert folded((text, ["p1", "p2", "p3"]))[0].text == text.strip()
