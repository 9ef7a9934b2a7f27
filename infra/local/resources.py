"""Creates the table, the bucket and the queues where they are absent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from infra.local.definitions import (
    ARCHIVE_DEAD_LETTERS,
    ARCHIVE_QUEUE,
    ARNS,
    BUCKET,
    DEAD_LETTERS,
    NAMES,
    QUEUE,
    TABLE,
    TemplateError,
)
from infra.local.settings import REGION

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

    from infra.local.definitions import Definitions

QUEUE_ATTRIBUTES = (
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "DelaySeconds",
    "FifoQueue",
    "FifoThroughputLimit",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "RedrivePolicy",
    "VisibilityTimeout",
)


@dataclass(frozen=True)
class Resources:
    """Names and addresses of what was created."""

    table: str
    bucket: str
    queue_url: str
    queue_arn: str
    archive_queue_url: str
    archive_queue_arn: str


class Clients:
    """AWS clients for the emulator at one endpoint."""

    def __init__(self, endpoint: str) -> None:
        """Make clients with the emulator's made-up credentials."""
        session = boto3.Session(
            aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION
        )
        config = Config(
            retries={"total_max_attempts": 3, "mode": "standard"},
            connect_timeout=2,
            read_timeout=25,
            max_pool_connections=8,
            proxies={},
            s3={"addressing_style": "path"},
        )
        self.dynamodb: DynamoDBClient = session.client(
            "dynamodb", endpoint_url=endpoint, config=config
        )
        self.s3: S3Client = session.client("s3", endpoint_url=endpoint, config=config)
        self.sqs: SQSClient = session.client("sqs", endpoint_url=endpoint, config=config)


def ensure_resources(clients: Clients, definitions: Definitions) -> Resources:
    """Bring the emulator to what the template defines; what is there already stays."""
    _ensure_table(clients.dynamodb, definitions.properties(TABLE))
    _ensure_bucket(clients.s3, definitions.properties(BUCKET))
    _ensure_queue(clients.sqs, NAMES[DEAD_LETTERS], definitions.properties(DEAD_LETTERS))
    queue_url = _ensure_queue(clients.sqs, NAMES[QUEUE], definitions.properties(QUEUE))
    archive_dead = definitions.properties(ARCHIVE_DEAD_LETTERS)
    _ensure_queue(clients.sqs, NAMES[ARCHIVE_DEAD_LETTERS], archive_dead)
    archive_queue = definitions.properties(ARCHIVE_QUEUE)
    archive_queue_url = _ensure_queue(clients.sqs, NAMES[ARCHIVE_QUEUE], archive_queue)
    return Resources(
        table=NAMES[TABLE],
        bucket=NAMES[BUCKET],
        queue_url=queue_url,
        queue_arn=ARNS[QUEUE],
        archive_queue_url=archive_queue_url,
        archive_queue_arn=ARNS[ARCHIVE_QUEUE],
    )


def _ensure_table(dynamodb: DynamoDBClient, properties: dict[str, Any]) -> None:
    name = NAMES[TABLE]
    indexes: list[dict[str, Any]] = properties.get("GlobalSecondaryIndexes") or []
    vector_indexes: list[dict[str, Any]] = properties.get("VectorIndexes") or []
    try:
        present = dynamodb.describe_table(TableName=name)["Table"]
    except dynamodb.exceptions.ResourceNotFoundException:
        shape: Any = {"GlobalSecondaryIndexes": indexes} if indexes else {}
        shape |= {"VectorIndexes": vector_indexes} if vector_indexes else {}
        dynamodb.create_table(
            TableName=name,
            AttributeDefinitions=properties["AttributeDefinitions"],
            KeySchema=properties["KeySchema"],
            BillingMode="PAY_PER_REQUEST",
            **shape,
        )
    else:
        if present["KeySchema"] != properties["KeySchema"]:
            message = (
                "The stored table has another key than the template's. "
                "Remove the data folder (TURNFOLD_DATA) to begin anew."
            )
            raise TemplateError(message)
        known = {index["IndexName"] for index in present.get("GlobalSecondaryIndexes") or []}
        for index in indexes:
            if index["IndexName"] not in known:
                create: Any = {
                    k: v for k, v in index.items() if k in {"IndexName", "KeySchema", "Projection"}
                }
                dynamodb.update_table(
                    TableName=name,
                    AttributeDefinitions=properties["AttributeDefinitions"],
                    GlobalSecondaryIndexUpdates=[{"Create": create}],
                )
        known = {index["IndexName"] for index in present.get("VectorIndexes") or []}
        for vector_index in vector_indexes:
            if vector_index["IndexName"] not in known:
                added: Any = {"Create": vector_index}
                dynamodb.update_table(
                    TableName=name,
                    AttributeDefinitions=properties["AttributeDefinitions"],
                    VectorIndexUpdates=[added],
                )
    ttl = properties.get("TimeToLiveSpecification")
    if ttl and ttl.get("Enabled"):
        state = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        if state.get("TimeToLiveStatus") not in {"ENABLED", "ENABLING"}:
            dynamodb.update_time_to_live(
                TableName=name,
                TimeToLiveSpecification={"Enabled": True, "AttributeName": ttl["AttributeName"]},
            )


def _ensure_bucket(s3: S3Client, properties: dict[str, Any]) -> None:
    name = NAMES[BUCKET]
    try:
        s3.head_bucket(Bucket=name)
    except ClientError:
        s3.create_bucket(Bucket=name)
    versioning = properties.get("VersioningConfiguration")
    if versioning:
        s3.put_bucket_versioning(
            Bucket=name, VersioningConfiguration={"Status": versioning["Status"]}
        )
    block = properties.get("PublicAccessBlockConfiguration")
    if block:
        s3.put_public_access_block(Bucket=name, PublicAccessBlockConfiguration=block)


def _ensure_queue(sqs: SQSClient, name: str, properties: dict[str, Any]) -> str:
    wanted: dict[Any, str] = {
        key: _attribute(properties[key]) for key in QUEUE_ATTRIBUTES if key in properties
    }
    try:
        url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    except ClientError:
        return sqs.create_queue(QueueName=name, Attributes=wanted)["QueueUrl"]
    present = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    changed = {
        key: value
        for key, value in wanted.items()
        if key != "FifoQueue" and not _same(present.get(key), value)
    }
    if changed:
        sqs.set_queue_attributes(QueueUrl=url, Attributes=changed)
    return url


def _attribute(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _same(present: str | None, wanted: str) -> bool:
    if present == wanted:
        return True
    try:
        first, second = json.loads(present or ""), json.loads(wanted)
    except ValueError:
        return False
    if isinstance(first, dict) and isinstance(second, dict):
        return {k: str(v) for k, v in first.items()} == {k: str(v) for k, v in second.items()}
    return bool(first == second)
