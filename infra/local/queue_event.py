"""A batch of queue messages as the event of Lambda's SQS event source, and its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.settings import REGION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_sqs.type_defs import MessageTypeDef


def queue_event(messages: Sequence[MessageTypeDef], queue_arn: str) -> dict[str, Any]:
    """Build the event for one batch."""
    return {"Records": [_record(message, queue_arn) for message in messages]}


def failed_messages(result: Any, message_ids: Sequence[str]) -> set[str]:
    """Which messages of a batch have to be delivered again, as Lambda reads the answer.

    No answer, an empty one and an empty list mean success. An answer that Lambda cannot read (an
    identifier that is missing, empty or not of this batch) means that the whole batch failed.
    """
    if result is None or result == {}:
        return set()
    everything = set(message_ids)
    if not isinstance(result, dict):
        return everything
    failures = result.get("batchItemFailures")
    if failures is None:
        return set()
    if not isinstance(failures, list):
        return everything
    failed = set()
    for failure in failures:
        identifier = failure.get("itemIdentifier") if isinstance(failure, dict) else None
        if not isinstance(identifier, str) or identifier not in everything:
            return everything
        failed.add(identifier)
    return failed


def _record(message: MessageTypeDef, queue_arn: str) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message.get("Body", ""),
        "attributes": dict(message.get("Attributes") or {}),
        "messageAttributes": {
            name: {
                "stringValue": value.get("StringValue"),
                "binaryValue": value.get("BinaryValue"),
                "dataType": value["DataType"],
                "stringListValues": [],
                "binaryListValues": [],
            }
            for name, value in (message.get("MessageAttributes") or {}).items()
        },
        "md5OfBody": message.get("MD5OfBody", ""),
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": REGION,
    }
