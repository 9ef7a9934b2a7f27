"""The sweeper: on a schedule, rings the doorbells that were lost."""

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from turnfold.bootstrap import Turnfold
from turnfold.domain.errors import StoreError

logger = logging.getLogger("turnfold")

MARGIN_SECONDS = 5.0
"""Time that is kept to finish what is under way."""


@cache
def service() -> Turnfold:
    """The service, made at the first sweep."""
    made = Turnfold()
    made.configure_logs()
    return made


def handler(_event: Mapping[str, Any], context: LambdaContext) -> dict[str, int]:
    """One pass; the next one sees what this one could not do."""

    def seconds_left() -> float:
        return context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS

    try:
        report = service().sweep(seconds_left)
    except StoreError as error:
        logger.error("sweep failed", extra={"code": "SWEEP_FAILED", "reason": str(error)})  # noqa: TRY400 - the reason says it all
        return {"rung": 0, "failed": 1}
    return {"rung": report.rung, "failed": report.failed}
