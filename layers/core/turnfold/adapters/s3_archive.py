"""The transcript in S3: one object per turn, written once, later many turns in a segment.

v1/tenant=<tenant>/session=<session>/turns/<number>-<turn id>.json
v1/tenant=<tenant>/session=<session>/segments/<first>-<last>.jsonl.gz
"""

import base64
import hashlib
import random
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from botocore.exceptions import ClientError

from turnfold.adapters.aws_errors import Sleep, error_codes, mapped_errors
from turnfold.domain.errors import InvalidIdError, StoreUnavailableError, ThrottledError
from turnfold.domain.segments import Segment
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_TENANT_BYTES = 200
MAX_SESSION_BYTES = 600
MAX_TURN_ID_BYTES = 128
"""Escaped; the whole key stays below the 1,024 bytes that S3 takes. Emulators take more."""

MAX_LIST_KEYS = 1000
WRITE_ATTEMPTS = 5
WRITE_PAUSE_SECONDS = 0.05
"""S3 answers 409 while another conditional write of the same object is at work."""

_NAME = re.compile(r"(\d{12})-([^/]+)\.json")
_SEGMENT = re.compile(r"(\d{12})-(\d{12})\.jsonl\.gz")


def session_prefix(key: SessionKey) -> str:
    """What all keys of a session's objects begin with, and those of no other session."""
    tenant = _escape(key.tenant, MAX_TENANT_BYTES)
    return f"v1/tenant={tenant}/session={_escape(key.session_id, MAX_SESSION_BYTES)}/"


def record_key(key: SessionKey, number: int, turn_id: str) -> str:
    """Where the record of a turn is. Raises `InvalidIdError` for a turn id that is too long."""
    escaped = quote(turn_id, safe="")
    if len(escaped) > MAX_TURN_ID_BYTES:
        raise InvalidIdError("the turn id is too long")
    return f"{session_prefix(key)}turns/{number:012d}-{escaped}.json"


def read_record_key(object_key: str) -> tuple[int, str] | None:
    """Number and turn id of a record's key; None for another object's."""
    match = _NAME.fullmatch(object_key.rpartition("/")[2])
    return (int(match[1]), unquote(match[2])) if match else None


def segment_key(key: SessionKey, segment: Segment) -> str:
    """Where a segment is."""
    return f"{session_prefix(key)}segments/{segment.first:012d}-{segment.last:012d}.jsonl.gz"


def read_segment_key(object_key: str) -> Segment | None:
    """The segment of a key; None for another object's."""
    match = _SEGMENT.fullmatch(object_key.rpartition("/")[2])
    return Segment(int(match[1]), int(match[2])) if match else None


class S3Archive:
    """An `Archive` over one bucket.

    Every method raises `ThrottledError`, `StoreUnavailableError` and `StoreError`. The caller's
    role needs `s3:ListBucket`: without it S3 denies what is absent instead of saying so.
    """

    def __init__(self, client: "S3Client", bucket: str, sleep: Sleep = time.sleep) -> None:
        """Keep records in that bucket; `sleep` waits between attempts."""
        self._client = client
        self._bucket = bucket
        self._sleep = sleep

    def put_record(self, key: SessionKey, number: int, turn_id: str, record: bytes) -> None:
        """See `Archive`; one PutObject. S3 checks the record's hash and keeps it."""
        self._put_once(record_key(key, number, turn_id), record, "application/json")

    def get_record(self, key: SessionKey, number: int, turn_id: str) -> bytes | None:
        """See `Archive`; one GetObject."""
        return self._get(record_key(key, number, turn_id))

    def list_records(
        self, key: SessionKey, from_turn: int, to_turn: int
    ) -> Sequence[tuple[int, str]]:
        """See `Archive`; one ListObjectsV2 for each 1,000 records of the range."""
        prefix = f"{session_prefix(key)}turns/"
        # The dash after the number sorts behind its end, so this is just before the first record.
        start: Any = {"StartAfter": f"{prefix}{max(from_turn, 0):012d}"}
        # One more than the range, to see its end; records of lost races only cost another page.
        wanted = min(MAX_LIST_KEYS, max(to_turn - max(from_turn, 0) + 2, 1))
        found: list[tuple[int, str]] = []
        while True:
            with mapped_errors("list the transcript"):
                answer = self._client.list_objects_v2(
                    Bucket=self._bucket, Prefix=prefix, MaxKeys=wanted, **start
                )
            for entry in answer.get("Contents", []):
                record = read_record_key(entry["Key"])
                if record is None:
                    continue
                if record[0] > to_turn:
                    return found
                found.append(record)
            if not answer["IsTruncated"]:
                return found
            start = {"ContinuationToken": answer["NextContinuationToken"]}

    def remove_records(self, key: SessionKey, names: Sequence[tuple[int, str]]) -> None:
        """See `Archive`; one DeleteObjects, which leaves the versions."""
        self._remove([record_key(key, number, turn_id) for number, turn_id in names])

    def put_segment(self, key: SessionKey, segment: Segment, data: bytes) -> None:
        """See `Archive`; one PutObject, under a tag that lifecycle rules can name."""
        tagging = "turnfold=segment"
        self._put_once(segment_key(key, segment), data, "application/gzip", tagging)

    def get_segment(self, key: SessionKey, segment: Segment) -> bytes | None:
        """See `Archive`; one GetObject."""
        return self._get(segment_key(key, segment))

    def list_segments(self, key: SessionKey) -> Sequence[Segment]:
        """See `Archive`; one ListObjectsV2 for each 1,000 segments."""
        request: Any = {"Bucket": self._bucket, "Prefix": f"{session_prefix(key)}segments/"}
        found: list[Segment] = []
        while True:
            with mapped_errors("list the transcript"):
                answer = self._client.list_objects_v2(**request)
            for entry in answer.get("Contents", []):
                segment = read_segment_key(entry["Key"])
                if segment is not None:
                    found.append(replace(segment, size=entry["Size"]))
            if not answer["IsTruncated"]:
                return found
            request["ContinuationToken"] = answer["NextContinuationToken"]

    def remove_segments(self, key: SessionKey, segments: Sequence[Segment]) -> None:
        """See `Archive`; one DeleteObjects, which leaves the versions."""
        self._remove([segment_key(key, segment) for segment in segments])

    def _remove(self, object_keys: Sequence[str]) -> None:
        if not object_keys:
            return
        with mapped_errors("tidy the transcript"):
            answer = self._client.delete_objects(
                Bucket=self._bucket,
                Delete={"Objects": [{"Key": one} for one in object_keys], "Quiet": True},
            )
        codes = sorted({error.get("Code", "Unknown") for error in answer.get("Errors", [])})
        if codes:
            raise StoreUnavailableError(f"tidy the transcript: {', '.join(codes)}")

    def _get(self, object_key: str) -> bytes | None:
        with mapped_errors("read the transcript"):
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=object_key)
            except ClientError as error:
                if "NoSuchKey" in error_codes(error):
                    return None
                raise
            return answer["Body"].read()

    def _put_once(
        self,
        object_key: str,
        data: bytes,
        content_type: str,
        tagging: str | None = None,
    ) -> None:
        checksum = base64.b64encode(hashlib.sha256(data).digest()).decode()
        for attempt in range(WRITE_ATTEMPTS):
            try:
                with mapped_errors("archive"):
                    self._put(object_key, data, content_type, checksum, tagging)
            except _WriteConflictError:
                self._sleep(random.uniform(0, WRITE_PAUSE_SECONDS * 2**attempt))  # noqa: S311 - jitter
            else:
                return
        raise ThrottledError("archive: other writes to the same object were faster")

    def _put(
        self,
        object_key: str,
        data: bytes,
        content_type: str,
        checksum: str,
        tagging: str | None,
    ) -> None:
        more: Any = {} if tagging is None else {"Tagging": tagging}
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=object_key,
                Body=data,
                ContentType=content_type,
                ChecksumSHA256=checksum,
                IfNoneMatch="*",
                **more,
            )
        except ClientError as error:
            codes = error_codes(error)
            if "ConditionalRequestConflict" in codes:
                raise _WriteConflictError from None
            if "PreconditionFailed" not in codes:
                raise


class _WriteConflictError(Exception):
    """Another conditional write of the same object is at work."""


def _escape(value: str, longest: int) -> str:
    """The value in characters that never end a part of a key.

    One that becomes too long is replaced by its hash. The exclamation mark before it is escaped in
    every other value, so that no id can be another's hash.
    """
    escaped = quote(value, safe="")
    if len(escaped) <= longest:
        return escaped
    return f"!{hashlib.sha256(value.encode()).hexdigest()}"
