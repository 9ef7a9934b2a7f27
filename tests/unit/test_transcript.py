"""Records of the transcript: word for word, chained, and told from forged ones."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.invariants import verbatim
from support.sessions import START
from support.strategies import turns
from turnfold.domain.transcript import (
    canonical,
    format_time,
    is_intact,
    make_record,
    parse_time,
    read_record,
    sha256_of,
)


def record_of(messages: list[Any], **members: Any) -> tuple[Any, bytes]:
    values: dict[str, Any] = {
        "number": 3,
        "turn_id": "t3",
        "committed_at": START,
        "prev_sha256": "0" * 64,
    }
    return make_record(messages=messages, **(values | members))


def test_canonical_json_is_sorted_tight_and_utf8() -> None:
    assert canonical({"b": [1, "é"], "a": None}) == '{"a":null,"b":[1,"é"]}'.encode()
    assert sha256_of({"a": 1, "b": 2}) == sha256_of({"b": 2, "a": 1})


def test_times_are_utc_with_microseconds() -> None:
    assert format_time(START) == "2026-01-02T03:04:05.678901Z"
    east = timezone(timedelta(hours=2))
    assert format_time(datetime(2026, 1, 2, 2, tzinfo=east)) == "2026-01-02T00:00:00.000000Z"


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_come_back(moment: datetime) -> None:
    assert parse_time(format_time(moment)) == moment


@given(turns())
def test_a_record_comes_back_word_for_word(messages: list[Any]) -> None:
    turn, raw = record_of(messages)
    again = read_record(raw)
    assert again == turn
    assert verbatim(again.messages) == verbatim(messages)
    assert is_intact(raw)


@given(turns())
def test_the_hash_is_that_of_the_canonical_record_without_it(messages: list[Any]) -> None:
    turn, raw = record_of(messages, metadata={"b": 1, "a": "é"})
    body = json.loads(raw)
    assert body.pop("sha256") == turn.sha256
    assert hashlib.sha256(canonical(body)).hexdigest() == turn.sha256
    assert body["prev_sha256"] == "0" * 64
    assert body["metadata"] == {"b": 1, "a": "é"}


@given(turns(), st.data())
def test_a_changed_record_is_told(messages: list[Any], data: st.DataObject) -> None:
    _, raw = record_of(messages)
    body = json.loads(raw)
    name = data.draw(st.sampled_from(sorted(body)))
    body[name] = data.draw(
        st.text(max_size=3) | st.integers().filter(lambda one: one != body[name])
    )
    assert not is_intact(canonical(body))


def test_what_is_no_record_is_not_intact() -> None:
    for raw in (b"", b"[]", b"{}", b"null", b"5", b"\xff", b'{"sha256":null}'):
        assert not is_intact(raw)


def test_each_member_changes_the_hash() -> None:
    messages = [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]
    hashes = {
        record_of(messages)[0].sha256,
        record_of(messages, number=4)[0].sha256,
        record_of(messages, turn_id="t4")[0].sha256,
        record_of(messages, committed_at=START + timedelta(microseconds=1))[0].sha256,
        record_of(messages, prev_sha256="1" * 64)[0].sha256,
        record_of(messages, metadata={"a": 1})[0].sha256,
        record_of(messages[:1])[0].sha256,
    }
    assert len(hashes) == 7
