"""The archivist: a batch of messages in, those that have to come again out.

It looks after what is kept for long: erases sessions, puts away the working memory of those that
rest, and rolls single records of the transcript into segments.
"""

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from turnfold.application.drain_batch import FailedKnock, back_off
from turnfold.application.ringing import postpone_gently
from turnfold.bootstrap import Turnfold

logger = logging.getLogger("turnfold")

MARGIN_SECONDS = 20.0
"""Time that is kept to finish the step under way; each of them takes a few calls."""


@cache
def service() -> Turnfold:
    """The service, made at the first batch."""
    made = Turnfold()
    made.configure_logs()
    return made


def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Tend the sessions that a batch rings for."""
    records = {record["messageId"]: record for record in event["Records"]}
    knocks = [
        service().read_archive_knock(
            record["messageId"],
            record["body"],
            int((record.get("attributes") or {}).get("ApproximateReceiveCount", "1")),
        )
        for record in records.values()
    ]

    def seconds_left() -> float:
        return context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS

    try:
        failed = service().tend(knocks, seconds_left)
    except Exception:
        # Lambda would log the error's text, which may be a user's, and repeat the batch anyway.
        logger.exception("batch failed", extra={"code": "BATCH_FAILED"})
        failed = tuple(
            FailedKnock(knock.message_id, back_off(knock.receive_count)) for knock in knocks
        )
    for one in failed:
        receipt = records[one.message_id]["receiptHandle"]
        postpone_gently(service().archive_bell, receipt, one.back_off)
    return {"batchItemFailures": [{"itemIdentifier": one.message_id} for one in failed]}
