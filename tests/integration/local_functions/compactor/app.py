"""A stand-in for the compactor: writes down its batches and fails as the messages say."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Note the batch; a body names what should happen to its message."""
    started = time.time()
    failures = []
    for record in event["Records"]:
        body = json.loads(record["body"])
        time.sleep(body.get("seconds", 0))
        if body.get("do") == "fail":
            failures.append({"itemIdentifier": record["messageId"]})
        if (
            body.get("do") == "retry-soon"
            and record["attributes"]["ApproximateReceiveCount"] == "1"
        ):
            failures.append({"itemIdentifier": record["messageId"]})
            boto3.client("sqs").change_message_visibility(
                QueueUrl=os.environ["TURNFOLD_QUEUE_URL"],
                ReceiptHandle=record["receiptHandle"],
                VisibilityTimeout=0,
            )
    note = {
        "started": started,
        "ended": time.time(),
        "records": event["Records"],
        "left": context.get_remaining_time_in_millis(),
    }
    with Path(os.environ["TURNFOLD_TEST_NOTES"]).open("a", encoding="utf-8") as notes:
        notes.write(json.dumps(note) + "\n")
    if any(json.loads(record["body"]).get("do") == "raise" for record in event["Records"]):
        raise RuntimeError("the batch failed")
    return {"batchItemFailures": failures}
