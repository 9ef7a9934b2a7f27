"""What every `VectorIndex` promises.

The one in the table runs in memory and on MiniStack: moto has no SearchVectors. What only a table
can show is in test_dynamo_vectors.py.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from contract.conftest import DIMENSIONS, MOTO, Stores
from support.sessions import START, a_session
from turnfold.adapters.dynamo_vectors import DynamoVectors
from turnfold.adapters.in_memory_bucket import InMemoryBucket
from turnfold.adapters.in_memory_index import InMemoryRecallIndex
from turnfold.adapters.in_memory_store import InMemoryStore
from turnfold.adapters.in_memory_vectors import InMemoryVectors
from turnfold.adapters.s3_recall_index import S3RecallIndex
from turnfold.application.live_pieces import LivePieces
from turnfold.application.piece_vectors import PieceVectors
from turnfold.application.ports.memory import Change
from turnfold.application.read_index import IndexCaches
from turnfold.domain.erasures import Erasure, Removed
from turnfold.domain.recall.vectors import unit
from turnfold.domain.sessions import Profile

if TYPE_CHECKING:
    from turnfold.application.ports.recall import VectorIndex
    from turnfold.domain.sessions import Session

PIECES, TABLE = "pieces", "table"
IN_MINISTACK = pytest.mark.ministack
pytestmark = pytest.mark.parametrize(
    ("backend", "kind"),
    [
        ("in-memory", PIECES),
        ("in-memory", TABLE),
        (MOTO, PIECES),
        pytest.param("ministack", PIECES, marks=IN_MINISTACK),
        pytest.param("ministack", TABLE, marks=IN_MINISTACK),
    ],
)

MODEL = "model/8"
EMPTY = array("f", [])


@pytest.fixture
def vectors(stores: Stores, kind: str) -> VectorIndex:
    return make_vectors(stores, kind)


def make_vectors(stores: Stores, kind: str) -> VectorIndex:
    services = stores.services
    if kind == TABLE and services is not None:
        return DynamoVectors(services.dynamodb, services.table, DIMENSIONS)
    if kind == TABLE:
        assert isinstance(stores.store, InMemoryStore)
        return InMemoryVectors(stores.store)
    index = (
        InMemoryRecallIndex(InMemoryBucket())
        if services is None
        else S3RecallIndex(services.s3, services.bucket)
    )
    return PieceVectors(LivePieces(stores.store, index), IndexCaches().vectors)


def talked(stores: Stores, turns: int, session_id: str = "s1") -> Session:
    """A session of that many turns."""
    writer = stores.writer(session_id)
    for _ in range(turns):
        writer.commit()
    session, _ = stores.store.read_session(stores.key(session_id), None)
    assert session is not None
    # What the adapters are told of the number of turns; writing them all would only take time.
    return replace(session, next_turn=1001)


def pointing(*turns: int) -> list[array[float]]:
    """A vector for each turn; those of near numbers point in near directions."""
    return [unit([math.cos(turn / 100), math.sin(turn / 100), *[0.0] * 6]) for turn in turns]


def found(
    vectors: VectorIndex, session: Session, turn: int, limit: int = 3, model: str = MODEL
) -> list[int]:
    return [one for one, _ in vectors.closest(session, model, pointing(turn)[0], limit)]


def erase(stores: Stores, session: Session) -> Removed:
    """Erase a session to its end; what was removed of it."""
    erasure = Erasure(stores.tenant, "erasure", START)
    stores.erasures.begin(erasure, session)
    marked, _ = stores.store.read_session(session.key, None)
    assert marked is not None
    while stores.erasures.remove_items(marked):
        pass
    receipt = stores.erasures.get(stores.tenant, "erasure")
    assert receipt is not None
    stores.erasures.finish(marked, erasure, START)
    return receipt.removed


def test_the_closest_turns_come_first(stores: Stores, vectors: VectorIndex) -> None:
    session = talked(stores, 1)
    assert vectors.put(session, MODEL, 1, pointing(*range(1, 101)))
    hits = vectors.closest(session, MODEL, pointing(50)[0], 3)
    assert hits[0][0] == 50
    assert {turn for turn, _ in hits} == {49, 50, 51}
    near = math.cos(1 / 100)
    assert [cosine for _, cosine in hits] == pytest.approx([1.0, near, near], abs=1e-6)
    assert len(vectors.closest(session, MODEL, pointing(50)[0], 100)) == 100


def test_what_points_elsewhere_is_not_found(stores: Stores, vectors: VectorIndex) -> None:
    session = talked(stores, 1)
    opposite = array("f", [-value for value in pointing(1)[0]])
    across = unit([0.0] * 7 + [1.0])
    assert vectors.put(session, MODEL, 1, [opposite, across, *pointing(3)])
    assert found(vectors, session, 1) == [3]


def test_turns_without_text_are_counted_and_never_found(
    stores: Stores, vectors: VectorIndex
) -> None:
    session = talked(stores, 1)
    zeros = array("f", [0.0] * DIMENSIONS)
    assert vectors.put(session, MODEL, 1, [EMPTY, *pointing(2), zeros, EMPTY])
    assert vectors.resume(session, MODEL) == 4
    assert vectors.put(session, MODEL, 5, [EMPTY, *pointing(6)])
    assert vectors.resume(session, MODEL) == 6
    assert found(vectors, session, 2) == [2, 6]


def test_writing_goes_on_where_it_ended(stores: Stores, vectors: VectorIndex) -> None:
    session = talked(stores, 1)
    assert vectors.resume(session, MODEL) == 0
    assert found(vectors, session, 5) == []
    at = 0
    for count in (3, 1, 60, 64, 130, 200):
        assert vectors.put(session, MODEL, at + 1, pointing(*range(at + 1, at + count + 1)))
        at += count
        assert vectors.resume(session, MODEL) == at
    for turn in (1, 4, 64, 65, 129, 384, 385, 457):
        assert found(vectors, session, turn, 1) == [turn]


def test_a_gap_is_not_written(stores: Stores, vectors: VectorIndex) -> None:
    session = talked(stores, 1)
    assert vectors.put(session, MODEL, 1, pointing(1, 2))
    assert not vectors.put(session, MODEL, 4, pointing(4))
    assert vectors.resume(session, MODEL) <= 2


def test_of_two_indexers_at_once_the_turns_are_there_once(
    stores: Stores, vectors: VectorIndex, kind: str
) -> None:
    session = talked(stores, 1)
    assert vectors.put(session, MODEL, 1, pointing(1, 2))
    vectors.put(session, MODEL, 1, pointing(1, 2, 3))
    reached = vectors.resume(session, MODEL)
    # Pieces of the same turns are of the same content; in the table the first one has won.
    assert reached == (3 if kind == PIECES else 2)
    hits = vectors.closest(session, MODEL, pointing(1)[0], 10)
    assert [turn for turn, _ in hits] == list(range(1, reached + 1))


def test_turns_that_came_after_the_session_was_read_are_not_found(
    stores: Stores, vectors: VectorIndex
) -> None:
    session = talked(stores, 1)
    assert vectors.put(session, MODEL, 1, pointing(1))
    assert vectors.put(session, MODEL, 2, pointing(2))
    before = replace(session, next_turn=2)
    assert set(found(vectors, before, 2)) <= {1}


def test_another_model_begins_anew_and_takes_the_place_of_the_first(
    stores: Stores, vectors: VectorIndex
) -> None:
    session = talked(stores, 1)
    assert vectors.put(session, MODEL, 1, pointing(*range(1, 101)))
    assert vectors.resume(session, "newer/8") == 0
    assert found(vectors, session, 7, model="newer/8") == []
    assert vectors.put(session, "newer/8", 1, pointing(*range(101, 105)))
    assert vectors.resume(session, "newer/8") == 4
    assert found(vectors, session, 101, 10, "newer/8") == [1, 2, 3, 4]
    assert found(vectors, session, 7, 10) == []
    assert vectors.resume(session, MODEL) == 0


def test_sessions_and_tenants_do_not_see_each_other(stores: Stores, kind: str) -> None:
    vectors = make_vectors(stores, kind)
    own = talked(stores, 1)
    others = [talked(stores, 1, name) for name in ("s", "s11", "s1#VEC", "S1")]
    for one in others:
        assert vectors.put(one, MODEL, 1, pointing(1, 2, 3))
    assert found(vectors, own, 1) == []
    assert vectors.resume(own, MODEL) == 0
    # The same tenant's right epoch under a guessed key, and the right key with a guessed epoch.
    assert found(vectors, replace(others[0], key=own.key), 1) == []
    assert found(vectors, replace(others[0], epoch="guessed"), 1) == []
    assert found(vectors, others[0], 1) == [1, 2, 3]


def test_an_erased_session_takes_nothing_more_and_its_successor_begins_empty(
    stores: Stores, vectors: VectorIndex, kind: str
) -> None:
    late = talked(stores, 1)
    assert vectors.put(late, MODEL, 1, pointing(*range(1, 131)))
    removed = erase(stores, late)
    if kind == TABLE:
        assert removed.vectors == 130
        assert removed.items > 130
    assert not vectors.put(late, MODEL, 131, pointing(131))
    new = a_session(late.key, epoch="e2", next_turn=1001)
    stores.store.write(Change(key=new.key, creates=new, profile=Profile()))
    assert not vectors.put(late, MODEL, 131, pointing(131))
    assert found(vectors, new, 1) == []
    assert vectors.resume(new, MODEL) == 0


def test_a_session_that_is_not_live_takes_nothing(stores: Stores, vectors: VectorIndex) -> None:
    session = talked(stores, 1)
    assert vectors.put(session, MODEL, 1, pointing(1))
    stores.erasures.begin(Erasure(stores.tenant, "erasure", START), session)
    assert not vectors.put(session, MODEL, 2, pointing(2))
    assert not vectors.put(session, "other/8", 1, pointing(1))
    assert vectors.resume(session, MODEL) == 1
    assert not vectors.put(replace(session, epoch="e0"), MODEL, 1, pointing(1))
    assert not vectors.put(replace(session, key=stores.key("none")), MODEL, 1, pointing(1))
