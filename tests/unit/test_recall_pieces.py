"""Pieces of indexes: ranges, postings with turns, vectors."""

from __future__ import annotations

import json
from array import array
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sessions import a_turn
from turnfold.domain.recall.corpora import FreshTurns, SessionCorpus
from turnfold.domain.recall.documents import turn_document
from turnfold.domain.recall.pieces import (
    MAX_COPY_CHARACTERS,
    PieceWriter,
    decode_piece,
)
from turnfold.domain.recall.ranges import LARGEST, SMALLEST, cover, missing, tiling
from turnfold.domain.recall.vectors import VectorPiece, closest, decode_vectors, unit
from turnfold.domain.sessions import TurnRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnfold.domain.recall.pieces import Piece
    from turnfold.domain.turns import Turn

TEXTS = st.lists(st.text(max_size=40), min_size=1, max_size=40)


def turns_of(texts: Sequence[str], first: int = 1) -> list[Turn]:
    return [a_turn(number, text)[0] for number, text in enumerate(texts, first)]


def piece_of(turns: Sequence[Turn]) -> Piece:
    writer = PieceWriter(TurnRange(turns[0].number, turns[-1].number))
    writer.add_turns(turns)
    piece = decode_piece(writer.encode())
    assert piece is not None
    return piece


@given(st.integers(0, 30_000))
def test_pieces_cover_all_but_the_newest_turns(turns: int) -> None:
    pieces = cover(turns)
    reached = 0
    for piece in pieces:
        assert piece.from_turn == reached + 1
        assert (piece.from_turn - 1) % (piece.to_turn - piece.from_turn + 1) == 0
        reached = piece.to_turn
    assert 0 <= turns - reached < SMALLEST
    assert len(pieces) <= turns // LARGEST + 10


@given(st.integers(0, 5000))
def test_a_piece_stays_until_a_larger_one_replaces_it(turns: int) -> None:
    before, after = cover(turns), cover(turns + 1)
    for piece in before:
        assert piece in after or any(
            one.from_turn <= piece.from_turn and piece.to_turn <= one.to_turn for one in after
        )


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 20)), max_size=10))
def test_tiles_and_what_is_missing_are_the_whole(ranges: list[tuple[int, int]]) -> None:
    whole = TurnRange(3, 45)
    tiles = tiling(whole, [TurnRange(first, first + more) for first, more in ranges])
    parts = sorted((*tiles, *missing(whole, tiles)), key=lambda one: one.from_turn)
    covered = [n for one in parts for n in range(one.from_turn, one.to_turn + 1)]
    assert covered == list(range(3, 46))


@given(TEXTS, st.integers(1, 5000))
def test_a_piece_holds_its_turns_and_their_terms(texts: list[str], first: int) -> None:
    turns = turns_of(texts, first)
    piece = piece_of(turns)
    assert [piece.turn(turn.number) for turn in turns] == turns
    documents = {turn.number: turn_document(turn) for turn in turns}
    assert list(piece.lengths) == [document.length for document in documents.values()]
    for term in {term for document in documents.values() for term in document.counts}:
        assert list(piece.postings(term)) == [
            (number, document.counts[term])
            for number, document in documents.items()
            if term in document.counts
        ]
    assert list(piece.postings("absent")) == []


@given(TEXTS, TEXTS)
def test_pieces_merge_to_the_piece_of_all_their_turns(one: list[str], other: list[str]) -> None:
    turns = turns_of(one + other)
    whole = PieceWriter(TurnRange(1, len(turns)))
    whole.add_turns(turns)
    merged = PieceWriter(TurnRange(1, len(turns)))
    merged.add_piece(piece_of(turns[: len(one)]))
    merged.add_piece(piece_of(turns[len(one) :]))
    assert merged.encode() == whole.encode()


def test_a_long_turn_is_indexed_but_not_copied() -> None:
    turns = turns_of(["harbour " * MAX_COPY_CHARACTERS, "short"])
    piece = piece_of(turns)
    assert piece.turn(1) is None
    assert piece.turn(2) == turns[1]
    assert dict(piece.postings("harbour")).keys() == {1}


def test_a_piece_must_be_whole() -> None:
    writer = PieceWriter(TurnRange(1, 3))
    writer.add_turns(turns_of(["one", "two"]))
    with pytest.raises(ValueError, match="turn 3 is missing"):
        writer.encode()


@pytest.mark.parametrize("raw", [b"", b"{}", b"\x1f\x8b broken", b"null\n", b'{"version": 99}\n'])
def test_what_is_no_piece_is_none(raw: bytes) -> None:
    assert decode_piece(raw) is None
    assert decode_vectors(raw) is None


def test_a_session_is_searched_over_pieces_and_fresh_turns() -> None:
    turns = turns_of(["a", "lantern", "b", "c", "lantern lantern", "d", "e"])
    fresh = FreshTurns([(turn, turn_document(turn)) for turn in turns[2:5]])
    corpus = SessionCorpus([fresh, piece_of(turns[5:]), piece_of(turns[:2])])
    assert list(corpus.lengths) == [turn_document(turn).length for turn in turns]
    assert list(corpus.postings("lantern")) == [(1, 1), (4, 2)]
    assert [corpus.turn(number) for number in range(1, 8)] == turns


FLOATS = st.floats(-1e6, 1e6, width=32)
VECTORS = st.lists(st.lists(FLOATS, min_size=3, max_size=3), min_size=1, max_size=10)


@given(VECTORS)
def test_vectors_come_back(vectors: list[list[float]]) -> None:
    piece = VectorPiece(TurnRange(5, 4 + len(vectors)), [unit(vector) for vector in vectors])
    again = decode_vectors(piece.encode())
    assert again == piece


def test_a_turn_without_text_has_a_vector_of_zeros() -> None:
    piece = decode_vectors(VectorPiece(TurnRange(1, 2), [unit(()), unit((3, 4))]).encode())
    assert piece is not None
    assert list(piece.vectors[0]) == [0, 0]
    ((number, score),) = closest(unit((1, 1)), [piece], 5)
    assert number == 2
    assert score == pytest.approx(1.4 / 2**0.5)


def test_the_closest_come_first_and_only_above_zero() -> None:
    vectors = [unit((1, 0)), unit((0, 1)), unit((-1, 0)), unit((1, 1)), array("f", [1.0])]
    piece = VectorPiece(TurnRange(11, 15), vectors)
    assert [number for number, _ in closest(unit((1, 0.1)), [piece], 10)] == [11, 14, 12]
    assert [number for number, _ in closest(unit((1, 0.1)), [piece], 1)] == [11]


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=5))
def test_a_unit_vector_has_length_one_or_zero(vector: list[float]) -> None:
    length = sum(value * value for value in unit(vector)) ** 0.5
    assert length == pytest.approx(1, abs=1e-5) or length == 0


def test_a_piece_of_another_version_is_made_anew() -> None:
    piece = VectorPiece(TurnRange(1, 1), [unit((1, 0))]).encode()
    line, _, rest = piece.partition(b"\n")
    other = json.dumps(json.loads(line) | {"version": 99}).encode() + b"\n" + rest
    assert decode_vectors(other) is None
