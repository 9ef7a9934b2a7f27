"""Exports in S3, uploaded part by part, and links to them."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from turnfold.adapters.aws_errors import error_codes, mapped_errors
from turnfold.adapters.s3_archive import session_prefix
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.exports import Link
from turnfold.domain.errors import InvalidCursorError
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

PART_BYTES = 8 * 1024 * 1024
"""S3 takes parts of at least 5 MB, and at most 10,000 of them."""

MIN_PART_BYTES = 5 * 1024 * 1024
COPY_BYTES = 64 * 1024 * 1024
"""Of one copy: it has to end within the time that is allowed to a call."""

PARALLEL_COPIES = 8

LINK_SECONDS = 900
"""Not longer than the credentials of a function or of one tenant live at the least."""

CONTENT_TYPE = "application/x-ndjson"


class S3Exports:
    """`ExportFiles` over one bucket; the bucket's lifecycle removes them by their tag."""

    def __init__(self, client: "S3Client", bucket: str, clock: Clock) -> None:
        """Keep exports in that bucket; the clock tells when a link ends."""
        self._client = client
        self._bucket = bucket
        self._clock = clock

    def store(
        self, key: SessionKey, name: str, chunks: Iterable[bytes], earlier: str | None = None
    ) -> Link:
        """See `ExportFiles`; one UploadPart for each 8 MB, and three more calls.

        What an earlier file holds is copied within S3 (HeadObject, and one UploadPartCopy for each
        64 MB); only one that is too small for that is read.
        """
        folder = f"{session_prefix(key)}exports/"
        object_key = f"{folder}{name}"
        copied = Earlier() if earlier is None else self._earlier(f"{folder}{earlier}")
        with mapped_errors("export"):
            upload = self._client.create_multipart_upload(
                Bucket=self._bucket,
                Key=object_key,
                ContentType=CONTENT_TYPE,
                Tagging="turnfold=export",
            )["UploadId"]
        try:
            self._upload(object_key, upload, copied, chunks)
        except BaseException:
            with mapped_errors("export"):
                self._client.abort_multipart_upload(
                    Bucket=self._bucket, Key=object_key, UploadId=upload
                )
            raise
        expires_at = self._clock() + timedelta(seconds=LINK_SECONDS)
        url = self._client.generate_presigned_url(
            "get_object",
            Params={"Bucket": self._bucket, "Key": object_key},
            ExpiresIn=LINK_SECONDS,
        )
        return Link(url, expires_at)

    def _upload(
        self, object_key: str, upload: str, copied: "Earlier", chunks: Iterable[bytes]
    ) -> None:
        parts = self._copy(object_key, upload, copied)
        held = [copied.data] if copied.data else []
        for number, part in enumerate(_parts(chain(held, chunks)), start=len(parts) + 1):
            with mapped_errors("export"):
                etag = self._client.upload_part(
                    Bucket=self._bucket,
                    Key=object_key,
                    UploadId=upload,
                    PartNumber=number,
                    Body=part,
                )["ETag"]
            parts.append({"ETag": etag, "PartNumber": number})
        with mapped_errors("export"):
            self._client.complete_multipart_upload(
                Bucket=self._bucket,
                Key=object_key,
                UploadId=upload,
                MultipartUpload={"Parts": parts},
            )

    def _earlier(self, object_key: str) -> "Earlier":
        with mapped_errors("export"):
            try:
                size = self._client.head_object(Bucket=self._bucket, Key=object_key)[
                    "ContentLength"
                ]
                if size >= MIN_PART_BYTES:
                    return Earlier(object_key, size)
                answer = self._client.get_object(Bucket=self._bucket, Key=object_key)
            except ClientError as error:
                # HeadObject has no body that could name the error.
                if {"404", "NoSuchKey"} & {*error_codes(error)}:
                    raise InvalidCursorError("begin the export anew") from None
                raise
            return Earlier(data=answer["Body"].read())

    def _copy(
        self, object_key: str, upload: str, copied: "Earlier"
    ) -> "list[CompletedPartTypeDef]":
        """Copy an object of some size as the first parts, of about equal size."""
        count = -(-copied.size // COPY_BYTES)
        bounds = [copied.size * at // count for at in range(count + 1)] if count else [0]

        def copy(number: int) -> "CompletedPartTypeDef":
            with mapped_errors("export"):
                answer = self._client.upload_part_copy(
                    Bucket=self._bucket,
                    Key=object_key,
                    UploadId=upload,
                    PartNumber=number,
                    CopySource={"Bucket": self._bucket, "Key": copied.object_key},
                    CopySourceRange=f"bytes={bounds[number - 1]}-{bounds[number] - 1}",
                )
            return {"ETag": answer["CopyPartResult"]["ETag"], "PartNumber": number}

        with ThreadPoolExecutor(PARALLEL_COPIES) as pool:
            return list(pool.map(copy, range(1, count + 1)))


@dataclass(frozen=True, slots=True)
class Earlier:
    """What comes before the chunks: an object to copy, or its bytes where it is small."""

    object_key: str = ""
    size: int = 0
    data: bytes = b""


def _parts(chunks: Iterable[bytes]) -> Iterator[bytes]:
    held = bytearray()
    for chunk in chunks:
        held += chunk
        if len(held) >= PART_BYTES:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)
