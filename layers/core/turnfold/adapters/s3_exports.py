"""Exports in S3, uploaded part by part, and links to them."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from turnfold.adapters.aws_errors import mapped_errors
from turnfold.adapters.s3_archive import session_prefix
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.exports import Link
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

PART_BYTES = 8 * 1024 * 1024
"""S3 takes parts of at least 5 MB, and at most 10,000 of them."""

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

    def store(self, key: SessionKey, name: str, chunks: Iterable[bytes]) -> Link:
        """See `ExportFiles`; one UploadPart for each 8 MB, and three more calls."""
        object_key = f"{session_prefix(key)}exports/{name}"
        with mapped_errors("export"):
            upload = self._client.create_multipart_upload(
                Bucket=self._bucket,
                Key=object_key,
                ContentType=CONTENT_TYPE,
                Tagging="turnfold=export",
            )["UploadId"]
        try:
            self._upload(object_key, upload, chunks)
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

    def _upload(self, object_key: str, upload: str, chunks: Iterable[bytes]) -> None:
        parts: list[CompletedPartTypeDef] = []
        for number, part in enumerate(_parts(chunks), start=1):
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


def _parts(chunks: Iterable[bytes]) -> Iterator[bytes]:
    held = bytearray()
    for chunk in chunks:
        held += chunk
        if len(held) >= PART_BYTES:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)
