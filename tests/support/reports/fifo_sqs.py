"""An SQS client over the reference model of a FIFO queue, as strict as SQS with ids and sizes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from support.reports.aws_gate import AwsGate, raise_fault

if TYPE_CHECKING:
    from support.fifo_queue import InMemoryFifoQueue

_ID = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")
MAX_MESSAGE_BYTES = 262_144


class ReferenceSqs:
    """The calls that the service makes, by queue URL."""

    def __init__(self, gate: AwsGate, queues: dict[str, InMemoryFifoQueue]) -> None:
        self._gate = gate
        self._queues = queues
        self.sent: list[dict[str, Any]] = []

    def send_message(self, **given: str) -> dict[str, Any]:
        group, deduplication_id = given["MessageGroupId"], given["MessageDeduplicationId"]
        url, body = given["QueueUrl"], given["MessageBody"]
        assert _ID.fullmatch(group), "SQS refuses this message group id"
        assert _ID.fullmatch(deduplication_id), "SQS refuses this deduplication id"
        assert len(body.encode()) <= MAX_MESSAGE_BYTES, "SQS refuses a body of this size"

        def send() -> dict[str, Any]:
            message = self._queues[url].send(group, deduplication_id, body)
            self.sent.append(
                {"queue": url, "group": group, "deduplication_id": deduplication_id, "body": body}
            )
            return {"MessageId": message}

        answer: dict[str, Any] = self._gate.pass_on("sqs", "SendMessage", body, send, raise_fault)
        return answer

    def change_message_visibility(self, **given: Any) -> dict[str, Any]:
        def change() -> dict[str, Any]:
            queue = self._queues[given["QueueUrl"]]
            queue.change_visibility(given["ReceiptHandle"], given["VisibilityTimeout"])
            return {}

        answer: dict[str, Any] = self._gate.pass_on(
            "sqs", "ChangeMessageVisibility", "", change, raise_fault
        )
        return answer
