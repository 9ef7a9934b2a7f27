"""AWS clients for the functions: made when first needed, with patience that fits a Lambda."""

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sts import STSClient

CONNECT_SECONDS = 1
READ_SECONDS = 5
"""A call that takes longer has failed; three attempts end within the 29 seconds of API Gateway."""

ATTEMPTS = 3
CONNECTIONS = 10
"""Per client: a request and the parallel reads of large turns (`large_turns.ARCHIVE_THREADS`)."""


class AwsClients:
    """One client for each service.

    Region, credentials and endpoints come from the environment (`AWS_ENDPOINT_URL` for an
    emulator). A client takes some tenths of a second to make, so a request that needs no S3 does
    not wait for it. Clients are made by botocore directly: boto3's own layer adds nothing to them
    but its import.
    """

    def __init__(self) -> None:
        """Make nothing yet."""
        self._lock = threading.RLock()

    @cached_property
    def dynamodb(self) -> "DynamoDBClient":
        """DynamoDB."""
        client: DynamoDBClient = self._make("dynamodb")
        return client

    @cached_property
    def s3(self) -> "S3Client":
        """S3."""
        client: S3Client = self._make("s3")
        return client

    @cached_property
    def sqs(self) -> "SQSClient":
        """SQS."""
        client: SQSClient = self._make("sqs")
        return client

    @cached_property
    def secretsmanager(self) -> "SecretsManagerClient":
        """Secrets Manager."""
        client: SecretsManagerClient = self._make("secretsmanager")
        return client

    @cached_property
    def sts(self) -> "STSClient":
        """STS."""
        client: STSClient = self._make("sts")
        return client

    @property
    def loader(self) -> Any:  # noqa: ANN401 - botocore has no types here
        """What reads descriptions of services, and keeps them."""
        return self._session.get_component("data_loader")

    @cached_property
    def _session(self) -> Any:  # noqa: ANN401 - botocore has no types here
        import botocore.session

        return botocore.session.get_session()

    def _make(self, service: str) -> Any:  # noqa: ANN401 - one type per service
        from botocore.config import Config

        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            max_pool_connections=CONNECTIONS,
            tcp_keepalive=True,
        )
        with self._lock:  # making clients is not thread-safe
            return self._session.create_client(service, config=config)
