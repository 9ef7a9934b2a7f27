"""The archivist's bell as a message of a FIFO queue of its own, one group for each session."""

import hashlib
import json
from typing import TYPE_CHECKING

from turnfold.adapters.aws_errors import mapped_errors
from turnfold.adapters.sqs_doorbell import DoorbellMessage
from turnfold.domain.erasures import ArchiveTask, UserErasure
from turnfold.domain.errors import InvalidDoorbellError
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

BODY_VERSION = 1


def archive_message(task: ArchiveTask, ring_id: str) -> DoorbellMessage:
    """The message for one ring."""
    if isinstance(task, SessionKey):
        member, name = "session", task.session_id
    else:
        member, name = "erasure", task.erasure_id
    body = {"v": BODY_VERSION, "tenant": task.tenant, member: name}
    return DoorbellMessage(
        group=_sha256(json.dumps([task.tenant, member, name])),
        deduplication_id=_sha256(ring_id),
        body=json.dumps(body, ensure_ascii=False, separators=(",", ":")),
    )


def parse_archive_message(body: str) -> ArchiveTask:
    """What a message is about.

    Raises `InvalidDoorbellError` for a body that `archive_message` did not write.
    """
    try:
        said = json.loads(body)
        version, tenant = said["v"], said["tenant"]
        session, erasure = said.get("session"), said.get("erasure")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidDoorbellError("not a message of the archive's bell") from None
    if version == BODY_VERSION and isinstance(tenant, str):
        if isinstance(session, str):
            return SessionKey(tenant, session)
        if isinstance(erasure, str):
            return UserErasure(tenant, erasure)
    raise InvalidDoorbellError("not a message of the archive's bell")


class SqsArchiveBell:
    """An `ArchiveBell`; one SendMessage for each ring."""

    def __init__(self, client: "SQSClient", queue_url: str) -> None:
        """Ring at the FIFO queue of that address."""
        self._client = client
        self._queue_url = queue_url

    def ring(self, key: SessionKey, ring_id: str) -> None:
        """See `ArchiveBell`."""
        self._send(archive_message(key, ring_id))

    def ring_user(self, tenant: str, erasure_id: str, ring_id: str) -> None:
        """See `ArchiveBell`."""
        self._send(archive_message(UserErasure(tenant, erasure_id), ring_id))

    def postpone(self, receipt: str, seconds: int) -> None:
        """See `ArchiveBell`; one ChangeMessageVisibility."""
        with mapped_errors("postpone"):
            self._client.change_message_visibility(
                QueueUrl=self._queue_url, ReceiptHandle=receipt, VisibilityTimeout=seconds
            )

    def _send(self, message: DoorbellMessage) -> None:
        with mapped_errors("ring"):
            self._client.send_message(
                QueueUrl=self._queue_url,
                MessageGroupId=message.group,
                MessageDeduplicationId=message.deduplication_id,
                MessageBody=message.body,
            )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
