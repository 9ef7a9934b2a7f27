"""Which sessions have a transcript, as the bucket tells: for the day when the table is lost."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from turnfold.adapters.aws_errors import mapped_errors
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ROOT = "v1/"


def archived_sessions(client: "S3Client", bucket: str) -> Iterator[SessionKey | str]:
    """Every session with objects; the folder's name instead where the id cannot be told.

    Ids that are too long for an object's name stand there as a hash. One ListObjectsV2 for each
    1,000 sessions of a tenant.
    """
    for tenant_folder in _folders(client, bucket, ROOT):
        tenant = _value(tenant_folder, "tenant")
        for folder in _folders(client, bucket, tenant_folder):
            session_id = _value(folder, "session")
            if tenant is None or session_id is None:
                yield folder
            else:
                yield SessionKey(tenant, session_id)


def _folders(client: "S3Client", bucket: str, prefix: str) -> Iterator[str]:
    request: Any = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/"}
    while True:
        with mapped_errors("list sessions"):
            answer = client.list_objects_v2(**request)
        for one in answer.get("CommonPrefixes", []):
            yield one["Prefix"]
        if not answer["IsTruncated"]:
            return
        request["ContinuationToken"] = answer["NextContinuationToken"]


def _value(folder: str, name: str) -> str | None:
    """The value of the last part of a folder's name, `name=value`."""
    last = folder.rstrip("/").rpartition("/")[2]
    found, _, value = last.partition("=")
    return None if found != name or value.startswith("!") else unquote(value)
