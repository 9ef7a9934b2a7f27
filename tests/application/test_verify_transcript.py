"""`verify` names the first turn that is not as it was committed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.archive_service import ArchiveService
from support.service import KEY, plain_turn
from turnfold.adapters.s3_archive import record_key
from turnfold.domain.errors import SessionNotFoundError
from turnfold.domain.transcript import sha256_of

TURNS = 7


@pytest.fixture
def service() -> ArchiveService:
    made = ArchiveService()
    made.commit_plain(TURNS)
    return made


def name_of(service: ArchiveService, number: int) -> str:
    ((_, turn_id),) = service.archive.list_records(KEY, number, number)
    return record_key(KEY, number, turn_id)


def change(service: ArchiveService, number: int, *, rehash: bool, **members: Any) -> None:
    """Tamper with a record; with `rehash`, so that it is whole by itself."""
    name = name_of(service, number)
    body = json.loads(service.bucket.get(name) or b"")
    body |= members
    if rehash:
        del body["sha256"]
        body["sha256"] = sha256_of(body)
    service.bucket.put(name, json.dumps(body).encode())


def test_a_whole_chain_is_confirmed(service: ArchiveService) -> None:
    found = service.verify(KEY)
    assert found.view() == {
        "ok": True,
        "turns": TURNS,
        "first_bad_turn": None,
        "checked_through": TURNS,
    }


def test_an_empty_session_is_whole() -> None:
    service = ArchiveService()
    from turnfold.application.sessions import SessionInput

    service.sessions.put(KEY, SessionInput())
    assert service.verify(KEY).ok is True


def test_no_session_is_not_found() -> None:
    with pytest.raises(SessionNotFoundError):
        ArchiveService().verify(KEY)


@pytest.mark.parametrize("number", [1, 2, 4, TURNS - 1, TURNS])
@pytest.mark.parametrize("rehash", [False, True])
def test_a_changed_turn_is_named(service: ArchiveService, number: int, rehash: bool) -> None:
    change(service, number, rehash=rehash, messages=plain_turn(99))
    found = service.verify(KEY)
    assert (found.ok, found.first_bad_turn, found.checked_through) == (False, number, number - 1)


@pytest.mark.parametrize("number", [2, 4, TURNS])
def test_a_turn_that_names_another_predecessor_is_named(
    service: ArchiveService, number: int
) -> None:
    change(service, number, rehash=True, prev_sha256="f" * 64)
    assert service.verify(KEY).first_bad_turn == number


@pytest.mark.parametrize("number", [1, 3, TURNS])
def test_a_missing_turn_is_named(service: ArchiveService, number: int) -> None:
    service.bucket.hide(name_of(service, number))
    assert service.verify(KEY).first_bad_turn == number


@pytest.mark.parametrize("raw", [b"", b"not json", b"[]", b"{}", b'{"turn": 3}', b"\xff"])
def test_an_unreadable_turn_is_named(service: ArchiveService, raw: bytes) -> None:
    service.bucket.put(name_of(service, 3), raw)
    assert service.verify(KEY).first_bad_turn == 3


def test_a_record_under_another_number_is_named(service: ArchiveService) -> None:
    service.bucket.put(name_of(service, 3), service.bucket.get(name_of(service, 4)) or b"")
    assert service.verify(KEY).first_bad_turn == 3


def test_the_first_of_several_is_named(service: ArchiveService) -> None:
    for number in (6, 2, 4):
        change(service, number, rehash=False, messages=[])
    assert service.verify(KEY).first_bad_turn == 2


def test_rivals_of_lost_races_do_no_harm(service: ArchiveService) -> None:
    for number in (1, 2, 3, TURNS):
        name = name_of(service, number)
        body = json.loads(service.bucket.get(name) or b"")
        body |= {"messages": plain_turn(50), "turn_id": f"zz{number}"}
        del body["sha256"]
        body["sha256"] = sha256_of(body)
        raw = json.dumps(body).encode()
        service.bucket.put(record_key(KEY, number, f"zz{number}"), raw)
    assert service.verify(KEY).ok is True
    page = service.turns.page(KEY, 1, None, 100).items
    assert [turn.messages[0]["content"] for turn in page] == [
        plain_turn(number)[0]["content"] for number in range(1, TURNS + 1)
    ]


def test_it_goes_on_where_time_ran_out() -> None:
    service = ArchiveService()
    service.commit_plain(250)
    left = iter([1, 0, 1, 0, 1, 1])
    found = service.verify(KEY, None, lambda: next(left))
    assert (found.ok, found.checked_through) == (None, 100)
    found = service.verify(KEY, found.position, lambda: next(left))
    assert (found.ok, found.checked_through) == (None, 200)
    found = service.verify(KEY, found.position, lambda: next(left))
    assert (found.ok, found.checked_through, found.position) == (True, 250, None)


def test_it_sees_a_break_behind_the_place_where_it_goes_on() -> None:
    service = ArchiveService()
    service.commit_plain(150)
    left = iter([1, 0, 1])
    found = service.verify(KEY, None, lambda: next(left))
    change(service, 101, rehash=True, messages=plain_turn(9))
    assert service.verify(KEY, found.position, lambda: next(left)).first_bad_turn == 101
