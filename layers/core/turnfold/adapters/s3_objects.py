"""All objects of a session with all their versions: what an erasure has to remove.

Everything of a session is under one prefix: records, segments, snapshots, exports, indexes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from turnfold.adapters.aws_errors import mapped_errors
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
        """See `SessionObjects`; one ListObjectVersions."""
        with mapped_errors("list versions"):
            answer = self._client.list_object_versions(
                Bucket=self._bucket, Prefix=session_prefix(key), MaxKeys=limit
            )
        entries = [*answer.get("Versions", []), *answer.get("DeleteMarkers", [])]
        return [ObjectVersion(one["Key"], one["VersionId"]) for one in entries]

    def remove_versions(self, versions: Sequence[ObjectVersion]) -> None:
        """See `SessionObjects`; one DeleteObjects."""
        if not versions:
            return
        bypass: Any = {"BypassGovernanceRetention": True} if self._bypass else {}
        with mapped_errors("remove versions"):
            answer = self._client.delete_objects(
                Bucket=self._bucket,
                Delete={
                    "Objects": [{"Key": one.name, "VersionId": one.version} for one in versions],
                    "Quiet": True,
                },
                **bypass,
            )
        codes = sorted({error.get("Code", "Unknown") for error in answer.get("Errors", [])})
        if codes:
            raise StoreError(f"remove versions: {', '.join(codes)}")
