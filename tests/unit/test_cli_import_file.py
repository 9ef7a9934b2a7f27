"""A file becomes the same requests each time, and faults can be told by its lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.service import plain_turn
from turnfold.application.import_content import read_import
from turnfold.cli.import_file import PART_TURNS, ImportPart, count_turns, import_parts
from turnfold.domain.errors import BadJsonError, InvalidImportError

if TYPE_CHECKING:
    from pathlib import Path


def line(**members: Any) -> str:
    return json.dumps(members, separators=(",", ":"))


def session(name: str) -> str:
    return line(type="session", session_id=name)


def turn(number: int) -> str:
    return line(type="turn", turn=number, messages=plain_turn(number))


PIN = line(type="pin", pin_id="p1")


def parts_of(tmp_path: Path, *lines: str, into: str | None = None) -> list[ImportPart]:
    path = tmp_path / "file.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    return list(import_parts(path, into))


def test_a_long_session_becomes_parts_each_with_the_session(tmp_path: Path) -> None:
    lines = [session("a"), PIN, *map(turn, range(1, 2 * PART_TURNS + 2))]
    parts = parts_of(tmp_path, *lines)
    assert [part.turns for part in parts] == [PART_TURNS, PART_TURNS, 1, 0]
    assert {part.session_id for part in parts} == {"a"}
    for part in parts:
        assert part.lines[0].decode() == session("a")
        assert read_import(part.body.decode()).session is not None or part.turns == 0
    assert parts[1].places[1] == PART_TURNS + 3, "line 1 is the session, line 2 a pin"
    assert parts[-1].lines[1].decode() == PIN, "facts come when all turns are there"


def test_the_same_file_gives_the_same_keys_and_another_others(tmp_path: Path) -> None:
    lines = [session("a"), *map(turn, range(1, 200))]
    first = [part.key for part in parts_of(tmp_path, *lines)]
    assert first == [part.key for part in parts_of(tmp_path, *lines)]
    assert len(set(first)) == 3
    other = [part.key for part in parts_of(tmp_path, *lines, into="b")]
    assert not set(first) & set(other)


def test_a_file_of_several_sessions_goes_to_each(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, session("a"), turn(1), session("b"), turn(1), turn(2), session("c"))
    assert [(part.session_id, part.turns) for part in parts] == [("a", 1), ("b", 2), ("c", 0)]


def test_summaries_stay_behind_and_what_is_broken_goes_along(tmp_path: Path) -> None:
    parts = parts_of(
        tmp_path, session("a"), line(type="summary", text="x"), "{broken", turn(1), '["b"]'
    )
    assert [part.places for part in parts] == [[1, 3, 4, 5]]


def test_lines_are_divided_by_line_feeds_alone(tmp_path: Path) -> None:
    odd = json.dumps(
        {"type": "turn", "messages": [{"role": "user", "content": "a\u2028b\u0085c\x0bd"}]},
        ensure_ascii=False,
    )
    (part,) = parts_of(tmp_path, session("a"), odd)
    assert part.lines[1].decode() == odd


def test_messages_of_other_software_become_turns(tmp_path: Path) -> None:
    path = tmp_path / "messages.json"
    messages = [one for number in range(1, 100) for one in plain_turn(number)]
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    parts = list(import_parts(path, "a"))
    assert [part.turns for part in parts] == [80, 19]
    assert parts[0].session_id == "a"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(InvalidImportError):
        list(import_parts(path, "a"))
    path.write_text("nothing", encoding="utf-8")
    with pytest.raises(BadJsonError):
        list(import_parts(path, "a"))


def test_turns_are_counted_for_the_bar(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text("\n".join([session("a"), turn(1), turn(2), PIN]), encoding="utf-8")
    assert count_turns(path) == 2
