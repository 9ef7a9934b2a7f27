"""What AWS answers when it does not do as asked, as errors of the domain. The one place for it.

    throttled                                ThrottledError, after the client's own retries
    no answer, timeout, 5xx                  StoreUnavailableError, after the client's own retries
    a condition did not hold                 GuardFailedError with the parts that failed
    another transaction was at the item      tried again here, then ThrottledError
    anything else (refused, denied, absent)  StoreError: trying again will not help

The texts name operations and codes of AWS, never anything that a user wrote.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from turnfold.domain.errors import (
    GuardFailedError,
    StoreError,
    StoreUnavailableError,
    ThrottledError,
)

type Sleep = Callable[[float], None]

CONFLICT_ATTEMPTS = 6
"""boto3 does not retry a cancelled transaction. Two writers of one session meet for milliseconds,
so a few attempts within a second are enough."""

CONFLICT_PAUSE_SECONDS = 0.02
"""Longest first pause; it doubles with each attempt."""

_SERVER_ERROR = 500
_THROTTLED = frozenset(
    {
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_UNAVAILABLE = frozenset({"RequestTimeout", "RequestTimeoutException", "ServiceUnavailable"})
_CONFLICTS = frozenset(
    {
        "ReplicatedWriteConflictException",
        "TransactionConflict",
        "TransactionConflictException",
    }
)
_IN_PROGRESS = "TransactionInProgressException"
_CONDITION_FAILED = frozenset({"ConditionalCheckFailed", "ConditionalCheckFailedException"})


@contextmanager
def mapped_errors(operation: str) -> Iterator[None]:
    """Turn an error of the AWS client into one of the domain; `operation` names it in the text."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise domain_error(error, operation) from _harmless(error)


def domain_error(error: ClientError | BotoCoreError, operation: str) -> StoreError:
    """The domain's error for one of the AWS client."""
    if isinstance(error, ParamValidationError):
        return StoreError(f"{operation}: a parameter is not valid")
    if not isinstance(error, ClientError):
        return StoreUnavailableError(f"{operation}: {type(error).__name__}")
    codes = error_codes(error)
    text = f"{operation}: {', '.join(codes)}"
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if _THROTTLED.intersection(codes):
        return ThrottledError(text)
    if status >= _SERVER_ERROR or _UNAVAILABLE.intersection(codes):
        return StoreUnavailableError(text)
    return StoreError(text)


def error_codes(error: ClientError) -> tuple[str, ...]:
    """The codes of an error; of a cancelled transaction those of its parts, in order."""
    reasons = error.response.get("CancellationReasons")
    if reasons:
        return tuple(reason.get("Code", "None") for reason in reasons)
    return (error.response.get("Error", {}).get("Code", "Unknown"),)


def guarded_write(
    call: Callable[[str], object], parts: Sequence[str], sleep: Sleep = time.sleep
) -> None:
    """Make a conditional write of one or more parts.

    `call` is given a token that is the same only where DynamoDB must recognise a repetition: while
    an earlier attempt may still be at work. `parts` names the operations in order.

    Raises `GuardFailedError` naming the parts whose condition did not hold, and what
    `domain_error` says. A conflict with another transaction is tried again, then `ThrottledError`.
    """
    token = str(uuid4())
    for attempt in range(CONFLICT_ATTEMPTS):
        try:
            call(token)
        except ClientError as error:
            codes = error_codes(error)
            failed = [
                part for part, code in zip(parts, codes, strict=False) if code in _CONDITION_FAILED
            ]
            if failed:
                raise GuardFailedError(*failed) from None
            if not _CONFLICTS.intersection(codes) and _IN_PROGRESS not in codes:
                raise domain_error(error, "write") from error
            if _IN_PROGRESS not in codes:
                token = str(uuid4())
        except BotoCoreError as error:
            raise domain_error(error, "write") from _harmless(error)
        else:
            return
        sleep(random.uniform(0, CONFLICT_PAUSE_SECONDS * 2**attempt))  # noqa: S311 - jitter
    raise ThrottledError("write: other writes to the same session were faster")


def _harmless(error: Exception) -> Exception | None:
    """The error as a cause to show in a log; none where its text repeats a parameter's value."""
    return None if isinstance(error, ParamValidationError) else error
