"""The transcript: which record counts where commits lost races or died, and pages of it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.interference import Crash, Interference
from support.service import KEY, Service, plain_turn
from turnfold.application.read_turns import MAX_PAGE_BYTES
from turnfold.domain.errors import (
    CommitConflictError,
    DamagedRecordError,
    SessionNotFoundError,
    TurnNotFoundError,
)
from turnfold.domain.sessions import SessionKey


def watched() -> tuple[Service, Interference]:
    interference = Interference()
    return Service(wrap=interference.wrap), interference


def questions(service: Service, first: int, last: int) -> list[str]:
    turns = service.transcript.turns(service.memory().session, first, last)
    return [turn.messages[0]["content"].split(":")[0] for turn in turns]


def crash_between_archive_and_store(service: Service, interference: Interference) -> None:
    interference.crash_at(2, late=True)
    with suppress(Crash):
        service.commit(plain_turn(666))


def lose_a_race(service: Service, interference: Interference, number: int) -> None:
    """Two commits for one number: the inner wins it, and the outer's record is an orphan."""
    interference.arm(3, lambda: service.commit(plain_turn(number)))
    service.commit(plain_turn(number + 1))


def records(service: Service, number: int) -> int:
    return len(service.raw_archive.list_records(KEY, number, number))


def test_a_record_of_a_crashed_commit_does_not_count() -> None:
    service, interference = watched()
    service.commit_plain(2)
    crash_between_archive_and_store(service, interference)
    assert records(service, 3) == 1
    assert questions(service, 1, 9) == ["Question 1", "Question 2"]
    service.commit(plain_turn(3))
    assert records(service, 3) == 2
    assert questions(service, 1, 9) == ["Question 1", "Question 2", "Question 3"]
    assert questions(service, 3, 3) == ["Question 3"]
    service.commit(plain_turn(4))
    assert questions(service, 3, 3) == ["Question 3"]


def test_records_of_lost_races_do_not_count() -> None:
    service, interference = watched()
    service.commit(plain_turn(1))
    for number in range(2, 60, 2):
        lose_a_race(service, interference, number)
    for first in range(1, 60, 7):
        expected = [f"Question {number}" for number in range(first, first + 5)]
        assert questions(service, first, first + 4)[: len(expected)] == expected[: 60 - first]


@given(st.lists(st.sampled_from(["commit", "crash", "race"]), min_size=1, max_size=60), st.data())
def test_any_range_after_any_accidents(accidents: list[str], data: st.DataObject) -> None:
    service, interference = watched()
    service.commit(plain_turn(1))
    number = 2
    for accident in accidents:
        if accident == "crash":
            crash_between_archive_and_store(service, interference)
        elif accident == "race":
            lose_a_race(service, interference, number)
            number += 2
        else:
            service.commit(plain_turn(number))
            number += 1
    first = data.draw(st.integers(1, number))
    last = data.draw(st.integers(first, number + 3))
    expected = [f"Question {one}" for one in range(first, min(last, number - 1) + 1)]
    assert questions(service, first, last) == expected


def test_a_missing_record_is_told() -> None:
    service, _ = watched()
    service.commit_plain(3)
    service.raw_archive.remove_records(KEY, service.raw_archive.list_records(KEY, 2, 2))
    with pytest.raises(DamagedRecordError):
        service.transcript.turns(service.memory().session, 1, 3)


def test_a_folded_turn_is_read_word_for_word() -> None:
    service = Service()
    turns = [plain_turn(number) for number in range(1, 20)]
    for turn in turns:
        service.commit(turn)
    service.drain()
    standing = {turn.number for turn in service.memory().turns}
    assert len(standing) < 19
    for number, turn in enumerate(turns, start=1):
        assert list(service.turns.one(KEY, number).messages) == turn


def test_unknown_turns_and_sessions() -> None:
    service = Service()
    service.commit_plain(2)
    for number in (0, -1, 3):
        with pytest.raises(TurnNotFoundError):
            service.turns.one(KEY, number)
    for key in (SessionKey("tenant", "other"), SessionKey("other", KEY.session_id)):
        with pytest.raises(SessionNotFoundError):
            service.turns.one(key, 1)
        with pytest.raises(SessionNotFoundError):
            service.turns.page(key, 1, None, 20)


# Pages -------------------------------------------------------------------------------------------


def walk(service: Service, limit: int, last: int | None = None) -> list[list[int]]:
    pages: list[list[int]] = []
    position: int | None = 1
    while position is not None:
        page = service.turns.page(KEY, position, last, limit)
        pages.append([turn.number for turn in page.items])
        position = int(page.next_position) if page.next_position else None
    return pages


@pytest.mark.parametrize("limit", [1, 3, 7, 8, 100])
def test_pages_hold_every_turn_once(limit: int) -> None:
    service = Service()
    service.commit_plain(8)
    pages = walk(service, limit)
    assert [number for page in pages for number in page] == list(range(1, 9))
    assert all(len(page) == limit for page in pages[:-1])


def test_a_page_ends_at_the_end_of_its_range() -> None:
    service = Service()
    service.commit_plain(8)
    assert walk(service, 3, last=5) == [[1, 2, 3], [4, 5]]
    page = service.turns.page(KEY, 9, None, 3)
    assert (page.items, page.next_position) == ((), None)


def test_large_turns_make_short_pages_that_fit_an_answer() -> None:
    service = Service()
    big: list[dict[str, Any]] = [
        {"role": "user", "content": "x" * 700_000},
        {"role": "assistant", "content": "y" * 300_000},
    ]
    for _ in range(12):
        service.commit(big)
    pages = walk(service, 100)
    assert [number for page in pages for number in page] == list(range(1, 13))
    assert all(len(page) * len(json.dumps(big)) <= MAX_PAGE_BYTES for page in pages)
    assert len(pages) == 3


def test_commits_that_lose_every_time_end_in_a_conflict() -> None:
    service, interference = watched()

    def win_first(port: str, method: str, given: tuple[Any, ...]) -> None:
        if method == "put_record" and len(interference.before) == 1:
            interference.before.append(win_first)
            service.commit(plain_turn(1))
            interference.before.pop()

    interference.before.append(win_first)
    with pytest.raises(CommitConflictError):
        service.commit(plain_turn(2))
    interference.before.clear()
    count = service.memory().session.committed_through
    assert questions(service, 1, 99) == ["Question 1"] * count
