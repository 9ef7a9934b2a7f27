"""Keys of the table: no id can forge another's, whatever it contains."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.sessions import START, a_session
from turnfold.adapters.dynamo_keys import (
    META,
    PROFILE,
    WORKING_MEMORY,
    answer_sort_key,
    created_key,
    escape,
    former_pin_sort_key,
    idempotency_sort_key,
    partition_key,
    pin_sort_key,
    position_of,
    read_position,
    session_of,
    shard_of,
    summary_sort_key,
    tenant_key,
    turn_sort_key,
    unescape,
    user_key,
)
from turnfold.domain.errors import InvalidIdError
from turnfold.domain.limits import DUE_SHARDS
from turnfold.domain.sessions import SessionKey, SummaryRef

ids = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=256),
    st.text("#%235S/T ", min_size=1, max_size=12),
)
keys = st.builds(SessionKey, tenant=st.text("ab#%TS/ é", min_size=1, max_size=20), session_id=ids)


@given(ids)
@example("%23")
@example("%2523")
@example("#%#%")
def test_escaping_is_undone(value: str) -> None:
    assert unescape(escape(value)) == value
    assert "#" not in escape(value)


@given(keys)
def test_a_partition_names_its_session(key: SessionKey) -> None:
    assert session_of(partition_key(key)) == key


@given(keys, keys)
@example(SessionKey("a", "b#S#c"), SessionKey("a#S#b", "c"))
@example(SessionKey("a", "b%23c"), SessionKey("a", "b#c"))
def test_two_sessions_never_share_a_partition(one: SessionKey, other: SessionKey) -> None:
    assert (partition_key(one) == partition_key(other)) == (one == other)


@pytest.mark.parametrize("partition", ["", "T#a", "T#a#S", "T#a#S#b#c", "X#a#S#b", "T#a#U#b"])
def test_another_text_is_no_partition(partition: str) -> None:
    with pytest.raises(ValueError, match="partition"):
        session_of(partition)


def test_the_longest_ids_fit_and_longer_ones_are_refused() -> None:
    for character in ("👩", "#", "漢"):
        key = SessionKey("t" * 200, character * 256)
        assert len(partition_key(key).encode()) <= 2048
        assert len(created_key(key, START).encode()) <= 1024
        assert len(user_key(key.tenant, character * 256).encode()) <= 2048
    with pytest.raises(InvalidIdError):
        partition_key(SessionKey("👩" * 256, "👩" * 256))


@given(ids, ids)
def test_a_tenant_key_is_never_a_user_key(tenant: str, user: str) -> None:
    assert tenant_key(tenant) != user_key(tenant, user)
    assert tenant_key(f"{tenant}#U#{user}") != user_key(tenant, user)


@given(ids)
def test_only_working_memory_sorts_into_its_range(name: str) -> None:
    first, last = WORKING_MEMORY
    inside = [
        META,
        PROFILE,
        pin_sort_key(name),
        summary_sort_key(SummaryRef(1, 999_999_999_999, 9)),
        turn_sort_key(1),
        turn_sort_key(999_999_999_999),
    ]
    outside = [former_pin_sort_key(name), idempotency_sort_key(name), answer_sort_key(name)]
    assert all(first.encode() <= key.encode() <= last.encode() for key in inside)
    assert not any(first.encode() <= key.encode() <= last.encode() for key in outside)


@given(st.lists(st.integers(1, 10**12 - 1), max_size=20))
def test_turns_sort_by_number(numbers: list[int]) -> None:
    assert sorted(map(turn_sort_key, numbers)) == [turn_sort_key(one) for one in sorted(numbers)]


@given(keys)
def test_a_shard_is_one_of_the_shards(key: SessionKey) -> None:
    assert 0 <= shard_of(key) < DUE_SHARDS


def test_sessions_spread_over_the_shards() -> None:
    shards = [shard_of(SessionKey("t", f"s{number}")) for number in range(800)]
    assert all(60 <= shards.count(shard) <= 140 for shard in range(DUE_SHARDS))


@given(keys)
def test_a_position_is_read_for_the_tenant_that_asks(key: SessionKey) -> None:
    position = position_of(a_session(key))
    assert read_position(key.tenant, position) == (key, created_key(key, START))
    assert read_position("another", position)[0].tenant == "another"
