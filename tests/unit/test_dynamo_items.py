"""Items of the table: whatever is stored comes back as it was."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sessions import START, a_pin, a_record, a_session, a_summary, a_turn
from turnfold.adapters.dynamo_attributes import (
    document,
    moment,
    number,
    read_document,
    read_moment,
    read_number,
)
from turnfold.adapters.dynamo_items import (
    ArchivedTurn,
    answer_item,
    idempotency_item,
    pin_item,
    read_answer,
    read_idempotency,
    read_pin,
    read_summary,
    read_turn,
    summary_item,
    turn_item,
)
from turnfold.adapters.dynamo_sessions import (
    SESSION_CODECS,
    UNSTORED_SETTINGS,
    profile_item,
    read_profile,
    read_session,
    session_attributes,
    session_item,
)
from turnfold.application.ports.models import ModelAnswer
from turnfold.domain.limits import MAX_INLINE_TURN_BYTES
from turnfold.domain.pins import PinStatus
from turnfold.domain.sessions import Profile, Session, SessionKey, SummaryRef
from turnfold.domain.settings import Settings

KEY = SessionKey("t", "s")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
moments = st.integers(0, 7 * 10**15).map(lambda past: EPOCH + timedelta(microseconds=past))


@given(values)
def test_a_document_keeps_value_type_and_order(value: Any) -> None:
    assert repr(read_document(document(value))) == repr(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_document_refuses_what_is_no_json(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        document({"x": [value]})


@given(st.integers(-(10**37), 10**37))
def test_a_number_comes_back(value: int) -> None:
    assert read_number(number(value)) == value


@given(moments, moments)
def test_times_come_back_and_sort_as_texts(one: datetime, other: datetime) -> None:
    assert read_moment(moment(one)) == one
    assert (moment(one)["S"] < moment(other)["S"]) == (one < other)


def test_every_field_of_a_session_has_an_attribute() -> None:
    assert {one.name for one in fields(Session)} == {"key", *SESSION_CODECS}


def test_a_session_comes_back() -> None:
    session = a_session(KEY, user_id="u", due_at=START)
    assert read_session(session_item(session)) == session


def test_what_an_older_version_did_not_store_has_its_default() -> None:
    item = session_item(a_session(KEY))
    for name in ("sweeps", "pin_count", "manifest"):
        del item[name]
    assert read_session(item) == a_session(KEY)


def test_a_setting_of_a_later_version_is_passed_over() -> None:
    item = session_item(a_session(KEY))
    settings = read_document(item["settings"]) | {"invented_later": 1}
    assert read_session(item | {"settings": document(settings)}) == a_session(KEY)


def test_index_attributes_follow_their_fields() -> None:
    bare = session_item(a_session(KEY))
    assert not {"due_shard", "due_at", "user_key", "user_id"} & bare.keys()
    assert {"tenant_key", "created_key"} <= bare.keys()
    full = session_item(a_session(KEY, user_id="u#1", due_at=START))
    assert full["user_key"] == {"S": "T#t#U#u%231"}
    assert full["due_shard"]["S"].startswith("D#")
    cleared = session_attributes(KEY, {"due_at": None})
    assert cleared == {"due_at": None, "due_shard": None}
    assert "due_shard" not in session_attributes(KEY, {"sweeps": 1})


@given(st.lists(st.dictionaries(texts, values, max_size=3), max_size=3), st.integers(1, 10**9))
def test_a_turn_comes_back(messages: list[dict[str, Any]], turn_number: int) -> None:
    turn = replace(a_turn(turn_number)[0], messages=tuple(messages))
    assert repr(read_turn(turn_item(KEY, turn))) == repr(turn)


@pytest.mark.parametrize("character", ["x", "漢", '"'])
def test_a_turn_is_archived_above_the_inline_size(character: str) -> None:
    def turn_of(count: int) -> Any:
        turn = replace(a_turn(1)[0], messages=({"role": "user", "content": character * count},))
        return read_turn(turn_item(KEY, turn))

    frame = len('[{"role":"user","content":""}]')
    # A quotation mark is escaped in JSON.
    size = len((character if character != '"' else '\\"').encode())
    longest = (MAX_INLINE_TURN_BYTES - frame) // size
    assert not isinstance(turn_of(longest), ArchivedTurn)
    assert isinstance(turn_of(longest + 1), ArchivedTurn)


@given(texts, texts)
def test_profiles_summaries_and_pins_come_back(said: str, other: str) -> None:
    profile = Profile(system=({"role": "system", "content": said},), metadata={other: said})
    assert read_profile(profile_item(KEY, profile, 3)) == (profile, 3)
    summary = replace(a_summary(2, 9, 3, text=said), degraded=True, model=other)
    assert read_summary(summary_item(KEY, summary)) == summary
    pin = a_pin(
        "p1", PinStatus.QUARANTINED, text=said, reason=other, replaces="p0", folded_from=("a",)
    )
    assert read_pin(pin_item(KEY, pin)) == pin


@given(st.floats(0, 1))
def test_a_confidence_is_exact(confidence: float) -> None:
    assert read_pin(pin_item(KEY, a_pin("p", confidence=confidence))).confidence == confidence


@given(values, moments)
def test_records_that_expire_come_back(value: Any, expires_at: datetime) -> None:
    record = a_record(body={"x": value}, expires_at=expires_at)
    item = idempotency_item(KEY, record)
    assert repr(read_idempotency(item)) == repr(record)
    answer = ModelAnswer("t", "stop", "m", None, 1, 2)
    assert read_answer(answer_item(KEY, "step", answer, expires_at)) == (answer, expires_at)


def test_the_time_to_live_never_comes_before_the_expiry() -> None:
    expires_at = START + timedelta(microseconds=1)
    item = idempotency_item(KEY, a_record(expires_at=expires_at))
    assert expires_at.timestamp() < int(item["ttl"]["N"]) <= expires_at.timestamp() + 1


def test_a_session_stays_within_one_kilobyte() -> None:
    """Each commit rewrites it and pays by started kilobyte, so that all commits cost the same."""
    session = a_session(
        SessionKey("a-tenant", "0198c0de-0000-7000-8000-000000000000"),
        epoch="0198c0de00007000800000000000",
        due_at=START,
        next_turn=5000,
        system_sha256="a" * 64,
        last_sha256="b" * 64,
        user_id="a-user@example.com",
        settings=Settings(tail_size=4, model="gpt-4o-mini"),
        manifest=tuple(SummaryRef(n * 100, n * 100 + 99, 3) for n in range(10, 20)),
    )
    item = session_item(session)
    size = sum(len(name) + len(str(next(iter(one.values())))) for name, one in item.items())
    assert size < 1024


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "head_size": st.integers(1, 3),
            "tail_size": st.integers(1, 3),
            "schedule": st.sampled_from(["tiered", "whole"]),
            "pin_mode": st.sampled_from(["async", "sync", "off"]),
            "auto_compression": st.booleans(),
            "strategies": st.sampled_from([(), ("PIN_JUDGMENT",)]),
            "policy": st.sampled_from([{"name": "progressive"}, {"name": "x", "y": 1.0}]),
            "model": st.sampled_from([None, "gpt-4"]),
        },
    )
)
def test_settings_come_back(changed: dict[str, Any]) -> None:
    session = a_session(KEY, settings=Settings(**changed))
    assert repr(read_session(session_item(session))) == repr(session)


def test_what_is_left_out_of_stored_settings_never_changes() -> None:
    """It stands for what it stood for when it was stored, whatever the defaults are by now."""
    assert UNSTORED_SETTINGS == {
        "policy": {"name": "progressive"},
        "head_size": 1,
        "tail_size": 2,
        "window_max_size": 5,
        "window_token_threshold": 3000,
        "round_token_threshold": 1000,
        "max_pin_count": 10,
        "max_pin_tokens": 300,
        "expire_days": 7,
        "schedule": "tiered",
        "pin_mode": "async",
        "auto_compression": True,
        "strategies": (
            "PIN_JUDGMENT",
            "CURRENT_ROUND_SUMMARIZATION",
            "HISTORY_SUMMARIZATION",
            "PIN_AGGREGATION",
        ),
        "memory_role": "system",
        "model": None,
    }
