"""What every `Archive` promises."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from contract.conftest import MINISTACK, MOTO, Stores
from support.sessions import a_turn
from turnfold.domain.sessions import SessionKey

pytestmark = pytest.mark.parametrize("backend", ["in-memory", MOTO, MINISTACK])

ODD_IDS = [
    "a/b",
    "a%2Fb",
    "a%252Fb",
    "../x",
    "..",
    ".",
    "/",
    "a/turns/000000000001-x.json",
    "s1/",
    "!s1",
    "a b+c",
    "👩🏽‍🚀",
    "e\u0301",
    "\u00e9",
    "漢" * 256,
    "漢" * 255 + "字",
    "👩" * 256,
    "x" * 256,
]


def test_a_record_comes_back_byte_for_byte(stores: Stores) -> None:
    _, record = a_turn(1, "line\u2028separator \u0085", "<|endoftext|>")
    stores.archive.put_record(stores.key(), 1, "turn-1", record)
    assert stores.archive.get_record(stores.key(), 1, "turn-1") == record


def test_an_absent_record_is_none(stores: Stores) -> None:
    stores.archive.put_record(stores.key(), 1, "t", b"{}")
    assert stores.archive.get_record(stores.key(), 1, "u") is None
    assert stores.archive.get_record(stores.key(), 2, "t") is None
    assert stores.archive.get_record(stores.key("other"), 1, "t") is None


def test_a_record_is_never_overwritten(stores: Stores) -> None:
    stores.archive.put_record(stores.key(), 1, "t", b'{"a":1}')
    stores.archive.put_record(stores.key(), 1, "t", b'{"a":2}')
    assert stores.archive.get_record(stores.key(), 1, "t") == b'{"a":1}'


def test_of_twenty_threads_the_first_record_stays(stores: Stores) -> None:
    def put(number: int) -> bytes | None:
        stores.archive.put_record(stores.key(), 1, "t", b"%d" % number)
        return stores.archive.get_record(stores.key(), 1, "t")

    with ThreadPoolExecutor(20) as pool:
        seen = set(pool.map(put, range(20)))
    assert len(seen) == 1


def test_ranges_are_inclusive_and_ascending(stores: Stores) -> None:
    for number in (3, 1, 12, 2, 11, 4):
        stores.archive.put_record(stores.key(), number, f"t{number}", b"{}")
    every = [(number, f"t{number}") for number in (1, 2, 3, 4, 11, 12)]
    assert list(stores.archive.list_records(stores.key(), 1, 99)) == every
    assert list(stores.archive.list_records(stores.key(), 0, 99)) == every
    assert list(stores.archive.list_records(stores.key(), 2, 11)) == every[1:5]
    assert list(stores.archive.list_records(stores.key(), 5, 10)) == []
    assert list(stores.archive.list_records(stores.key(), 12, 12)) == every[5:]
    assert list(stores.archive.list_records(stores.key(), 3, 2)) == []


def test_records_of_a_lost_race_are_listed_beside_each_other(stores: Stores) -> None:
    for turn_id in ("b", "a"):
        stores.archive.put_record(stores.key(), 1, turn_id, b"{}")
    stores.archive.put_record(stores.key(), 2, "c", b"{}")
    assert list(stores.archive.list_records(stores.key(), 1, 1)) == [(1, "a"), (1, "b")]
    assert list(stores.archive.list_records(stores.key(), 1, 2)) == [(1, "a"), (1, "b"), (2, "c")]


def test_long_lists_are_complete(stores: Stores) -> None:
    def put(number: int) -> None:
        for turn_id in ("a", "b", "c"):
            stores.archive.put_record(stores.key(), number, turn_id, b"{}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, range(1, 401)))
    found = stores.archive.list_records(stores.key(), 1, 400)
    assert list(found) == [(number, turn_id) for number in range(1, 401) for turn_id in "abc"]
    assert len(stores.archive.list_records(stores.key(), 391, 10_000)) == 30


def test_odd_ids_are_sessions_of_their_own(stores: Stores) -> None:
    for session_id in ODD_IDS:
        stores.archive.put_record(stores.key(session_id), 1, "t", session_id.encode())
    for session_id in ODD_IDS:
        assert stores.archive.get_record(stores.key(session_id), 1, "t") == session_id.encode()
        assert list(stores.archive.list_records(stores.key(session_id), 1, 9)) == [(1, "t")]


def test_odd_turn_ids_come_back_from_the_list(stores: Stores) -> None:
    ids = sorted(["a/b", "a b", "a-b", "a.json", "..", "é"])
    for turn_id in ids:
        stores.archive.put_record(stores.key(), 1, turn_id, turn_id.encode())
    found = stores.archive.list_records(stores.key(), 1, 1)
    assert sorted(turn_id for _, turn_id in found) == ids
    for turn_id in ids:
        assert stores.archive.get_record(stores.key(), 1, turn_id) == turn_id.encode()


def test_tenants_are_apart(stores: Stores) -> None:
    names = (stores.tenant, f"{stores.tenant}/session=s1", f"{stores.tenant}%2Fsession=s1")
    for name in names:
        stores.archive.put_record(SessionKey(name, "s1"), 1, "t", name.encode())
    for name in names:
        assert stores.archive.get_record(SessionKey(name, "s1"), 1, "t") == name.encode()


def test_large_records_are_kept(stores: Stores) -> None:
    record = b'{"a":"' + b"x" * (2 * 1024 * 1024) + b'"}'
    stores.archive.put_record(stores.key(), 1, "t", record)
    assert stores.archive.get_record(stores.key(), 1, "t") == record
