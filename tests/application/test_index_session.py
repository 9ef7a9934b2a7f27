"""Indexing: the same pieces whatever happens on the way, and nothing for a session that is gone."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from application.test_search import WordEmbedder, fill, numbers
from support.interference import Crash, Interference
from support.service import KEY, Service
from turnfold.application.index_session import WORDS_SHELF
from turnfold.application.piece_vectors import vectors_shelf
from turnfold.domain.errors import StoreUnavailableError
from turnfold.domain.recall import ranges as recall_ranges
from turnfold.domain.recall.ranges import FACTOR, SMALLEST, cover
from turnfold.domain.sessions import SessionStatus, TurnRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnfold.application.ports.recall import PieceName


def pieces(service: Service) -> dict[PieceName, bytes]:
    epoch = service.memory().session.epoch
    found = {}
    for name in service.raw_index.list_pieces(KEY, epoch):
        body = service.raw_index.get_piece(KEY, epoch, name)
        assert body is not None
        found[name] = body
    return found


def ranges(service: Service, shelf: str = WORDS_SHELF) -> Sequence[TurnRange]:
    return [name.covers for name in pieces(service) if name.shelf == shelf]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of 4 and 12 turns, so that a session of few turns has several."""
    monkeypatch.setattr(recall_ranges, "SIZES", (12, 4))


def test_the_pieces_are_those_that_the_number_of_turns_asks_for() -> None:
    service = Service()
    fill(service, SMALLEST - 1, {})
    service.index_session(KEY)
    assert pieces(service) == {}
    fill(service, SMALLEST * FACTOR + 10, {})
    service.index_session(KEY)
    assert list(ranges(service)) == list(cover(SMALLEST * FACTOR + SMALLEST + 9))


def test_small_pieces_become_a_large_one_and_are_removed() -> None:
    service = Service()
    for _ in range(FACTOR):
        fill(service, SMALLEST, {3: "The xylograph."})
        service.index_session(KEY)
    assert list(ranges(service)) == [TurnRange(1, SMALLEST * FACTOR)]
    at_once = Service()
    for _ in range(FACTOR):
        fill(at_once, SMALLEST, {3: "The xylograph."})
    at_once.index_session(KEY)
    assert list(pieces(at_once).values()) == list(pieces(service).values())
    wanted = {3 + SMALLEST * at for at in range(FACTOR)}
    assert set(numbers(service.search(KEY, "xylograph", FACTOR))) == wanted


def test_indexing_again_writes_nothing() -> None:
    watch = Interference()
    service = Service(wrap=watch.wrap, embedder=WordEmbedder())
    fill(service, 2 * SMALLEST + 5, {})
    assert service.index_session(KEY)
    watch.log.clear()
    assert service.index_session(KEY)
    assert watch.log == ["store.read_session", *["index.list_pieces"] * 2]


def test_each_turn_is_embedded_once() -> None:
    embedder = WordEmbedder()
    service = Service(embedder=embedder)
    for _ in range(10):
        fill(service, 30, {})
        service.index_session(KEY)
    assert sum(embedder.calls) == 300
    shelf = vectors_shelf(embedder.name)
    assert list(ranges(service, shelf)) == [*cover(300), TurnRange(257, 300)]


def test_another_models_vectors_are_replaced() -> None:
    service = Service(embedder=WordEmbedder())
    fill(service, SMALLEST + 6, {})
    service.index_session(KEY)
    newer = WordEmbedder()
    newer.name = "other"
    replace(service.index_session, embedder=newer)(KEY)
    shelves = {name.shelf for name in pieces(service)}
    assert shelves == {WORDS_SHELF, vectors_shelf("other")}


def test_words_are_indexed_though_the_embedding_model_is_down() -> None:
    embedder = WordEmbedder()
    service = Service(embedder=embedder)
    fill(service, SMALLEST + 6, {})
    embedder.fails = True
    assert not service.index_session(KEY)
    assert list(ranges(service)) == list(cover(SMALLEST + 6))
    embedder.fails = False
    assert service.index_session(KEY)
    assert len(ranges(service, vectors_shelf(embedder.name))) == 2


def test_a_run_without_time_leaves_the_rest_to_the_next() -> None:
    service = Service()
    fill(service, 2 * SMALLEST, {})
    assert not service.index_session(KEY, lambda: 1.0)
    assert pieces(service) == {}
    assert service.index_session(KEY)
    assert len(pieces(service)) == 2


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("late", [False, True])
def test_a_crash_between_any_two_calls_changes_nothing_in_the_end(late: bool) -> None:
    def prepared(watch: Interference) -> Service:
        service = Service(wrap=watch.wrap, embedder=WordEmbedder())
        for _ in range(2):
            fill(service, 4, {})
            service.index_session(KEY)
        fill(service, 7, {})
        return service

    quiet = prepared(Interference())
    quiet.index_session(KEY)
    wanted = pieces(quiet)
    at = 0
    while True:
        at += 1
        watch = Interference()
        service = prepared(watch)
        watch.crash_at(at, late=late)
        try:
            service.index_session(KEY)
        except Crash:
            assert numbers(service.search(KEY, "topic 4", 1)) == [4]
            service.index_session(KEY)
            service.index_session(KEY)
            assert pieces(service) == wanted
            continue
        assert watch.disarm()
        break
    assert at > 10


def _erase(service: Service) -> None:
    """What the tombstone of an erasure does, and the removal of all objects."""
    stored = service.raw_store.sessions[KEY]
    stored.session = replace(stored.session, status=SessionStatus.ERASING)
    versions = service.raw_archive.bucket.list_versions(KEY, 10**6)
    service.raw_archive.bucket.remove_versions([one for one in versions if "/index/" in one.name])


def _left(service: Service) -> list[str]:
    versions = service.raw_archive.bucket.list_versions(KEY, 10**6)
    return [one.name for one in versions if "/index/" in one.name]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("late", [False, True])
def test_an_erasure_at_any_moment_leaves_no_piece(late: bool) -> None:
    at = 0
    while True:
        at += 1
        watch = Interference()
        service = Service(wrap=watch.wrap, embedder=WordEmbedder())
        fill(service, 9, {})
        watch.arm(at, partial(_erase, service), late=late)
        with contextlib.suppress(StoreUnavailableError):
            service.index_session(KEY)
        if watch.disarm():
            break
        assert _left(service) == []
    assert at > 8


def test_a_session_that_is_erased_or_absent_is_not_indexed() -> None:
    service = Service()
    assert service.index_session(KEY)
    fill(service, SMALLEST, {})
    _erase(service)
    assert service.index_session(KEY)
    assert _left(service) == []


def test_a_piece_that_is_broken_is_passed_over_by_searches() -> None:
    service = Service()
    fill(service, 2 * SMALLEST, {5: "The xylograph."})
    service.index_session(KEY)
    epoch = service.memory().session.epoch
    for name in pieces(service):
        service.raw_index.put_piece(KEY, epoch, name, b"broken")
    assert numbers(service.search(KEY, "xylograph", 1)) == [5]


def test_the_compactor_indexes_what_it_compacted_and_survives_its_failure() -> None:
    service = Service()
    fill(service, SMALLEST, {})
    service.drain()
    service.drain_batch = replace(service.drain_batch, index=service.index_session)
    fill(service, 1, {})
    service.drain()
    assert len(pieces(service)) == 1

    def broken(*_: object) -> bool:
        raise StoreUnavailableError("down")

    service.drain_batch = replace(service.drain_batch, index=broken)  # type: ignore[arg-type]  # one that fails
    fill(service, 1, {})
    service.drain()
    assert service.queue.next_visible_at is None
