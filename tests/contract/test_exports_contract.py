"""What every `ExportFiles` promises; and what the bucket does with retention, tags and links."""

from __future__ import annotations

import urllib.request
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from contract.conftest import MINISTACK, MOTO, Stores
from turnfold.adapters import s3_exports
from turnfold.adapters.s3_archive import segment_key, session_prefix
from turnfold.adapters.s3_exports import (
    LINK_SECONDS,
    MIN_PART_BYTES,
    PART_BYTES,
    S3Exports,
)
from turnfold.adapters.s3_objects import S3SessionObjects
from turnfold.domain.errors import InvalidCursorError, StoreError
from turnfold.domain.segments import Segment, pack_segment

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.parametrize("backend", [MOTO, MINISTACK])


def exports_of(stores: Stores) -> S3Exports:
    assert stores.services is not None
    return S3Exports(stores.services.s3, stores.services.bucket, stores.clock)


def stored(stores: Stores, name: str) -> bytes:
    assert stores.services is not None
    key = f"{session_prefix(stores.key())}exports/{name}"
    return stores.services.s3.get_object(Bucket=stores.services.bucket, Key=key)["Body"].read()


@pytest.mark.parametrize("size", [10, PART_BYTES - 1, PART_BYTES, 2 * PART_BYTES + 7])
def test_chunks_become_one_file(stores: Stores, size: int) -> None:
    line = b'{"type":"turn","text":"\xe6\xbc\xa2"}\n'
    count = max(1, size // len(line))
    link = exports_of(stores).store(stores.key(), "e.jsonl", (line for _ in range(count)))
    assert stored(stores, "e.jsonl") == line * count
    assert link.expires_at == stores.clock() + timedelta(seconds=LINK_SECONDS)
    assert "e.jsonl" in link.url


@pytest.mark.parametrize("size", [10, MIN_PART_BYTES - 1, MIN_PART_BYTES, 2 * MIN_PART_BYTES + 7])
@pytest.mark.parametrize("more", [b"", b"the rest\n"])
def test_an_earlier_file_comes_first(
    stores: Stores, size: int, more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_exports, "COPY_BYTES", MIN_PART_BYTES + 1000)
    exports, key = exports_of(stores), stores.key("a/b ü")
    earlier = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    folder = f"{session_prefix(key)}exports/"
    assert stores.services is not None
    bucket, s3 = stores.services.bucket, stores.services.s3
    s3.put_object(Bucket=bucket, Key=f"{folder}one.jsonl", Body=earlier)
    exports.store(key, "two.jsonl", [more] if more else [], "one.jsonl")
    found = s3.get_object(Bucket=bucket, Key=f"{folder}two.jsonl")["Body"].read()
    assert found == earlier + more


def test_an_earlier_file_that_is_gone_is_said(stores: Stores) -> None:
    with pytest.raises(InvalidCursorError):
        exports_of(stores).store(stores.key(), "two.jsonl", [b"x"], "one.jsonl")
    assert list(stores.objects.list_versions(stores.key(), 10)) == []


def test_what_breaks_off_leaves_nothing(stores: Stores) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"x" * PART_BYTES
        raise StoreError("the transcript is damaged")

    with pytest.raises(StoreError, match="damaged"):
        exports_of(stores).store(stores.key(), "broken.jsonl", chunks())
    assert stores.services is not None
    found = stores.services.s3.list_multipart_uploads(Bucket=stores.services.bucket)
    assert not found.get("Uploads")
    assert list(stores.objects.list_versions(stores.key(), 10)) == []


def test_exports_and_segments_carry_the_tags_of_the_lifecycle_rules(stores: Stores) -> None:
    assert stores.services is not None
    exports_of(stores).store(stores.key(), "e.jsonl", [b"x"])
    stores.archive.put_segment(stores.key(), Segment(1, 1), pack_segment([b"{}"]))
    names = {
        f"{session_prefix(stores.key())}exports/e.jsonl": "export",
        segment_key(stores.key(), Segment(1, 1)): "segment",
    }
    for name, value in names.items():
        tags = stores.services.s3.get_object_tagging(Bucket=stores.services.bucket, Key=name)
        assert tags["TagSet"] == [{"Key": "turnfold", "Value": value}]


def test_a_link_opens_without_credentials(stores: Stores, backend: str) -> None:
    if backend == MOTO:
        pytest.skip("moto answers only patched clients")
    link = exports_of(stores).store(stores.key(), "e.jsonl", [b"all of it"])
    with urllib.request.urlopen(link.url, timeout=10) as answer:  # noqa: S310 - the emulator's
        assert answer.read() == b"all of it"


def test_an_erasure_finds_exports(stores: Stores) -> None:
    exports_of(stores).store(stores.key(), "e.jsonl", [b"x"])
    versions = stores.objects.list_versions(stores.key(), 10)
    stores.objects.remove_versions(versions)
    assert len(versions) == 1
    assert list(stores.objects.list_versions(stores.key(), 10)) == []


def test_an_erasure_finds_what_was_uploaded_of_an_export_that_was_cut_off(stores: Stores) -> None:
    assert stores.services is not None
    s3, bucket = stores.services.s3, stores.services.bucket
    for session_id in ("s1", "s11"):
        name = f"{session_prefix(stores.key(session_id))}exports/e.jsonl"
        begun = s3.create_multipart_upload(Bucket=bucket, Key=name)["UploadId"]
        s3.upload_part(Bucket=bucket, Key=name, UploadId=begun, PartNumber=1, Body=b"x")
    exports_of(stores).store(stores.key(), "other.jsonl", [b"x"])
    stores.objects.remove_versions(stores.objects.list_versions(stores.key(), 10))
    uploads = stores.objects.list_versions(stores.key(), 10)
    assert [one.is_upload for one in uploads] == [True]
    for _ in range(2):
        stores.objects.remove_versions(uploads)
    assert list(stores.objects.list_versions(stores.key(), 10)) == []
    assert len(stores.objects.list_versions(stores.key("s11"), 10)) == 1
    stores.objects.remove_versions(stores.objects.list_versions(stores.key("s11"), 10))


def test_retention_is_passed_over_only_if_asked_to(stores: Stores) -> None:
    assert stores.services is not None
    s3 = stores.services.s3
    bucket = f"locked-{stores.tenant}"
    s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
    s3.put_object_lock_configuration(
        Bucket=bucket,
        ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule},  # type: ignore[typeddict-item]  # a rule of either kind
    )
    s3.put_object(Bucket=bucket, Key=f"{session_prefix(stores.key())}turns/x", Body=b"x")
    keeping = S3SessionObjects(s3, bucket)
    (version,) = keeping.list_versions(stores.key(), 10)
    with pytest.raises(StoreError, match="remove versions"):
        keeping.remove_versions([version])
    assert len(keeping.list_versions(stores.key(), 10)) == 1
    S3SessionObjects(s3, bucket, bypass_governance=True).remove_versions([version])
    assert list(keeping.list_versions(stores.key(), 10)) == []
