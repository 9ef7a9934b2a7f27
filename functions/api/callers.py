"""Who calls: told by the authorizer in front, or by the key file of the local stack."""

from collections.abc import Mapping
from typing import Any

from api.problems import RefusedError
from api.requests import header_values
from turnfold.application.ports.callers import Caller, KeyRing


def identify(event: Mapping[str, Any], keys: KeyRing | None) -> Caller:
    """The caller. The tenant comes from the credential and from nothing else.

    What an authorizer found out stands in the request's context, which no client can write. Raises
    `RefusedError` (401).
    """
    authorized = (event.get("requestContext") or {}).get("authorizer") or {}
    tenant = authorized.get("tenant_id")
    if isinstance(tenant, str) and tenant:
        return Caller(tenant, frozenset(str(authorized.get("scopes") or "").split()))
    token = _bearer_token(event)
    caller = keys.identify(token) if token and keys else None
    if caller is None:
        raise RefusedError(
            401,
            "unauthorized",
            "send a good API key, as in the header: Authorization: Bearer <api key>",
            {"WWW-Authenticate": "Bearer"},
        )
    return caller


def require_scope(caller: Caller, scope: str) -> None:
    """Raise `RefusedError` (403) unless the caller's key has the scope."""
    if scope not in caller.scopes:
        raise RefusedError(403, "forbidden", f"use an API key with the scope {scope}")


def _bearer_token(event: Mapping[str, Any]) -> str | None:
    """The token, if exactly one was sent."""
    values = header_values(event, "authorization")
    words = values[0].split() if len(values) == 1 else []
    if len(words) != 2 or words[0].lower() != "bearer":  # noqa: PLR2004 - scheme and token
        return None
    return words[1]
