"""The authorizer: a credential in, a policy and who it is out.

API Gateway keeps the answer for as long as the template says and asks again only then. So the
policy covers the whole stage, not the one method that was called first; which scope a method needs
is checked by the API's own function.
"""

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from turnfold.application.ports.access import Identity
from turnfold.bootstrap_access import Access

STAGE_PARTS = 2
LONGEST = 8200
"""Characters of a header that are looked at: the longest token, and its scheme."""

logger = logging.getLogger("turnfold")


@cache
def access() -> Access:
    """Made at the first request."""
    made = Access()
    made.configure_logs()
    return made


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Say who holds the token of a `TOKEN` event.

    Nobody gets a policy that denies, which API Gateway answers by 401 and keeps, too: a flood of
    one bad key is cheap. An error means that it cannot be told now, and is answered by 503.
    """
    credential = bearer_token(event.get("authorizationToken"))
    try:
        identity = access().identify(credential) if credential else None
    except Exception as error:
        # What Lambda would log of it could hold what was sent; these logs show types and places.
        extra = {"code": "AUTHORIZER_FAILED", "reason": type(error).__name__}
        logger.exception("cannot tell who calls", extra=extra)
        raise RuntimeError("cannot tell who calls") from None
    return answer(identity, event["methodArn"])


def bearer_token(header: object) -> str | None:
    """The token of an `Authorization: Bearer` header."""
    if not isinstance(header, str) or len(header) > LONGEST:
        return None
    words = header.split()
    if len(words) != 2 or words[0].lower() != "bearer":  # noqa: PLR2004 - scheme and token
        return None
    return words[1]


def answer(identity: Identity | None, method_arn: str) -> dict[str, Any]:
    """What API Gateway is told: a policy for the whole stage, and the caller for the API."""
    stage = "/".join(method_arn.split("/")[:STAGE_PARTS])
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Action": "execute-api:Invoke",
                "Effect": "Deny" if identity is None else "Allow",
                "Resource": f"{stage}/*",
            }
        ],
    }
    if identity is None:
        return {"principalId": "nobody", "policyDocument": policy}
    told = {
        "principalId": identity.credential,
        "policyDocument": policy,
        "context": {
            "tenant_id": identity.tenant,
            "scopes": " ".join(sorted(identity.scopes)),
            "key_id": identity.credential,
        },
    }
    return told if identity.usage_key is None else told | {"usageIdentifierKey": identity.usage_key}
