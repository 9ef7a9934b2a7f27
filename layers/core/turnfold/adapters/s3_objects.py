"""All objects of a session with all their versions: what an erasure has to remove.

Everything of a session is under one prefix: records, segments, snapshots, exports, indexes. A large
export is uploaded in parts; those of an upload that was cut off are no version of anything, but
they hold what was said as well.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from turnfold.adapters.aws_errors import error_codes, mapped_errors
from turnfold.adapters.s3_archive import session_prefix
from turnfold.application.ports.erasures import ObjectVersion
from turnfold.domain.errors import StoreError
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3SessionObjects:
    """`SessionObjects` over one bucket."""

    def __init__(self, client: "S3Client", bucket: str, *, bypass_governance: bool = False) -> None:
        """Use that bucket; `bypass_governance` removes what Object Lock retains in that mode."""
        self._client = client
        self._bucket = bucket
        self._bypass = bypass_governance

    def list_versions(self, key: SessionKey, limit: int) -> Sequence[ObjectVersion]:
        """See `SessionObjects`; one ListObjectVersions, and at the end one ListMultipartUploads."""
        with mapped_errors("list versions"):
            answer = self._client.list_object_versions(
                Bucket=self._bucket, Prefix=session_prefix(key), MaxKeys=limit
            )
        entries = [*answer.get("Versions", []), *answer.get("DeleteMarkers", [])]
        if entries:
            return [ObjectVersion(one["Key"], one["VersionId"]) for one in entries]
        with mapped_errors("list uploads"):
            begun = self._client.list_multipart_uploads(
                Bucket=self._bucket, Prefix=session_prefix(key), MaxUploads=limit
            )
        return [
            ObjectVersion(one["Key"], one["UploadId"], is_upload=True)
            for one in begun.get("Uploads", [])
        ]

    def remove_versions(self, versions: Sequence[ObjectVersion]) -> None:
        """See `SessionObjects`; one DeleteObjects, and for each upload one AbortMultipartUpload."""
        for one in versions:
            if one.is_upload:
                self._abort(one)
        stored = [one for one in versions if not one.is_upload]
        if not stored:
            return
        bypass: Any = {"BypassGovernanceRetention": True} if self._bypass else {}
        with mapped_errors("remove versions"):
            answer = self._client.delete_objects(
                Bucket=self._bucket,
                Delete={
                    "Objects": [{"Key": one.name, "VersionId": one.version} for one in stored],
                    "Quiet": True,
                },
                **bypass,
            )
        codes = sorted({error.get("Code", "Unknown") for error in answer.get("Errors", [])})
        if codes:
            raise StoreError(f"remove versions: {', '.join(codes)}")

    def _abort(self, upload: ObjectVersion) -> None:
        with mapped_errors("abort upload"):
            try:
                self._client.abort_multipart_upload(
                    Bucket=self._bucket, Key=upload.name, UploadId=upload.version
                )
            except ClientError as error:
                if "NoSuchUpload" not in error_codes(error):
                    raise
