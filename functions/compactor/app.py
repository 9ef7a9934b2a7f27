"""The compactor: a batch of doorbell messages in, the failed ones out."""

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from turnfold.application.drain_batch import FailedKnock, Knock, back_off
from turnfold.application.ringing import postpone_gently
from turnfold.bootstrap import Turnfold

logger = logging.getLogger("turnfold")


@cache
def service() -> Turnfold:
    """The service, made at the first batch."""
    made = Turnfold()
    made.configure_logs()
    return made


def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Compact the sessions that a batch rings for; name the messages that have to come again."""
    records = {record["messageId"]: record for record in event["Records"]}
    knocks = [_knock(record) for record in records.values()]
    try:
        failed = service().drain(knocks, lambda: context.get_remaining_time_in_millis() / 1000)
    except Exception:
        # Lambda would log the error's text, which may be a user's, and repeat the batch anyway.
        logger.exception("batch failed", extra={"code": "BATCH_FAILED"})
        failed = tuple(
            FailedKnock(knock.message_id, back_off(knock.receive_count)) for knock in knocks
        )
    for one in failed:
        receipt = records[one.message_id]["receiptHandle"]
        postpone_gently(service().doorbell, receipt, one.back_off)
    return {"batchItemFailures": [{"itemIdentifier": one.message_id} for one in failed]}


def _knock(record: Mapping[str, Any]) -> Knock:
    received = (record.get("attributes") or {}).get("ApproximateReceiveCount", "1")
    return service().read_knock(record["messageId"], record["body"], int(received))
