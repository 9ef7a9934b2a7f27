"""Emulated AWS services for tests: the resources of the template, and a count of the calls."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.local.definitions import Definitions
from infra.local.settings import LOCAL_PARAMETERS
from turnfold.adapters.aws_clients import AwsClients

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

TEMPLATE = Path(__file__).resolve().parents[2] / "template.yaml"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@dataclass(frozen=True, slots=True)
class Services:
    """Clients, as the functions make them, and the resources that they use."""

    dynamodb: DynamoDBClient
    s3: S3Client
    sqs: SQSClient
    table: str
    bucket: str
    queue_url: str
    archive_queue_url: str = ""

    @contextlib.contextmanager
    def counted_calls(self) -> Iterator[Counter[str]]:
        """The HTTP requests that are sent meanwhile, retries included, by operation."""
        calls: Counter[str] = Counter()

        def note(event_name: str, **_: object) -> None:
            calls[event_name.rpartition(".")[2]] += 1

        clients = (self.dynamodb, self.s3, self.sqs)
        for client in clients:
            client.meta.events.register("before-send.*.*", note)
        try:
            yield calls
        finally:
            for client in clients:
                client.meta.events.unregister("before-send.*.*", note)


@contextlib.contextmanager
def aws_environment(endpoint: str | None) -> Iterator[None]:
    """Made-up credentials, and the emulator's endpoint, in the environment."""
    wanted = ENVIRONMENT | ({"AWS_ENDPOINT_URL": endpoint} if endpoint else {})
    before = {name: os.environ.get(name) for name in (*ENVIRONMENT, "AWS_ENDPOINT_URL")}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def make_services(endpoint: str | None, parameters: Mapping[str, str] | None = None) -> Services:
    """The table and the bucket of the template, and its queue without the delay."""
    with aws_environment(endpoint):
        clients = AwsClients()
        dynamodb, s3, sqs = clients.dynamodb, clients.s3, clients.sqs
    definition = Definitions.load(TEMPLATE, {**LOCAL_PARAMETERS, **(parameters or {})})
    create_table(dynamodb, definition)
    s3.create_bucket(Bucket="transcripts")
    versioning: Any = definition.properties("TranscriptBucket")["VersioningConfiguration"]
    s3.put_bucket_versioning(Bucket="transcripts", VersioningConfiguration=versioning)
    queue = definition.properties("CompactionQueue")
    attributes: Any = {
        name: str(queue[name]).lower() if isinstance(queue[name], bool) else str(queue[name])
        for name in (
            "FifoQueue",
            "ContentBasedDeduplication",
            "DeduplicationScope",
            "FifoThroughputLimit",
        )
    }
    url = sqs.create_queue(QueueName="doorbells.fifo", Attributes=attributes)["QueueUrl"]
    archive_url = sqs.create_queue(QueueName="archive.fifo", Attributes=attributes)["QueueUrl"]
    return Services(dynamodb, s3, sqs, "memory", "transcripts", url, archive_url)


def create_table(dynamodb: DynamoDBClient, definition: Definitions) -> None:
    """The table of the template, empty."""
    table: Any = definition.properties("MemoryTable")
    dynamodb.create_table(
        TableName="memory",
        BillingMode="PAY_PER_REQUEST",
        **{
            name: table[name]
            for name in (
                "AttributeDefinitions",
                "KeySchema",
                "GlobalSecondaryIndexes",
                "VectorIndexes",
            )
            if name in table
        },
    )
