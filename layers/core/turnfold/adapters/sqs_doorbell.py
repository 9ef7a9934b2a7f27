"""The doorbell as a message of an SQS FIFO queue in high-throughput mode.

One message group for each session gives one compactor per session at a time, in order. The
deduplication id is the ring's own: a constant one, or one made of the content, would swallow rings
for five minutes (design, section 5).
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from turnfold.adapters.aws_errors import mapped_errors
from turnfold.domain.errors import InvalidDoorbellError
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

BODY_VERSION = 1
_DEDUPLICATION_ID = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")
"""What SQS takes. Emulators take anything, so nothing but this keeps to it."""


@dataclass(frozen=True, slots=True)
class Ring:
    """A session to look at, and the newest turn that the ringer knew."""

    key: SessionKey
    turn: int
    forced: bool = False


@dataclass(frozen=True, slots=True)
class DoorbellMessage:
    """One ring as a FIFO queue takes it."""

    group: str
    deduplication_id: str
    body: str


def doorbell_message(ring: Ring, ring_id: str) -> DoorbellMessage:
    """The message for one ring.

    The group is a hash, since ids may have characters and lengths that SQS refuses; a ring id is
    one only where it has to be.
    """
    key = ring.key
    body = {"v": BODY_VERSION, "tenant": key.tenant, "session": key.session_id, "turn": ring.turn}
    if ring.forced:
        body["forced"] = True
    return DoorbellMessage(
        group=_sha256(json.dumps([key.tenant, key.session_id])),
        deduplication_id=ring_id if _DEDUPLICATION_ID.fullmatch(ring_id) else _sha256(ring_id),
        body=json.dumps(body, ensure_ascii=False, separators=(",", ":")),
    )


def parse_doorbell(body: str) -> Ring:
    """The ring that a message's body tells of.

    Raises `InvalidDoorbellError` for a body that `doorbell_message` did not write.
    """
    try:
        said = json.loads(body)
        version, tenant, session, turn = (said[name] for name in ("v", "tenant", "session", "turn"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidDoorbellError("not a doorbell's message") from None
    texts = isinstance(tenant, str) and isinstance(session, str)
    if version != BODY_VERSION or not texts or type(turn) is not int:
        raise InvalidDoorbellError("not a doorbell's message")
    return Ring(SessionKey(tenant, session), turn, forced=said.get("forced") is True)


class SqsDoorbell:
    """A `Doorbell`; one SendMessage for each ring."""

    def __init__(self, client: "SQSClient", queue_url: str) -> None:
        """Ring at the FIFO queue of that address."""
        self._client = client
        self._queue_url = queue_url

    def ring(self, key: SessionKey, ring_id: str, turn: int, *, forced: bool = False) -> None:
        """See `Doorbell`."""
        message = doorbell_message(Ring(key, turn, forced), ring_id)
        with mapped_errors("ring"):
            self._client.send_message(
                QueueUrl=self._queue_url,
                MessageGroupId=message.group,
                MessageDeduplicationId=message.deduplication_id,
                MessageBody=message.body,
            )

    def postpone(self, receipt: str, seconds: int) -> None:
        """See `Doorbell`; one ChangeMessageVisibility."""
        with mapped_errors("postpone"):
            self._client.change_message_visibility(
                QueueUrl=self._queue_url, ReceiptHandle=receipt, VisibilityTimeout=seconds
            )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
