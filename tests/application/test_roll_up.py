"""Rolling records into segments: no turn missing or double at any moment, whoever dies."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.archive_service import ArchiveService
from support.interference import Crash, Interference
from support.service import KEY, plain_turn
from turnfold.adapters.s3_archive import record_key, segment_key
from turnfold.domain.errors import GuardFailedError, StoreError
from turnfold.domain.segments import (
    BASE_TURNS,
    FAN,
    KEPT_RECORDS,
    MAX_SEGMENT_BYTES,
    Segment,
    covering,
    next_segment,
    pack_segment,
    to_merge,
    unpack_segment,
)
from turnfold.domain.transcript import sha256_of

STEP = BASE_TURNS


def watched(**members: Any) -> tuple[ArchiveService, Interference]:
    interference = Interference()
    return ArchiveService(wrap=interference.wrap, **members), interference


def committed(turns: int, **members: Any) -> tuple[ArchiveService, Interference]:
    """A session of so many turns, all folded but for head and tail."""
    service, interference = watched(pin_mode="off", **members)
    for number in range(1, turns + 1):
        service.commit(plain_turn(number))
        if number % 16 == 0 or number == turns:
            service.drain()
    return service, interference


def assert_whole(service: ArchiveService, turns: int) -> None:
    """Every way to read shows each turn once, word for word."""
    session = service.raw_store.sessions[KEY].session
    assert session.committed_through == turns
    read = service.transcript.turns(session, 1, turns)
    assert [turn.number for turn in read] == list(range(1, turns + 1))
    assert [list(turn.messages) for turn in read] == [plain_turn(n) for n in range(1, turns + 1)]
    assert service.verify(KEY).ok


def single(service: ArchiveService) -> list[int]:
    return [number for number, _ in service.raw_archive.list_records(KEY, 1, 10**6)]


def test_old_records_become_one_segment_and_can_still_be_read() -> None:
    service, _ = committed(STEP + KEPT_RECORDS)
    service.drain_archive()
    assert list(service.raw_archive.list_segments(KEY)) == [Segment(1, STEP)]
    assert service.memory().session.archived_through == STEP
    # The head stands word for word in working memory, so its record stays.
    assert single(service) == [1, *range(STEP + 1, STEP + KEPT_RECORDS + 1)]
    assert_whole(service, STEP + KEPT_RECORDS)


def test_the_newest_records_stay_by_themselves() -> None:
    service, _ = committed(STEP + KEPT_RECORDS - 1)
    service.drain_archive()
    assert list(service.raw_archive.list_segments(KEY)) == []


def test_segments_hold_the_records_byte_for_byte() -> None:
    service, _ = committed(STEP + KEPT_RECORDS)
    before = service.raw_archive.records_of(KEY)
    service.drain_archive()
    data = service.raw_archive.get_segment(KEY, Segment(1, STEP))
    assert data is not None
    lines = unpack_segment(data, Segment(1, STEP))
    assert lines == [raw for (number, _), raw in sorted(before.items()) if number <= STEP]


def test_many_segments_are_merged_and_puts_stay_few() -> None:
    turns = STEP * FAN + KEPT_RECORDS
    service, _ = committed(turns)
    puts = service.bucket.puts
    service.drain_archive()
    assert list(service.raw_archive.list_segments(KEY)) == [Segment(1, STEP * FAN)]
    assert service.bucket.puts - puts == FAN + 1
    assert_whole(service, turns)


@pytest.mark.slow
def test_puts_and_gets_of_a_long_session() -> None:
    """Of issue 5: at most 1,050 PUTs for 1,000 turns, and 60 GETs to read 5,000."""
    service = ArchiveService(pin_mode="off", auto_compression=False)
    for number in range(1, 5001):
        service.commit(plain_turn(number))
        if number % 100 == 0:
            service.tend(KEY)
    puts = service.bucket.puts
    assert puts / 5 <= 1050
    session = service.memory().session
    before = service.bucket.gets
    read = [one.turn for one in service.transcript.stream(session)]
    gets = service.bucket.gets - before
    assert [turn.number for turn in read] == list(range(1, 5001))
    assert gets <= 60
    print(f"PUTs per 1,000 turns {puts / 5:.0f}, GETs of 5,000 turns {gets}")


def calls() -> int:
    service, interference = committed(2 * STEP + KEPT_RECORDS)
    interference.log.clear()
    service.tend(KEY)
    return len(interference.log)


ANY_CALL = list(itertools.product(range(1, calls() + 1), [False, True]))


@pytest.mark.parametrize(("at", "late"), ANY_CALL)
def test_a_crash_anywhere_loses_and_doubles_nothing(at: int, late: bool) -> None:
    turns = 2 * STEP + KEPT_RECORDS
    service, interference = committed(turns)
    interference.crash_at(at, late=late)
    with pytest.raises(Crash):
        service.tend(KEY)
    assert_whole(service, turns)
    service.tend(KEY)
    assert_whole(service, turns)
    assert list(service.raw_archive.list_segments(KEY)) == [
        Segment(1, STEP),
        Segment(STEP + 1, 2 * STEP),
    ]
    assert single(service) == [1, *range(2 * STEP + 1, turns + 1)]


@pytest.mark.parametrize("late", [False, True])
def test_a_crash_while_merging_loses_and_doubles_nothing(late: bool) -> None:
    turns = STEP * FAN + KEPT_RECORDS
    service, interference = committed(turns)
    for at in itertools.count(1, 5):
        interference.crash_at(at, late=late)
        try:
            service.tend(KEY)
        except Crash:
            assert_whole(service, turns)
        if interference.disarm():
            break
    assert list(service.raw_archive.list_segments(KEY)) == [Segment(1, STEP * FAN)]
    assert_whole(service, turns)


@pytest.mark.parametrize(("at", "late"), ANY_CALL[::2])
def test_two_archivists_at_once_are_harmless(at: int, late: bool) -> None:
    turns = 2 * STEP + KEPT_RECORDS
    service, interference = committed(turns)

    interference.arm(at, partial(service.tend, KEY), late=late)
    try:
        service.tend(KEY)
    except GuardFailedError:
        service.tend(KEY)
    assert_whole(service, turns)


def reader_calls(turns: int) -> int:
    service, interference = committed(turns)
    interference.log.clear()
    service.transcript.turns(service.memory().session, 1, turns)
    return len(interference.log)


@pytest.mark.parametrize("late", [False, True])
def test_a_reader_sees_every_turn_while_they_are_moved(late: bool) -> None:
    turns = STEP + KEPT_RECORDS
    for at in range(1, reader_calls(turns) + 1):
        service, interference = committed(turns)
        session = service.memory().session
        interference.arm(at, partial(service.tend, KEY), late=late)
        read = service.transcript.turns(session, 1, turns)
        assert [turn.number for turn in read] == list(range(1, turns + 1))


@pytest.mark.parametrize("late", [False, True])
def test_verify_is_not_deceived_by_the_move(late: bool) -> None:
    turns = STEP + KEPT_RECORDS
    for at in range(1, 12):
        service, interference = committed(turns)
        interference.arm(at, partial(service.tend, KEY), late=late)
        assert service.verify(KEY).ok


def test_rivals_of_lost_races_go_before_the_records_that_count() -> None:
    service, interference = committed(STEP + KEPT_RECORDS)
    for number in (2, 5):
        ((_, turn_id),) = service.raw_archive.list_records(KEY, number, number)
        body = json.loads(service.raw_archive.get_record(KEY, number, turn_id) or b"")
        del body["sha256"]
        body |= {"turn_id": "zz", "messages": plain_turn(99)}
        rival = json.dumps({**body, "sha256": sha256_of(body)})
        service.bucket.put(record_key(KEY, number, "zz"), rival.encode())
    removed: list[list[tuple[int, str]]] = []

    def note(name: str, method: str, given_: tuple[Any, ...], _result: object) -> None:
        if (name, method) == ("archive", "remove_records"):
            removed.append(list(given_[1]))

    interference.after.append(note)
    service.tend(KEY)
    assert removed[0] == [(2, "zz"), (5, "zz")]
    assert_whole(service, STEP + KEPT_RECORDS)


def test_a_late_rival_of_a_rolled_turn_deceives_nobody_and_is_tidied_away() -> None:
    turns = STEP + KEPT_RECORDS
    service, _ = committed(turns)
    service.drain_archive()
    service.bucket.put(record_key(KEY, 7, "late"), b'{"turn": 7}')
    assert_whole(service, turns)
    service.tend(KEY)
    assert 7 not in single(service)


def test_a_foreign_segment_in_the_way_removes_nothing() -> None:
    turns = STEP + KEPT_RECORDS
    service, _ = committed(turns)
    foreign = pack_segment([b"{}"] * STEP)
    service.bucket.put(segment_key(KEY, Segment(1, STEP)), foreign)
    with pytest.raises(StoreError):
        service.tend(KEY)
    assert single(service) == list(range(1, turns + 1))


def test_a_changed_segment_is_found_and_named() -> None:
    turns = STEP + KEPT_RECORDS
    service, _ = committed(turns)
    service.drain_archive()
    segment = Segment(1, STEP)
    lines = unpack_segment(service.raw_archive.get_segment(KEY, segment) or b"", segment)
    lines[4] = lines[4].replace(b"Question 5", b"Question 6")
    service.bucket.put(segment_key(KEY, segment), pack_segment(lines))
    assert service.verify(KEY).first_bad_turn == 5
    service.bucket.put(segment_key(KEY, segment), b"no gzip")
    assert service.verify(KEY).first_bad_turn == 1
    service.bucket.hide(segment_key(KEY, segment))
    assert service.verify(KEY).first_bad_turn == 1


def test_an_archivist_that_comes_after_an_erasure_writes_nothing() -> None:
    for at in range(1, 8):
        service, interference = committed(STEP + KEPT_RECORDS)
        interference.arm(at, partial(service.delete.session, KEY))
        with suppress(StoreError):
            service.tend(KEY)
        interference.disarm()
        service.drain_archive()
        assert service.objects_of() == []
        assert KEY not in service.raw_store.sessions


def test_texts_with_every_kind_of_line_break_stay_one_line() -> None:
    service, _ = watched(pin_mode="off", auto_compression=False)
    texts = ["a\nb", "a\r\nb", "a\u2028b", "a\u0085b", "a\x0bb", "a\x1cb", "\\n"]
    for number in range(STEP + KEPT_RECORDS):
        text = texts[number % len(texts)]
        service.commit([{"role": "user", "content": text}, {"role": "assistant", "content": text}])
    service.tend(KEY)
    read = service.transcript.turns(service.memory().session, 1, STEP)
    said = [turn.messages[0]["content"] for turn in read]
    assert said == [texts[number % len(texts)] for number in range(STEP)]


# Segments themselves -----------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary().filter(lambda raw: b"\n" not in raw), min_size=1, max_size=20))
def test_what_is_packed_comes_back(records: list[bytes]) -> None:
    segment = Segment(1, len(records))
    assert unpack_segment(pack_segment(records), segment) == records
    assert pack_segment(records) == pack_segment(records)
    with pytest.raises(ValueError, match="number"):
        unpack_segment(pack_segment(records), Segment(1, len(records) + 1))


def test_parts_stand_back_behind_the_whole() -> None:
    parts = [Segment(1, 32), Segment(33, 64), Segment(65, 96)]
    assert covering([*parts, Segment(1, 64)]) == (Segment(1, 64), Segment(65, 96))


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_segment_is_due_when_enough_turns_are_settled(committed_to: int, archived: int) -> None:
    found = next_segment(committed_to, archived)
    assert (found is not None) == (committed_to - archived >= BASE_TURNS + KEPT_RECORDS)
    if found:
        assert found == Segment(archived + 1, archived + BASE_TURNS)


def test_only_neighbours_of_one_size_that_are_small_are_merged() -> None:
    def row(size: int, start: int = 0) -> list[Segment]:
        return [Segment(start + n * STEP + 1, start + (n + 1) * STEP, size) for n in range(FAN)]

    assert to_merge(row(100)) == tuple(row(100))
    assert to_merge([Segment(1, 7, 1), *row(1, start=7)]) == tuple(row(1, start=7))
    assert to_merge(row(100)[:-1]) == ()
    assert to_merge(row(MAX_SEGMENT_BYTES // FAN + 1)) == ()
    gap = row(1)
    del gap[2]
    assert to_merge([*gap, Segment(FAN * STEP + 33, FAN * STEP + 64, 1)]) == ()
