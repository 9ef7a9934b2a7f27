"""Search indexes in S3, beside the transcript: `index/<epoch>/<shelf>/<from>-<to>`."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from botocore.exceptions import ClientError

from turnfold.adapters.aws_errors import error_codes, mapped_errors
from turnfold.adapters.s3_archive import session_prefix
from turnfold.application.ports.recall import PieceName
from turnfold.domain.errors import StoreError
from turnfold.domain.sessions import SessionKey, TurnRange

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

_NAME = re.compile(r"([^/]+)/(\d{12})-(\d{12})")


def index_prefix(key: SessionKey, epoch: str) -> str:
    """What the names of all pieces of a session's epoch begin with."""
    return f"{session_prefix(key)}index/{quote(epoch, safe='')}/"


def piece_key(key: SessionKey, epoch: str, name: PieceName) -> str:
    """Where a piece is."""
    covers = name.covers
    shelf = quote(name.shelf, safe="")
    return f"{index_prefix(key, epoch)}{shelf}/{covers.from_turn:012d}-{covers.to_turn:012d}"


def read_piece_key(object_key: str, prefix: str) -> PieceName | None:
    """The name of a piece; None for another object's key."""
    match = _NAME.fullmatch(object_key.removeprefix(prefix))
    if match is None:
        return None
    return PieceName(unquote(match[1]), TurnRange(int(match[2]), int(match[3])))


class S3RecallIndex:
    """A `RecallIndex` over one bucket, with or without versions.

    Removing needs `s3:ListBucketVersions` and `s3:DeleteObjectVersion`: a piece has copies of what
    was said, and none of its versions may stay.
    """

    def __init__(self, client: "S3Client", bucket: str) -> None:
        """Keep pieces in that bucket."""
        self._client = client
        self._bucket = bucket

    def list_pieces(self, key: SessionKey, epoch: str) -> Sequence[PieceName]:
        """See `RecallIndex`; one ListObjectsV2 for each 1,000 pieces."""
        prefix = index_prefix(key, epoch)
        with mapped_errors("list the index"):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=prefix
            )
            keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        return [name for one in keys if (name := read_piece_key(one, prefix))]

    def get_piece(self, key: SessionKey, epoch: str, name: PieceName) -> bytes | None:
        """See `RecallIndex`; one GetObject."""
        with mapped_errors("read the index"):
            try:
                answer = self._client.get_object(
                    Bucket=self._bucket, Key=piece_key(key, epoch, name)
                )
            except ClientError as error:
                if "NoSuchKey" in error_codes(error):
                    return None
                raise
            return answer["Body"].read()

    def put_piece(self, key: SessionKey, epoch: str, name: PieceName, body: bytes) -> None:
        """See `RecallIndex`; one PutObject."""
        with mapped_errors("write the index"):
            self._client.put_object(
                Bucket=self._bucket,
                Key=piece_key(key, epoch, name),
                Body=body,
                ContentType="application/octet-stream",
            )

    def remove_pieces(self, key: SessionKey, epoch: str, names: Sequence[PieceName]) -> None:
        """See `RecallIndex`; a listing of versions for each shelf, and one DeleteObjects."""
        for shelf in sorted({name.shelf for name in names}):
            wanted = {piece_key(key, epoch, name) for name in names if name.shelf == shelf}
            prefix = f"{index_prefix(key, epoch)}{quote(shelf, safe='')}/"
            versions = list(self._versions(prefix, wanted))
            for start in range(0, len(versions), 1000):
                self._delete(versions[start : start + 1000])

    def _versions(self, prefix: str, wanted: set[str]) -> "Iterator[ObjectIdentifierTypeDef]":
        with mapped_errors("list versions of the index"):
            pages = self._client.get_paginator("list_object_versions").paginate(
                Bucket=self._bucket, Prefix=prefix
            )
            for page in pages:
                for one in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
                    if one["Key"] in wanted:
                        yield {"Key": one["Key"], "VersionId": one["VersionId"]}

    def _delete(self, versions: "Sequence[ObjectIdentifierTypeDef]") -> None:
        with mapped_errors("remove from the index"):
            answer = self._client.delete_objects(
                Bucket=self._bucket, Delete={"Objects": list(versions), "Quiet": True}
            )
        if answer.get("Errors"):
            codes = sorted({error.get("Code", "Unknown") for error in answer["Errors"]})
            raise StoreError(f"remove from the index: {', '.join(codes)}")
