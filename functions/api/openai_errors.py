"""Refusals in OpenAI's shape, for the routes that its clients talk to."""

from typing import Any

from api.problems import RefusedError, problem_of
from api.replies import Reply
from turnfold.domain import errors

TOO_MANY = 429
FAILED_UPSTREAM = 424
SERVER_ERROR = 500

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    409: "conflict_error",
    FAILED_UPSTREAM: "upstream_error",
    TOO_MANY: "rate_limit_error",
}


def openai_refused(error: Exception, request_id: str) -> Reply:
    """The refusal, with the code and the detail that a problem document would have.

    What the endpoint said about the caller's own request is given with its words and its status.
    """
    if isinstance(error, errors.ModelRefusedError):
        return _by_the_endpoint(error, request_id)
    problem = problem_of(error, request_id)
    more = ("upstream_status", "needed", "budget")
    document = {
        "message": problem.document["detail"],
        "type": _type(problem.status),
        "code": problem.document["code"],
        "param": _parameter(error),
        "request_id": request_id,
        **{name: problem.document[name] for name in more if name in problem.document},
    }
    headers = dict(problem.headers)
    if isinstance(error, errors.ModelFailedError) and error.passing:
        # The official client tries again by itself where it is told so.
        headers["X-Should-Retry"] = "true"
    return Reply(problem.status, {"error": document}, headers)


def _by_the_endpoint(error: errors.ModelRefusedError, request_id: str) -> Reply:
    said, status = error.refusal, error.status or FAILED_UPSTREAM
    document = {
        "message": said.message,
        "type": said.kind or _type(status),
        "code": said.code or ("throttled" if status == TOO_MANY else "model_failed"),
        "param": said.param,
        "request_id": request_id,
        "upstream_status": error.status,
    }
    retry_after = said.retry_after or ("1" if status == TOO_MANY else None)
    return Reply(status, {"error": document}, {"Retry-After": retry_after} if retry_after else {})


def _type(status: int) -> str:
    usual = "invalid_request_error" if status < SERVER_ERROR else "server_error"
    return _TYPES.get(status, usual)


def _parameter(error: Exception) -> Any:  # noqa: ANN401 - a text or nothing
    if isinstance(error, errors.InvalidMessagesError):
        return error.errors[0][0]
    if isinstance(error, errors.BudgetTooSmallError):
        return "max_context_tokens"
    return error.parameter if isinstance(error, RefusedError) else None
