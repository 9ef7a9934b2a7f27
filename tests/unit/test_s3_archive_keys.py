"""Keys of the bucket: no id can forge another's, and all fit."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnfold.adapters.s3_archive import read_record_key, record_key, session_prefix
from turnfold.domain.errors import InvalidIdError
from turnfold.domain.sessions import SessionKey

ids = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=256),
    st.text("./%2F=!", min_size=1, max_size=12),
)
keys = st.builds(SessionKey, tenant=ids, session_id=ids)
turn_ids = st.text("abz-_./% é", min_size=1, max_size=16)


@given(keys, st.integers(0, 10**12 - 1), turn_ids)
def test_a_record_key_fits_and_tells_its_turn(key: SessionKey, number: int, turn_id: str) -> None:
    object_key = record_key(key, number, turn_id)
    assert len(object_key.encode()) <= 1024
    assert object_key.isascii()
    assert object_key.startswith(f"{session_prefix(key)}turns/")
    assert object_key.count("/") == 4
    assert read_record_key(object_key) == (number, turn_id)


@given(keys, keys)
@example(SessionKey("a", "x"), SessionKey("a", "x/turns"))
@example(SessionKey("a", "漢" * 256), SessionKey("a", "漢" * 255 + "字"))
@example(SessionKey("a", "%2F"), SessionKey("a", "/"))
def test_no_prefix_of_a_session_begins_anothers(one: SessionKey, other: SessionKey) -> None:
    first, second = session_prefix(one), session_prefix(other)
    assert second.startswith(first) == (one == other)


def test_no_id_is_another_ones_hash() -> None:
    long = SessionKey("t", "漢" * 256)
    shown = session_prefix(long).split("session=")[1].rstrip("/")
    assert shown.startswith("!")
    assert session_prefix(SessionKey("t", shown)) != session_prefix(long)


def test_ids_are_readable_where_they_can_be() -> None:
    key = SessionKey("acme", "order-17_a.b~c")
    assert record_key(key, 7, "t1") == (
        "v1/tenant=acme/session=order-17_a.b~c/turns/000000000007-t1.json"
    )


@pytest.mark.parametrize("object_key", ["", "x", "a/turns/1-a.json", "a/turns/000000000001-.json"])
def test_another_object_is_no_record(object_key: str) -> None:
    assert read_record_key(object_key) is None


def test_a_turn_id_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidIdError):
        record_key(SessionKey("t", "s"), 1, "x" * 129)
