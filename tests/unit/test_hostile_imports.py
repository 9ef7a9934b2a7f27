"""Whatever is handed in to be imported is taken, reported by its line, or refused as a whole."""

from __future__ import annotations

import csv
import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.service import plain_turn
from turnfold.application.import_content import LINE_TYPES, read_import
from turnfold.cli.import_file import import_parts
from turnfold.domain.errors import BadJsonError, InvalidImportError
from turnfold.domain.limits import MAX_INLINE_TURN_BYTES, MAX_NESTING
from turnfold.domain.transcript import sha256_of

if TYPE_CHECKING:
    from pathlib import Path

    from turnfold.domain.cutting import Fault

NAMES = (  # noqa: SIM905 - forty literals, each on a line of its own, are harder to read
    "type role content data id lc kwargs messagePair userMessage assistantMessage messages turn"
    " intermediateMessages status tool_calls tool_call_id name args function text input output"
    " sha256 prev_sha256 committed_at metadata settings system user_id pin_id sources tokens rev"
    " trust confidence created_at updated_at folded_from replaces"
).split()
WORDS = (
    *LINE_TYPES,
    *("human", "ai", "tool", "system", "USER", "ASSISTANT", "TOOL", "user", "assistant"),
    *("tool_use", "tool_result", "text", "INVALIDATED", "active", "operator", "HumanMessage"),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-01", "nan", "inf"),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=6)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(NAMES), VALUES, min_size=1, max_size=8)
PIN = {
    "type": "pin",
    "pin_id": "p1",
    "text": "Likes tea.",
    "tokens": 3,
    "status": "active",
    "trust": "operator",
    "confidence": 1.0,
    "sources": [{"turn": 1}],
    "created_at": "2026-01-01T00:00:00.000000Z",
    "updated_at": "2026-01-01T00:00:00.000000Z",
    "rev": 1,
}


def turn_line(number: int, prev: str | None = None, **members: Any) -> dict[str, Any]:
    """A turn as an export has it, with its hash if it names the one before."""
    said = {"turn": number, "messages": plain_turn(number), **members}
    if prev is None:
        return {"type": "turn", **said}
    said["prev_sha256"] = prev
    return {"type": "turn", **said, "sha256": sha256_of(said)}


def lines(*values: Any) -> str:
    return "".join(one if isinstance(one, str) else f"{json.dumps(one)}\n" for one in values)


def faults_of(*values: Any) -> list[tuple[int, str]]:
    return [(one.place, one.reason) for one in read_import(lines(*values)).faults]


def places(*values: Any) -> tuple[list[int], list[int]]:
    """The places of the turns that are taken, and of the faults."""
    content = read_import(lines(*values))
    return [one.place for one in content.turns], [one.place for one in content.faults]


@given(st.lists(OBJECTS, min_size=1, max_size=4) | OBJECTS)
def test_nothing_but_a_refusal_is_raised_for_any_json(value: Any) -> None:
    for raw in (json.dumps(value), lines(*value) if isinstance(value, list) else "1"):
        try:
            content = read_import(raw)
        except (BadJsonError, InvalidImportError):
            continue
        for turn in content.turns:
            turn.sent.check()


@given(st.text(max_size=200))
def test_nothing_but_a_refusal_is_raised_for_any_text(raw: str) -> None:
    with pytest.raises((BadJsonError, InvalidImportError)):
        read_import(raw)


@pytest.mark.parametrize(
    "entry",
    [
        {"role": ["user"]},
        {"role": {}},
        {"type": ["human"]},
        {"messagePair": {"userMessage": "x", "intermediateMessages": 5}},
        {"userMessage": 5, "assistantMessage": 5},
        {"userMessage": {"role": [], "content": {}}},
        {"lc": 1, "id": {}, "kwargs": {}},
        {"type": "ai", "tool_calls": "ab"},
        {"role": "ASSISTANT", "content": [{"type": "tool_use"}]},
        {"role": "USER", "content": [[]]},
        5,
        None,
    ],
)
def test_an_entry_of_a_dump_that_is_no_message_is_reported(entry: Any) -> None:
    content = read_import(json.dumps([*plain_turn(1), entry, *plain_turn(2)]))
    assert [turn.place for turn in content.turns] == [1, 4]
    assert {fault.place for fault in content.faults} == {3}


def test_turns_stand_once_and_in_order() -> None:
    given = [turn_line(number) for number in (1, 2, 2, 4, 3, 0, -1, 5)]
    assert places(*given) == ([1, 2, 4, 8], [3, 5, 6, 7])


def test_a_turn_that_is_not_as_it_was_exported_is_reported() -> None:
    first = turn_line(1, "0" * 64)
    second = turn_line(2, first["sha256"])
    third = turn_line(3, second["sha256"])
    assert places(first, second, third) == ([1, 2, 3], [])
    changed = second | {"messages": plain_turn(22)}
    assert places(first, changed, third) == ([1, 3], [2])
    ((_, reason),) = faults_of(first, changed, third)
    assert "sha256" in reason
    # Taken as it is: without a hash, nothing is said of what it was.
    unsaid = {name: one for name, one in changed.items() if name != "sha256"}
    assert places(first, unsaid, third) == ([1, 2, 3], [])


def test_a_turn_that_follows_another_one_is_reported() -> None:
    first = turn_line(1, "0" * 64)
    stranger = turn_line(2, "f" * 64)
    assert places(first, stranger) == ([1], [2])
    # Of a cut in two, the second part has nothing before it.
    assert places(stranger) == ([1], [])
    assert places(first, turn_line(5, "f" * 64)) == ([1, 2], [])


def test_two_sessions_in_one_body_are_refused() -> None:
    one, two = ({"type": "session", "session_id": name} for name in "ab")
    with pytest.raises(InvalidImportError) as refused:
        read_import(lines(one, turn_line(1), two, turn_line(1)))
    assert refused.value.errors[0][0] == "line 3"


@pytest.mark.parametrize(
    "member",
    [
        {"settings": {"tail_size": 0}},
        {"settings": {"policy": 5}},
        {"system": [{"role": "user", "content": "x"}]},
        {"system": 5},
        {"user_id": 5},
        {"user_id": "\n"},
        {"metadata": []},
    ],
)
def test_settings_that_are_none_are_reported(member: dict[str, Any]) -> None:
    content = read_import(lines({"type": "session"} | member, turn_line(1)))
    assert [one.place for one in content.faults] == [1]
    assert len(content.turns) == 1


@pytest.mark.parametrize(
    "member",
    [
        {"pin_id": ""},
        {"pin_id": "x" * 2000},
        {"pin_id": "a#b"},
        {"confidence": "nan"},
        {"confidence": "inf"},
        {"confidence": 2},
        {"created_at": "0001-01-01T00:00:00+14:00"},
        {"created_at": "2026-01-01T00:00:00"},
        {"updated_at": None},
        {"sources": 5},
        {"sources": [{}]},
        {"status": "gone"},
        {"trust": "nobody"},
        {"folded_from": [5]},
        {"folded_from": ["x" * MAX_INLINE_TURN_BYTES]},
        {"tokens": "x"},
        {"rev": None},
    ],
)
def test_pins_that_cannot_be_stored_are_reported(member: dict[str, Any]) -> None:
    content = read_import(lines(PIN | member, turn_line(1)))
    assert [one.place for one in content.faults] == [1]
    assert content.pins == []
    assert len(read_import(lines(PIN, turn_line(1))).pins) == 1


def test_a_pin_stands_once() -> None:
    content = read_import(lines(PIN, PIN | {"text": "Another."}, PIN | {"pin_id": "p2"}))
    assert [place for place, _ in content.pins] == [1, 3]
    assert [one.place for one in content.faults] == [2]


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "?", 5])
def test_a_time_that_is_none_is_that_of_the_import(time: Any) -> None:
    (turn,) = read_import(lines(turn_line(1, committed_at=time))).turns
    assert turn.committed_at is None


def test_half_a_line_is_reported_and_the_rest_goes_in() -> None:
    cut = json.dumps(turn_line(3))[:40]
    assert places(turn_line(1), turn_line(2), cut) == ([1, 2], [3])


def test_a_line_that_is_nested_too_deep_is_reported() -> None:
    for depth in (MAX_NESTING + 1, 100_000):
        deep = '{"type":"turn","messages":' + "[" * depth + "]" * depth + "}\n"
        assert places(turn_line(1), deep, turn_line(2)) == ([1, 3], [2])
        with pytest.raises(BadJsonError):
            read_import(deep)


def test_a_turn_that_is_too_large_is_reported() -> None:
    huge = {"type": "turn", "messages": plain_turn(1)}
    huge["messages"] = [{"role": "user", "content": "x" * 2_000_000}, plain_turn(1)[1]]
    assert places(turn_line(1), huge, turn_line(2)) == ([1, 3], [2])


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_line_feeds_divide_lines(mark: str) -> None:
    said = turn_line(1)
    said["messages"][0]["content"] = f"a{mark}b"
    raw = json.dumps(said, ensure_ascii=False) + "\r\n"
    content = read_import(raw + lines(turn_line(2)))
    assert content.turns[0].sent.messages[0]["content"] == f"a{mark}b"
    assert [turn.place for turn in content.turns] == [1, 2]


@pytest.mark.parametrize("written", ["\\u0000", "\\ud800", "\\udc00x"])
def test_what_cannot_be_stored_is_replaced(written: str) -> None:
    raw = json.dumps(turn_line(1)).replace("Question 1", f"a{written}")
    (turn,) = read_import(raw).turns
    assert turn.sent.messages[0]["content"].startswith("a\ufffd")


# By the command line ------------------------------------------------------------------------------


def test_what_the_command_line_leaves_out_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps([*plain_turn(1), {"role": "nobody"}, *plain_turn(2)]), "utf-8")
    reported: list[Fault] = []
    (part,) = import_parts(path, "s", reported.append)
    assert part.turns == 2
    assert [one.place for one in reported] == [3]


def test_a_line_that_is_no_utf_8_is_sent_to_be_reported(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    good = lines(turn_line(1)).encode()
    path.write_bytes(good + b'{"type":"turn","x":"\xff"}\n' + good)
    (part,) = import_parts(path, "s")
    content = read_import(part.body.decode())
    assert [part.places[one.place - 1] for one in content.faults if "JSON" in one.reason] == [2]


def csv_file() -> bytes:
    written = io.StringIO()
    csv.writer(written).writerows([("role", "content"), ("user", "a, b"), ("assistant", "c")])
    return written.getvalue().encode()


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(lines(turn_line(1)).encode()),
        csv_file(),
        b"",
        b"\xff\xfe{\x00}\x00",
        b"[" * 100_000,
        b'{"type": ' * 5000,
        b"\x00" * 100,
    ],
    ids=["gzip", "csv", "empty", "utf-16", "deep", "deep object", "nul"],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises((BadJsonError, InvalidImportError)):
        list(import_parts(path, "s"))
