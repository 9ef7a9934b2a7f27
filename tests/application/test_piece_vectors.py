"""Vectors as pieces: pieces of other sizes, and pieces that are lost or broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.service import KEY, START, Service
from support.sessions import a_session
from turnfold.application.live_pieces import LivePieces
from turnfold.application.piece_vectors import PieceVectors, vectors_shelf
from turnfold.application.ports.memory import Change
from turnfold.application.ports.recall import PieceName
from turnfold.application.read_index import IndexCaches
from turnfold.domain.recall.ranges import SMALLEST, cover_all
from turnfold.domain.recall.vectors import VectorPiece, unit
from turnfold.domain.sessions import Profile, TurnRange

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from turnfold.domain.sessions import Session

MODEL = "model/2"
SHELF = vectors_shelf(MODEL)
SIZES_BEFORE = [TurnRange(1, 2304), TurnRange(2305, 2688), TurnRange(2689, 2700)]
"""As they were with pieces of 64, 384 and 2,304 turns."""


def vector(turn: int) -> array[float]:
    return unit([turn, 1.0])


def made(service: Service) -> tuple[Session, PieceVectors]:
    session = a_session(KEY, created_at=START, next_turn=5001)
    service.raw_store.write(Change(key=KEY, creates=session, profile=Profile()))
    return session, new_process(service)


def new_process(service: Service) -> PieceVectors:
    return PieceVectors(LivePieces(service.store, service.index), IndexCaches().vectors)


def keep(service: Service, session: Session, ranges: Sequence[TurnRange]) -> None:
    for covers in ranges:
        turns = range(covers.from_turn, covers.to_turn + 1)
        piece = VectorPiece(covers, [vector(turn) for turn in turns])
        service.raw_index.put_piece(KEY, session.epoch, PieceName(SHELF, covers), piece.encode())


def there(service: Service, session: Session) -> list[TurnRange]:
    return [name.covers for name in service.raw_index.list_pieces(KEY, session.epoch)]


def cosines(pieces: PieceVectors, session: Session) -> dict[int, float]:
    return dict(pieces.closest(session, MODEL, unit([1.0, 1.0]), 10_000))


def expected(turns: int) -> dict[int, float]:
    query = unit([1.0, 1.0])
    found = {}
    for turn in range(1, turns + 1):
        one = vector(turn)
        found[turn] = query[0] * one[0] + query[1] * one[1]
    return found


def test_pieces_of_other_sizes_are_gone_on_with() -> None:
    service = Service()
    session, pieces = made(service)
    keep(service, session, SIZES_BEFORE)
    assert pieces.resume(session, MODEL) == 2700
    assert there(service, session) == SIZES_BEFORE
    for turn in range(2701, 2705):
        assert pieces.put(session, MODEL, turn, [vector(turn)])
        assert new_process(service).resume(session, MODEL) == turn
    assert there(service, session) == list(cover_all(2704))
    assert cosines(new_process(service), session) == pytest.approx(expected(2704))


@pytest.mark.parametrize("damage", [None, b"broken"])
def test_turns_whose_piece_is_lost_are_put_anew(damage: bytes | None) -> None:
    service = Service()
    session, pieces = made(service)
    put = [vector(turn) for turn in range(1, 2 * SMALLEST + 4)]
    assert pieces.put(session, MODEL, 1, put)
    newest = PieceName(SHELF, TurnRange(2 * SMALLEST + 1, 2 * SMALLEST + 3))
    if damage is None:
        service.raw_index.remove_pieces(KEY, session.epoch, [newest])
    else:
        service.raw_index.put_piece(KEY, session.epoch, newest, damage)
        # Found out when it is needed, and then removed.
        assert not pieces.put(session, MODEL, 2 * SMALLEST + 4, [vector(2 * SMALLEST + 4)])
    assert pieces.resume(session, MODEL) == 2 * SMALLEST
    rest = [vector(2 * SMALLEST + at) for at in range(1, 5)]
    assert pieces.put(session, MODEL, 2 * SMALLEST + 1, rest)
    assert cosines(new_process(service), session) == pytest.approx(expected(2 * SMALLEST + 4))


def test_what_a_run_left_that_was_cut_off_is_removed_by_the_next() -> None:
    service = Service()
    session, pieces = made(service)
    keep(service, session, [TurnRange(1, SMALLEST), TurnRange(1, 3), TurnRange(SMALLEST + 1, 130)])
    assert pieces.resume(session, MODEL) == 130
    assert there(service, session) == [TurnRange(1, SMALLEST), TurnRange(SMALLEST + 1, 130)]
    # Not what another run is ahead with.
    keep(service, session, [TurnRange(140, 150)])
    assert pieces.resume(session, MODEL) == 130
    assert TurnRange(140, 150) in there(service, session)
