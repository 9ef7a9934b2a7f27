"""Ids, watermarks and what follows from them; the regions of a session."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planning import KEY
from support.sessions import START, a_session
from turnfold.domain.errors import InvalidIdError
from turnfold.domain.sessions import Session, SummaryRef, TurnRange, check_id, gaps
from turnfold.domain.settings import Settings


@pytest.mark.parametrize(
    "value", ["a", "x" * 256, "会话-1", "a/b#c d", "😀" * 256, "\u202eabc", " a ", "T#x#S#y"]
)
def test_good_ids(value: str) -> None:
    assert check_id(value, "id") == value


@pytest.mark.parametrize(
    "value", ["", " ", "\u3000", "x" * 257, "a\nb", "a\x00", "\x7f", "a\x85", "\ud800"]
)
def test_bad_ids(value: str) -> None:
    with pytest.raises(InvalidIdError, match="session_id"):
        check_id(value, "session_id")


def session(turns: int, *refs: tuple[int, int, int], **settings: int) -> Session:
    manifest = tuple(SummaryRef(*ref) for ref in refs)
    return a_session(
        KEY,
        settings=Settings(**settings),  # type: ignore[arg-type]  # any setting, by name
        next_turn=turns + 1,
        manifest=manifest,
        compacted_through=max((ref.to_turn for ref in manifest), default=0),
    )


def regions_of(one: Session) -> tuple[int, int, int]:
    return one.committed_through, one.head_end, one.tail_start


def test_a_new_session_has_no_turns() -> None:
    assert regions_of(session(0)) == (0, 0, 1)
    assert session(0).raw_ranges == ()


def test_head_and_tail_follow_from_the_numbers() -> None:
    assert regions_of(session(1)) == (1, 1, 2)
    assert regions_of(session(2)) == (2, 1, 2)
    assert regions_of(session(3)) == (3, 1, 2)
    assert regions_of(session(10)) == (10, 1, 9)
    assert regions_of(session(10, head_size=3, tail_size=4)) == (10, 3, 7)
    assert regions_of(session(2, head_size=5)) == (2, 2, 3)


def test_what_is_folded_stays_folded_when_head_and_tail_grow() -> None:
    assert regions_of(session(10, (2, 8, 2), head_size=5, tail_size=9)) == (10, 1, 9)


def test_a_head_that_gets_smaller_gives_turns_to_the_window() -> None:
    smaller = session(10, (4, 8, 2), head_size=1)
    assert regions_of(smaller) == (10, 1, 9)
    assert smaller.raw_ranges == (TurnRange(1, 3), TurnRange(9, 10))


def test_it_expires_so_many_days_after_the_last_change() -> None:
    one = session(1, expire_days=3)
    assert one.expires_at == START + timedelta(days=3)


def test_an_etag_tells_every_state_apart() -> None:
    first = a_session(KEY, epoch="e1", revision=3)
    assert len({first.etag, a_session(KEY, epoch="e2", revision=3).etag, session(1).etag}) == 3


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 5)), max_size=6), st.integers(0, 20))
def test_gaps_are_what_is_left(spans: list[tuple[int, int]], last: int) -> None:
    covered = [(first, min(first + more, last)) for first, more in spans if first <= last]
    numbers = {n for first, end in covered for n in range(first, end + 1)}
    left = [n for run in gaps(covered, last) for n in range(run.from_turn, run.to_turn + 1)]
    assert left == [n for n in range(1, last + 1) if n not in numbers]
