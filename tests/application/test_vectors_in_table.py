"""Vectors that are kept in the table: found, gone on with, and gone with their session."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from application.test_search import OTHER, STRANGER, WordEmbedder, fill, numbers, talk
from support.archive_service import ArchiveService
from support.interference import Crash, Interference
from support.service import KEY, Service
from turnfold.application import index_session
from turnfold.application.read_context import ContextRequest
from turnfold.application.recall import Mode
from turnfold.domain.errors import StoreUnavailableError, VectorsUnavailableError
from turnfold.domain.recall.ranges import SMALLEST
from turnfold.domain.sessions import SessionStatus, TurnRange

if TYPE_CHECKING:
    from array import array
    from typing import Any

NEEDLE = "The lighthouse has white stripes."
QUESTION = "lighthouse stripes"


def table_service(embedder: WordEmbedder | None = None, **given: Any) -> Service:
    return Service(embedder=embedder or WordEmbedder(), vectors_in_table=True, **given)


def archive_service(embedder: WordEmbedder) -> ArchiveService:
    return ArchiveService(embedder=embedder, vectors_in_table=True)


def vectors(service: Service) -> dict[int, array[float]]:
    stored = service.raw_store.sessions.get(KEY)
    return {} if stored is None else dict(stored.vectors)


class Building:
    """A `VectorIndex` whose index is being built: it can be written, or not even that."""

    def __init__(self, index: Any, *, takes: bool = True) -> None:
        self.index = index
        self.takes = takes

    def resume(self, *given: Any) -> int:
        found: int = self.index.resume(*given)
        return found

    def put(self, *given: Any) -> bool:
        if not self.takes:
            raise VectorsUnavailableError("the model's vectors have 64 numbers, the index takes 8")
        stored: bool = self.index.put(*given)
        return stored

    def closest(self, *_: object) -> Any:
        raise VectorsUnavailableError("search vectors: ValidationException")


def building(*, takes: bool = True) -> Any:
    return lambda name, port: Building(port, takes=takes) if name == "vectors" else port


# --------------------------------------------------------------------------------------- searches


def test_meaning_finds_what_is_embedded() -> None:
    service = table_service()
    fill(service, 70, {33: NEEDLE})
    assert service.search(KEY, QUESTION, mode=Mode.SEMANTIC)["items"] == []
    assert service.index_session(KEY)
    found = service.search(KEY, QUESTION, mode=Mode.SEMANTIC)
    assert found["items"][0]["turn"] == 33
    assert found["items"][0]["matched_by"] == ["semantic"]
    both = service.search(KEY, QUESTION)
    assert both["mode"] == "hybrid"
    assert both["items"][0]["matched_by"] == ["lighthouse", "stripes", "semantic"]


def test_pieces_and_table_find_the_same() -> None:
    pieces, table = Service(embedder=WordEmbedder()), table_service()
    needles = {7: NEEDLE, 60: "White stripes.", 129: "A lighthouse.", 130: "Stripes, stripes."}
    for service in (pieces, table):
        fill(service, 140, needles)
        service.index_session(KEY)
    for query in (QUESTION, "topic 4", "small talk", "stripes"):
        for mode in (Mode.SEMANTIC, Mode.HYBRID):
            expected = pieces.search(KEY, query, 20, mode)
            assert table.search(KEY, query, 20, mode) == expected


def test_a_search_of_the_tenant_spans_its_sessions_and_no_others() -> None:
    service = table_service()
    for key in (KEY, OTHER, STRANGER):
        fill(service, 20, {5: NEEDLE}, key)
        service.index_session(key)
    answer, _ = service.search_tenant("tenant", None, QUESTION, 2, Mode.SEMANTIC)
    found = {(item["session_id"], item["turn"]) for item in answer["items"]}
    assert found == {("s1", 5), ("s2", 5)}
    assert service.search_tenant("nobody", None, QUESTION, 2, Mode.SEMANTIC)[0]["items"] == []


def test_words_decide_while_the_index_cannot_be_searched(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = table_service(wrap=building())
    fill(service, 40, {3: NEEDLE})
    service.index_session(KEY)
    with caplog.at_level(logging.WARNING, "turnfold"):
        answer = service.search(KEY, QUESTION)
        everywhere, _ = service.search_tenant("tenant", None, QUESTION)
    assert (answer["mode"], numbers(answer)[0]) == ("keyword", 3)
    assert (everywhere["mode"], numbers(everywhere)[0]) == ("keyword", 3)
    # No session counts as one that could not be read.
    assert (everywhere["sessions_searched"], everywhere["sessions_unread"]) == (1, 0)
    assert [record.__dict__["code"] for record in caplog.records] == ["VECTORS_UNAVAILABLE"] * 2
    service.drain()
    context = service.context.assemble(service.memory(), ContextRequest(query=QUESTION, recall=1))
    assert [one.turn.number for one in context.recall] == [3]


@pytest.mark.parametrize("mode", [Mode.SEMANTIC, Mode.HYBRID])
def test_who_asks_for_meaning_is_told_that_it_is_not_ready(mode: Mode) -> None:
    service = table_service(wrap=building())
    fill(service, 5, {3: NEEDLE})
    with pytest.raises(VectorsUnavailableError):
        service.search(KEY, QUESTION, mode=mode)
    with pytest.raises(VectorsUnavailableError):
        service.search_tenant("tenant", None, QUESTION, mode=mode)
    assert numbers(service.search(KEY, QUESTION, mode=Mode.KEYWORD))[0] == 3


# --------------------------------------------------------------------------------------- indexing


def test_each_turn_is_embedded_once() -> None:
    embedder = WordEmbedder()
    service = table_service(embedder)
    for _ in range(10):
        fill(service, 30, {})
        assert service.index_session(KEY)
    assert sum(embedder.calls) == 300
    assert sorted(vectors(service)) == list(range(1, 301))


def test_indexing_again_costs_one_read() -> None:
    watch = Interference()
    service = table_service(wrap=watch.wrap)
    fill(service, 40, {})
    assert service.index_session(KEY)
    watch.log.clear()
    assert service.index_session(KEY)
    assert watch.log == ["store.read_session", "index.list_pieces", "vectors.resume"]


def test_another_models_vectors_are_replaced() -> None:
    service = table_service()
    fill(service, 70, {33: NEEDLE})
    service.index_session(KEY)
    newer = WordEmbedder()
    newer.name = "other"
    replace(service.index_session, embedder=newer)(KEY)
    assert sum(newer.calls) == 70
    assert service.search(KEY, QUESTION, mode=Mode.SEMANTIC)["items"] == []
    service.search = replace(service.search, recall=replace(service.recall, embedder=newer))
    assert numbers(service.search(KEY, QUESTION, mode=Mode.SEMANTIC))[0] == 33


def test_words_are_indexed_though_the_index_takes_no_vectors(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = table_service(wrap=building(takes=False))
    fill(service, SMALLEST, {})
    with caplog.at_level(logging.WARNING, "turnfold"):
        assert not service.index_session(KEY)
    (record,) = caplog.records
    assert record.__dict__["code"] == "VECTORS_UNAVAILABLE"
    assert "64 numbers" in record.__dict__["reason"]
    names = service.raw_index.list_pieces(KEY, service.memory().session.epoch)
    assert [name.covers for name in names] == [TurnRange(1, SMALLEST)]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns are put four by four, so that a session of few turns takes several writes."""
    monkeypatch.setattr(index_session, "SMALLEST", 4)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("late", [False, True])
def test_a_crash_between_any_two_calls_changes_nothing_in_the_end(late: bool) -> None:
    def prepared(watch: Interference) -> Service:
        service = table_service(wrap=watch.wrap)
        fill(service, 5, {})
        service.index_session(KEY)
        fill(service, 10, {})
        return service

    quiet = prepared(Interference())
    quiet.index_session(KEY)
    wanted = vectors(quiet)
    at = 0
    while True:
        at += 1
        watch = Interference()
        service = prepared(watch)
        watch.crash_at(at, late=late)
        try:
            service.index_session(KEY)
        except Crash:
            service.index_session(KEY)
            assert vectors(service) == wanted
            continue
        assert watch.disarm()
        break
    assert at > 6


# ------------------------------------------------------------------- erasure, expiry and rebuilding


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("late", [False, True])
def test_an_erasure_at_any_moment_leaves_no_vector(late: bool) -> None:
    at = 0
    while True:
        at += 1
        watch = Interference()
        service = table_service(wrap=watch.wrap)
        fill(service, 10, {})

        def erase(service: Service = service) -> None:
            stored = service.raw_store.sessions[KEY]
            stored.session = replace(stored.session, status=SessionStatus.ERASING)
            stored.vectors.clear()

        watch.arm(at, erase, late=late)
        with contextlib.suppress(StoreUnavailableError):
            service.index_session(KEY)
        if watch.disarm():
            break
        assert vectors(service) == {}
    assert at > 6


def test_erased_vectors_are_on_the_receipt_and_the_next_life_begins_without() -> None:
    embedder = WordEmbedder()
    service = archive_service(embedder)
    fill(service, 40, {5: NEEDLE})
    service.drain()
    service.index_session(KEY)
    assert len(vectors(service)) == 40
    erasure = service.delete.session(KEY)
    service.drain_archive()
    receipt = service.receipt(erasure)
    assert receipt.removed.vectors == 40
    assert receipt.removed.items > 40
    fill(service, 20, {})
    assert service.search(KEY, QUESTION, mode=Mode.SEMANTIC)["items"] == []
    service.index_session(KEY)
    assert sorted(vectors(service)) == list(range(1, 21))


def expired(service: ArchiveService) -> ArchiveService:
    fill(service, 40, {5: NEEDLE})
    service.drain()
    service.index_session(KEY)
    service.clock.now += timedelta(days=8)
    service.sweep()
    service.drain_archive()
    stored = service.raw_store.sessions[KEY]
    assert stored.session.status is SessionStatus.EXPIRED
    assert stored.turns == {}
    return service


def test_vectors_outlive_the_expiry_of_working_memory() -> None:
    embedder = WordEmbedder()
    service = expired(archive_service(embedder))
    assert len(vectors(service)) == 40
    assert sum(embedder.calls) == 40
    # A session that is put away is not indexed, and its vectors stay for the time it is back.
    assert service.index_session(KEY)
    assert numbers(service.search(KEY, QUESTION, mode=Mode.SEMANTIC))[0] == 5
    assert service.raw_store.sessions[KEY].session.status is SessionStatus.LIVE
    service.commit(talk("One more."))
    embedder.calls.clear()
    assert service.index_session(KEY)
    assert embedder.calls == [1]
    assert sorted(vectors(service)) == list(range(1, 42))


def test_the_vectors_of_an_expired_session_are_erased_too() -> None:
    service = expired(archive_service(WordEmbedder()))
    erasure = service.delete.session(KEY)
    service.drain_archive()
    assert service.receipt(erasure).removed.vectors == 40
    assert KEY not in service.raw_store.sessions


def test_rebuilding_a_session_keeps_its_vectors() -> None:
    embedder = WordEmbedder()
    service = archive_service(embedder)
    fill(service, 40, {5: NEEDLE})
    service.drain()
    service.index_session(KEY)
    service.request_rebuild(KEY)
    service.drain()
    embedder.calls.clear()
    assert service.index_session(KEY)
    assert embedder.calls == []
    assert numbers(service.search(KEY, QUESTION, mode=Mode.SEMANTIC))[0] == 5


def test_a_session_that_is_made_anew_from_its_transcript_is_embedded_anew() -> None:
    embedder = WordEmbedder()
    service = archive_service(embedder)
    fill(service, 40, {5: NEEDLE})
    service.drain()
    service.index_session(KEY)
    before = service.memory().session.epoch
    del service.raw_store.sessions[KEY]
    service.request_rebuild(KEY)
    service.drain()
    assert service.memory().session.epoch != before
    assert service.search(KEY, QUESTION, mode=Mode.SEMANTIC)["items"] == []
    embedder.calls.clear()
    assert service.index_session(KEY)
    assert sum(embedder.calls) == 40
    assert numbers(service.search(KEY, QUESTION, mode=Mode.SEMANTIC))[0] == 5
