"""AWS clients with credentials that reach one tenant's data."""

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

from turnfold.adapters.aws_clients import AwsClients
from turnfold.adapters.tenant_policy import tenant_policy

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sqs import SQSClient

CREDENTIALS_SECONDS = 3600
"""The longest that STS gives to a role that assumes a role."""


class TenantClients(AwsClients):
    """DynamoDB and S3 by the tenant's own credentials; everything else by those of the function.

    Credentials are fetched when a client makes its first call and renewed before they end, so an
    error of STS shows as an error of that call.
    """

    def __init__(
        self, function: AwsClients, tenant: str, role_arn: str, table_arn: str, bucket_arn: str
    ) -> None:
        """`role_arn` names the role that is narrowed. Raises `InvalidIdError` (`tenant_policy`)."""
        super().__init__()
        self._function = function
        self._tenant = tenant
        self._role_arn = role_arn
        self._policy = tenant_policy(tenant, table_arn, bucket_arn)

    @property
    def sqs(self) -> "SQSClient":
        """SQS: a doorbell carries no data, and a queue has no part of a tenant's own."""
        return self._function.sqs

    @property
    def secretsmanager(self) -> "SecretsManagerClient":
        """Secrets Manager."""
        return self._function.secretsmanager

    @cached_property
    def _session(self) -> Any:  # noqa: ANN401 - botocore has no types here
        import botocore.session
        from botocore.credentials import DeferredRefreshableCredentials

        session: Any = botocore.session.get_session()
        # Credentials that renew themselves are given in no other way.
        session._credentials = DeferredRefreshableCredentials(  # noqa: SLF001 - see above
            refresh_using=self._assume, method="assume-role"
        )
        # Descriptions of services are large; all sessions read them through one cache.
        session.register_component("data_loader", self._function.loader)
        return session

    def _assume(self) -> dict[str, str]:
        answer = self._function.sts.assume_role(
            RoleArn=self._role_arn,
            # Shows in CloudTrail; a tenant's name may have characters that are not allowed there.
            RoleSessionName=f"tenant-{hashlib.sha256(self._tenant.encode()).hexdigest()[:32]}",
            Policy=self._policy,
            DurationSeconds=CREDENTIALS_SECONDS,
        )
        credentials = answer["Credentials"]
        return {
            "access_key": credentials["AccessKeyId"],
            "secret_key": credentials["SecretAccessKey"],
            "token": credentials["SessionToken"],
            "expiry_time": credentials["Expiration"].isoformat(),
        }
