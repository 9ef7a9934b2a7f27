"""Snapshots of working memories in S3: `memory/<name>.json.gz` under the session's prefix."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from turnfold.adapters.aws_errors import error_codes, mapped_errors
from turnfold.adapters.s3_archive import session_prefix
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SUFFIX = ".json.gz"


def snapshot_prefix(key: SessionKey) -> str:
    """What the keys of all snapshots of a session begin with."""
    return f"{session_prefix(key)}memory/"


class S3Snapshots:
    """`Snapshots` over one bucket."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        """Keep snapshots in that bucket."""
        self._client = client
        self._bucket = bucket

    def put(self, key: SessionKey, name: str, data: bytes) -> None:
        """See `Snapshots`; one PutObject."""
        with mapped_errors("put away"):
            self._client.put_object(
                Bucket=self._bucket,
                Key=f"{snapshot_prefix(key)}{name}{SUFFIX}",
                Body=data,
                ContentType="application/gzip",
            )

    def get(self, key: SessionKey, name: str) -> bytes | None:
        """See `Snapshots`; one GetObject."""
        with mapped_errors("bring back"):
            try:
                answer = self._client.get_object(
                    Bucket=self._bucket, Key=f"{snapshot_prefix(key)}{name}{SUFFIX}"
                )
            except ClientError as error:
                if "NoSuchKey" in error_codes(error):
                    return None
                raise
            return answer["Body"].read()

    def names(self, key: SessionKey) -> Sequence[str]:
        """See `Snapshots`; one ListObjectsV2, since few snapshots ever lie side by side."""
        prefix = snapshot_prefix(key)
        with mapped_errors("list snapshots"):
            answer = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix)
        keys = [entry["Key"] for entry in answer.get("Contents", [])]
        return [one.removeprefix(prefix).removesuffix(SUFFIX) for one in keys]

    def discard(self, key: SessionKey, name: str) -> None:
        """See `Snapshots`; one ListObjectVersions and one DeleteObjects."""
        object_key = f"{snapshot_prefix(key)}{name}{SUFFIX}"
        with mapped_errors("discard"):
            answer = self._client.list_object_versions(Bucket=self._bucket, Prefix=object_key)
            entries = [*answer.get("Versions", []), *answer.get("DeleteMarkers", [])]
            if entries:
                self._client.delete_objects(
                    Bucket=self._bucket,
                    Delete={
                        "Objects": [
                            {"Key": one["Key"], "VersionId": one["VersionId"]} for one in entries
                        ],
                        "Quiet": True,
                    },
                )

    def remove(self, key: SessionKey, names: Sequence[str]) -> None:
        """See `Snapshots`; one DeleteObjects, which leaves the versions."""
        if not names:
            return
        prefix = snapshot_prefix(key)
        with mapped_errors("remove snapshots"):
            self._client.delete_objects(
                Bucket=self._bucket,
                Delete={
                    "Objects": [{"Key": f"{prefix}{name}{SUFFIX}"} for name in names],
                    "Quiet": True,
                },
            )
