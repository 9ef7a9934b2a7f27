"""Every refusal as a problem document (RFC 9457), from one table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from turnfold.domain import errors

JSON_PROBLEM = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Kind:
    """How an error is shown. Its own text is the detail, unless one is given here."""

    status: int
    code: str
    title: str
    detail: str = ""


KINDS: Mapping[type[Exception], Kind] = {
    errors.BadJsonError: Kind(400, "bad_json", "The body is not usable JSON"),
    errors.InvalidMessagesError: Kind(422, "invalid_messages", "The messages are not valid"),
    errors.IncompleteTurnError: Kind(422, "incomplete_turn", "The turn is not finished"),
    errors.InvalidImportError: Kind(422, "invalid_import", "Nothing of the import can be taken"),
    errors.InvalidIdError: Kind(422, "invalid_session_id", "The session id is not valid"),
    errors.InvalidSettingsError: Kind(422, "invalid_settings", "The settings are not valid"),
    errors.InvalidPolicyError: Kind(422, "invalid_policy", "The policy is not valid"),
    errors.InvalidPinError: Kind(422, "invalid_pin", "The pin is not valid"),
    errors.InvalidCursorError: Kind(422, "invalid_cursor", "The cursor is not valid"),
    errors.BudgetTooSmallError: Kind(422, "budget_too_small", "The budget is too small"),
    errors.IdempotencyMismatchError: Kind(
        422, "idempotency_mismatch", "The Idempotency-Key belongs to another request"
    ),
    errors.UserMismatchError: Kind(422, "user_mismatch", "The session belongs to another user"),
    errors.TurnTooLargeError: Kind(413, "turn_too_large", "The turn is too large"),
    errors.ContextTooLargeError: Kind(413, "context_too_large", "The answer is too large"),
    errors.SessionNotFoundError: Kind(404, "session_not_found", "Session not found"),
    errors.TurnNotFoundError: Kind(404, "turn_not_found", "Turn not found"),
    errors.UserNotFoundError: Kind(404, "user_not_found", "User not found"),
    errors.ErasureNotFoundError: Kind(404, "erasure_not_found", "Erasure not found"),
    errors.PinNotFoundError: Kind(404, "pin_not_found", "Pin not found"),
    errors.OpenTurnNotFoundError: Kind(404, "open_turn_not_found", "Open turn not found"),
    errors.CommitConflictError: Kind(409, "commit_conflict", "Other writers were faster"),
    errors.SessionErasingError: Kind(409, "session_erasing", "The session is being erased"),
    errors.SessionExistsError: Kind(409, "session_exists", "The session exists already"),
    errors.LegalHoldError: Kind(409, "legal_hold", "The session is under a legal hold"),
    errors.PinFoldedError: Kind(409, "pin_folded", "The pin was folded into another"),
    errors.StaleEtagError: Kind(412, "stale_etag", "If-Match does not hold"),
    errors.ModelFailedError: Kind(424, "model_failed", "The model failed"),
    errors.ModelNotConfiguredError: Kind(424, "model_not_configured", "No model is set up"),
    errors.ThrottledError: Kind(
        429, "throttled", "Too many requests", "wait for as long as Retry-After says, then repeat"
    ),
    errors.StoreError: Kind(
        503,
        "store_unavailable",
        "The store does not answer",
        "wait for as long as Retry-After says, then repeat with the same Idempotency-Key",
    ),
    errors.VectorsUnavailableError: Kind(
        503,
        "vectors_unavailable",
        "The search by meaning is not ready",
        "search with mode keyword, or wait for as long as Retry-After says and repeat",
    ),
    # For errors that have no line of their own.
    errors.InvalidInputError: Kind(422, "invalid_input", "The request is not valid"),
    errors.NotFoundError: Kind(404, "not_found", "Not found"),
    errors.ConflictError: Kind(409, "conflict", "The state does not allow it now"),
}
INTERNAL = Kind(
    500,
    "internal_error",
    "Something went wrong here",
    "this is a fault of the service; name the request_id to whoever runs it",
)

_RETRY_SECONDS: Mapping[type[Exception], int] = {
    errors.CommitConflictError: 1,
    errors.SessionErasingError: 5,
    errors.StoreError: 1,
}


class RefusedError(Exception):
    """A refusal of the edge itself: of a credential, a route or a parameter."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        *,
        parameter: str | None = None,
    ) -> None:
        """Refuse with a status and a code of `TITLES`; the detail says what to change."""
        super().__init__(detail)
        self.kind = Kind(status, code, TITLES[code])
        self.headers = headers or {}
        self.parameter = parameter


TITLES = {
    "unauthorized": "A good API key is needed",
    "forbidden": "The API key does not allow this",
    "not_found": "There is no such route",
    "method_not_allowed": "The route has no such method",
    "invalid_body": "The body is not valid",
    "invalid_parameter": "A parameter is not valid",
    "invalid_user_id": "The user id is not valid",
    "invalid_metadata": "The metadata is not valid",
    "invalid_idempotency_key": "The Idempotency-Key is not valid",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem document with the headers that go with it."""

    status: int
    document: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


def problem_of(error: Exception, request_id: str) -> Problem:
    """The problem for an error; for one that nobody expected, the internal error."""
    if isinstance(error, RefusedError):
        return _problem(error.kind, str(error), request_id, headers=error.headers)
    kind = _nearest(KINDS, error)
    if kind is None:
        return _problem(INTERNAL, INTERNAL.detail, request_id)
    seconds = _nearest(_RETRY_SECONDS, error)
    return _problem(
        kind,
        kind.detail or str(error),
        request_id,
        headers={} if seconds is None else {"Retry-After": str(seconds)},
        members=_members(error),
    )


def _nearest[Value](table: Mapping[type[Exception], Value], error: Exception) -> Value | None:
    return next((table[kind] for kind in type(error).__mro__ if kind in table), None)


def _members(error: Exception) -> dict[str, Any]:
    if isinstance(error, errors.InvalidMessagesError):
        return {"errors": [{"loc": loc, "msg": msg} for loc, msg in error.errors]}
    if isinstance(error, errors.BudgetTooSmallError):
        return {"needed": error.needed, "budget": error.budget}
    if isinstance(error, errors.ModelFailedError):
        return {"upstream_status": error.status}
    return {}


def _problem(
    kind: Kind,
    detail: str,
    request_id: str,
    *,
    headers: Mapping[str, str] | None = None,
    members: Mapping[str, Any] | None = None,
) -> Problem:
    document = {
        "type": f"/problems/{kind.code}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "code": kind.code,
        "request_id": request_id,
        **(members or {}),
    }
    return Problem(kind.status, document, headers or {})
