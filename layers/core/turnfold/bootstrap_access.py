"""The composition root of access: API keys, tokens and peppers.

Apart from `bootstrap`, so that the authorizer, which every request waits for, loads none of the
memory's code, and so that an operator's command line can do the same with other clients.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from turnfold.adapters.aws_clients import AwsClients
from turnfold.adapters.dynamo_api_keys import DynamoKeyStore
from turnfold.adapters.json_logs import configure_logs
from turnfold.adapters.secret_peppers import SecretPeppers
from turnfold.application.identify_caller import ClaimNames, IdentifyCaller

if TYPE_CHECKING:
    from turnfold.adapters.operator_clients import OperatorClients
    from turnfold.application.api_keys import ApiKeys
    from turnfold.application.ports.access import TokenReader


def utc_now() -> datetime:
    """The time now."""
    return datetime.now(UTC)


class Access:
    """Who may call, configured by environment variables."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Read the configuration; nothing is connected yet."""
        self._env = os.environ if environment is None else environment

    def configure_logs(self) -> None:
        """Write the log as JSON lines, from the level that `POWERTOOLS_LOG_LEVEL` names."""
        configure_logs(self._env.get("POWERTOOLS_LOG_LEVEL", "INFO").upper())

    @cached_property
    def identify(self) -> IdentifyCaller:
        """Telling who holds a credential."""
        clients = AwsClients()
        return IdentifyCaller(
            DynamoKeyStore(clients.dynamodb, self._env["TURNFOLD_KEY_TABLE"]),
            SecretPeppers(lambda: clients.secretsmanager, self._env["TURNFOLD_PEPPER_SECRET"]),
            utc_now,
            self._tokens,
            ClaimNames(
                self._env.get("TURNFOLD_JWT_TENANT_CLAIM") or "tenant",
                self._env.get("TURNFOLD_JWT_SCOPES_CLAIM") or "scope",
                self._env.get("TURNFOLD_JWT_SCOPE_PREFIX") or "",
            ),
            self._env.get("TURNFOLD_JWT_USAGE_KEY") or None,
        )

    @cached_property
    def _tokens(self) -> "TokenReader | None":
        issuer = self._env.get("TURNFOLD_JWT_ISSUER")
        if not issuer:
            return None
        from turnfold.adapters.jwks import KeySet
        from turnfold.adapters.jwt_tokens import JwtTokens

        url = self._env.get("TURNFOLD_JWT_JWKS_URL") or jwks_url(issuer)
        return JwtTokens(issuer, self._env["TURNFOLD_JWT_AUDIENCE"], KeySet(url))


def jwks_url(issuer: str) -> str:
    """Where an issuer usually has its keys."""
    return f"{issuer.rstrip('/')}/.well-known/jwks.json"


def operator_clients() -> "OperatorClients":
    """AWS clients with the credentials, region and profile of whoever runs the program."""
    from turnfold.adapters.operator_clients import OperatorClients

    return OperatorClients()


def key_administration(
    clients: "OperatorClients",
    table: str,
    pepper_secret: str,
    usage_plan: str | None,
    prefix: str,
) -> "ApiKeys":
    """API keys by hand, with an operator's clients.

    `prefix` begins the names of the keys in the usage plan.
    """
    from turnfold.adapters.usage_plan import UsagePlan
    from turnfold.application.api_keys import ApiKeys

    return ApiKeys(
        DynamoKeyStore(clients.dynamodb, table),
        SecretPeppers(lambda: clients.secretsmanager, pepper_secret),
        utc_now,
        UsagePlan(clients.apigateway, usage_plan, prefix) if usage_plan else None,
    )
