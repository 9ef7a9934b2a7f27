"""Table and bucket of the template, made anew for each case; the clients are made once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.local.definitions import BUCKET, TABLE, Definitions
from infra.local.settings import LOCAL_PARAMETERS
from support.aws import TEMPLATE
from turnfold.adapters.aws_clients import AwsClients

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

TABLE_NAME, BUCKET_NAME = "memory", "transcripts"


@dataclass(frozen=True)
class Stores:
    """DynamoDB and S3, as the functions use them."""

    dynamodb: DynamoDBClient
    s3: S3Client
    definitions: Definitions

    @classmethod
    def connect(cls) -> Stores:
        clients = AwsClients()
        return cls(clients.dynamodb, clients.s3, Definitions.load(TEMPLATE, LOCAL_PARAMETERS))

    def create(self) -> None:
        """The empty table and the empty bucket."""
        table: Any = self.definitions.properties(TABLE)
        names = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")
        self.dynamodb.create_table(
            TableName=TABLE_NAME,
            BillingMode="PAY_PER_REQUEST",
            **{name: table[name] for name in names},
        )
        self.s3.create_bucket(Bucket=BUCKET_NAME)
        bucket: Any = self.definitions.properties(BUCKET)
        self.s3.put_bucket_versioning(
            Bucket=BUCKET_NAME, VersioningConfiguration=bucket["VersioningConfiguration"]
        )

    def items(self) -> list[dict[str, Any]]:
        """All items of the table."""
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=TABLE_NAME)
        return [dict(item) for page in pages for item in page["Items"]]

    def objects(self) -> dict[tuple[str, str], bytes]:
        """All versions of all objects, by key and version."""
        pages = self.s3.get_paginator("list_object_versions").paginate(Bucket=BUCKET_NAME)
        versions = [one for page in pages for one in page.get("Versions", [])]
        return {
            (one["Key"], one["VersionId"]): self.s3.get_object(
                Bucket=BUCKET_NAME, Key=one["Key"], VersionId=one["VersionId"]
            )["Body"].read()
            for one in versions
        }

    def delete_markers(self) -> list[str]:
        """The keys of delete markers."""
        pages = self.s3.get_paginator("list_object_versions").paginate(Bucket=BUCKET_NAME)
        return [one["Key"] for page in pages for one in page.get("DeleteMarkers", [])]
