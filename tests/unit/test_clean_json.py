"""Parsing and cleaning JSON: what comes out can be stored, sent, and hashed."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.domain.clean_json import clean_text, clean_value, parse_json
from turnfold.domain.errors import BadJsonError
from turnfold.domain.limits import MAX_NESTING
from turnfold.domain.transcript import canonical

any_text = st.text(st.characters(codec=None), max_size=20)
any_json: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=20,
)


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_nul_and_lone_surrogates_become_the_replacement_character() -> None:
    assert clean_text("a\x00b\ud800c\udfff") == "a\ufffdb\ufffdc\ufffd"
    assert clean_text("👍\U0001f44d\x01") == "👍\U0001f44d\x01"
    assert parse_json('{"a\\u0000": "\\ud83d", "b": "\\ud83d\\udc4d"}') == {
        "a\ufffd": "\ufffd",
        "b": "👍",
    }


@pytest.mark.parametrize(
    "raw",
    [
        "",
        " ",
        "{",
        "nothing",
        "{'a': 1}",
        "[1,]",
        "NaN",
        "[Infinity]",
        "[-Infinity]",
        "[1e999]",
        "[-1e999]",
        "\ufeff{}",
        b"\xff",
        b'"\xc3"',
        "1" * 5000,
        "[" * 100_000,
        '{"a":' * 50_000,
    ],
)
def test_what_is_refused(raw: str | bytes) -> None:
    with pytest.raises(BadJsonError):
        parse_json(raw)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_are_refused(number: float) -> None:
    assert clean_value({"a": [1.5, 10**400]}) == {"a": [1.5, 10**400]}
    with pytest.raises(BadJsonError):
        clean_value({"a": [number]})


@pytest.mark.parametrize(("levels", "taken"), [(MAX_NESTING, True), (MAX_NESTING + 1, False)])
def test_nesting(levels: int, taken: bool) -> None:
    if taken:
        assert json.dumps(parse_json(nested(levels))) == nested(levels)
    else:
        with pytest.raises(BadJsonError, match="nested"):
            parse_json(nested(levels))


@given(any_json)
def test_what_comes_out_can_be_encoded_and_is_stable(value: Any) -> None:
    cleaned = parse_json(json.dumps(value))
    assert parse_json(canonical(cleaned)) == cleaned
    assert clean_value(cleaned) == cleaned
    assert "\x00" not in json.dumps(cleaned, ensure_ascii=False)


@given(st.binary(max_size=60))
def test_no_bytes_do_harm(raw: bytes) -> None:
    try:
        canonical(parse_json(raw))
    except BadJsonError:
        return
