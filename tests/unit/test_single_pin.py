"""mm-memory's form of a pin judgement, read by JSON's own rules."""

from __future__ import annotations

import pytest

from turnfold.domain.single_pin import NOTHING, SinglePin, parse_single_pin

YES = '{"shouldPin": true, "pinContent": "X"}'


@pytest.mark.parametrize(
    "text", [YES, f"```json\n{YES}\n```", f"Sure: {YES} Done.", f'{{"a": 1}} {YES}', f"{{ {YES}"]
)
def test_the_judgement_is_found_wherever_it_stands(text: str) -> None:
    assert parse_single_pin(text) == SinglePin(should_pin=True, content="X")


@pytest.mark.parametrize(
    "text", ["", "no", "{", "[" * 100_000, '{"other": 1}', "null", '{"shouldPin": tru']
)
def test_without_one_there_is_nothing_to_pin(text: str) -> None:
    assert parse_single_pin(text) == NOTHING


@pytest.mark.parametrize("content", ['""', '"  "', "null", '"null"', "7"])
def test_a_yes_without_content_makes_no_pin(content: str) -> None:
    pin = parse_single_pin(f'{{"shouldPin": true, "pinContent": {content}}}')
    assert pin.should_pin
    assert not pin.creates_pin


@pytest.mark.parametrize(
    ("given", "means"),
    [("0.5", 0.5), ('"0.5"', 0.5), ("7", 1.0), ("-1", 0.0), ("true", 1.0), ('"NaN"', 1.0)],
)
def test_a_confidence_is_brought_into_range(given: str, means: float) -> None:
    pin = parse_single_pin(f'{{"shouldPin": true, "pinContent": "X", "confidence": {given}}}')
    assert pin.confidence == means


@pytest.mark.parametrize(
    ("given", "means"),
    [('"p1"', "p1"), ('"null"', None), ('""', None), ("null", None), ("7", None)],
)
def test_what_is_negated_is_an_id_or_nothing(given: str, means: str | None) -> None:
    pin = parse_single_pin(f'{{"shouldPin": true, "pinContent": "X", "negatesPinId": {given}}}')
    assert pin.negates == means
