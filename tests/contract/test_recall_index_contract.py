"""What every `RecallIndex` promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract.conftest import MINISTACK, MOTO, Stores
from turnfold.adapters.in_memory_bucket import InMemoryBucket
from turnfold.adapters.in_memory_index import InMemoryRecallIndex
from turnfold.adapters.s3_recall_index import S3RecallIndex, index_prefix
from turnfold.application.ports.recall import PieceName
from turnfold.domain.sessions import SessionKey, TurnRange

if TYPE_CHECKING:
    from turnfold.application.ports.recall import RecallIndex

pytestmark = pytest.mark.parametrize("backend", ["in-memory", MOTO, MINISTACK])

ONE = PieceName("words-1.1", TurnRange(1, 64))
TWO = PieceName("words-1.1", TurnRange(65, 128))
LARGE = PieceName("words-1.1", TurnRange(1, 2304))
VECTORS = PieceName("vectors-1-abc", TurnRange(1, 64))


@pytest.fixture
def index(stores: Stores) -> RecallIndex:
    if stores.services is None:
        return InMemoryRecallIndex(InMemoryBucket())
    return S3RecallIndex(stores.services.s3, stores.services.bucket)


def test_a_piece_comes_back_byte_for_byte(stores: Stores, index: RecallIndex) -> None:
    body = bytes(range(256)) * 100
    index.put_piece(stores.key(), "e1", ONE, body)
    assert index.get_piece(stores.key(), "e1", ONE) == body


def test_what_is_not_there_is_none(stores: Stores, index: RecallIndex) -> None:
    index.put_piece(stores.key(), "e1", ONE, b"1")
    assert index.get_piece(stores.key(), "e1", TWO) is None
    assert index.get_piece(stores.key(), "e2", ONE) is None
    assert index.get_piece(stores.key("other"), "e1", ONE) is None
    assert list(index.list_pieces(stores.key("other"), "e1")) == []
    assert list(index.list_pieces(stores.key(), "e2")) == []


def test_pieces_are_listed_by_shelf_and_range(stores: Stores, index: RecallIndex) -> None:
    for name in (TWO, VECTORS, LARGE, ONE):
        index.put_piece(stores.key(), "e1", name, b"x")
    assert list(index.list_pieces(stores.key(), "e1")) == [VECTORS, ONE, LARGE, TWO]


def test_a_piece_may_be_put_again(stores: Stores, index: RecallIndex) -> None:
    for _ in range(2):
        index.put_piece(stores.key(), "e1", ONE, b"same")
    assert list(index.list_pieces(stores.key(), "e1")) == [ONE]


def test_removed_pieces_are_gone_and_others_stay(stores: Stores, index: RecallIndex) -> None:
    for name in (ONE, TWO, VECTORS):
        index.put_piece(stores.key(), "e1", name, b"x")
    index.put_piece(stores.key(), "e1", ONE, b"x")
    index.remove_pieces(stores.key(), "e1", [ONE, VECTORS, LARGE])
    assert list(index.list_pieces(stores.key(), "e1")) == [TWO]
    index.remove_pieces(stores.key(), "e1", [ONE])
    index.remove_pieces(stores.key(), "e1", [])
    assert index.get_piece(stores.key(), "e1", TWO) == b"x"


def test_no_version_of_a_removed_piece_is_left(stores: Stores, index: RecallIndex) -> None:
    if stores.services is None:
        pytest.skip("the bucket of this backend is not shared")
    client, bucket = stores.services.s3, stores.services.bucket
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    try:
        for body in (b"1", b"2"):
            index.put_piece(stores.key(), "e1", ONE, body)
        index.put_piece(stores.key(), "e1", TWO, b"3")
        index.remove_pieces(stores.key(), "e1", [ONE])
        left = client.list_object_versions(Bucket=bucket, Prefix=index_prefix(stores.key(), "e1"))
        assert [one["Key"][-25:] for one in left["Versions"]] == ["000000000065-000000000128"]
        assert not left.get("DeleteMarkers")
    finally:
        # As the other tests of this bucket have it.
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


@pytest.mark.parametrize("session_id", ["a/b", "s1/index/e1", "..", "👩🏽‍🚀", "漢" * 256])
def test_odd_sessions_and_epochs_keep_apart(
    stores: Stores, index: RecallIndex, session_id: str
) -> None:
    key = SessionKey(stores.tenant, session_id)
    index.put_piece(key, "e/1", ONE, b"odd")
    index.put_piece(SessionKey(stores.tenant, "s1"), "e1", ONE, b"plain")
    assert list(index.list_pieces(key, "e/1")) == [ONE]
    assert index.get_piece(key, "e/1", ONE) == b"odd"
    assert list(index.list_pieces(key, "e")) == []
