"""Rules that hold for all resources of a kind, also for those that come later."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from template.conftest import ROOT, Loader
from template.translated import of_type, references, translated

FREE_TEXT = {
    # A name that only the endpoint knows.
    "ModelBaseUrl", "SummaryModel", "ChatModel", "EmbeddingModel", "DefaultModel",
    # Checked by the functions that read them (tests/template/test_environment.py).
    "DefaultStrategies",
    # Whatever an issuer of tokens puts before its scopes.
    "JwtScopePrefix",
}  # fmt: skip
WHOLE_ACCOUNT = {"xray:PutTraceSegments", "xray:PutTelemetryRecords"}
"""Actions that know no resources to name."""


@pytest.fixture(scope="module")
def all_resources() -> dict[str, Any]:
    """Translated, with everything that a condition may hide, and the nested stack's beside."""
    found = dict(translated("Production=true", "Tracing=Active")["Resources"])
    nested = yaml.load((ROOT / "infra/observability.yaml").read_text("utf-8"), Loader)  # noqa: S506 - a safe loader, extended
    return found | {f"Observability.{name}": one for name, one in nested["Resources"].items()}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def consumers(resources: dict[str, Any]) -> list[tuple[dict[str, Any], str, str]]:
    """(event source mapping, logical id of its function, of its queue)."""
    functions = {
        one["Properties"]["FunctionName"]["Ref"]
        for one in of_type(resources, "AWS::Lambda::Alias").values()
    }
    found = []
    for one in of_type(resources, "AWS::Lambda::EventSourceMapping").values():
        alias = one["Properties"]["FunctionName"]["Ref"]
        (function,) = [name for name in functions if alias == f"{name}Aliaslive"]
        (queue,) = references(one["Properties"]["EventSourceArn"])
        found.append((one["Properties"], function, queue))
    return found


def test_every_queue_is_fifo_and_has_a_fifo_dead_letter_queue(
    all_resources: dict[str, Any],
) -> None:
    queues = of_type(all_resources, "AWS::SQS::Queue")
    dead = set()
    for one in queues.values():
        properties = one["Properties"]
        assert properties["FifoQueue"] is True
        assert properties["ContentBasedDeduplication"] is False
        if "RedrivePolicy" in properties:
            dead |= references(properties["RedrivePolicy"]["deadLetterTargetArn"])
    for name, one in queues.items():
        assert ("RedrivePolicy" in one["Properties"]) != (name in dead), name
        if name in dead:
            assert one["Properties"]["MessageRetentionPeriod"] == 1209600


def test_consumers_of_queues_fail_message_by_message(all_resources: dict[str, Any]) -> None:
    found = consumers(all_resources)
    assert len(found) == 2
    for mapping, function, queue in found:
        timeout = all_resources[function]["Properties"]["Timeout"]
        assert all_resources[queue]["Properties"]["VisibilityTimeout"] >= 6 * timeout
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert 1 <= mapping["BatchSize"] <= 10
        # More has no effect for a FIFO queue, or is refused.
        assert "MaximumBatchingWindowInSeconds" not in mapping


def test_every_table_can_be_restored_and_is_not_deleted_by_mistake(
    all_resources: dict[str, Any],
) -> None:
    tables = of_type(all_resources, "AWS::DynamoDB::Table")
    assert len(tables) == 2
    for one in tables.values():
        properties = one["Properties"]
        assert properties["PointInTimeRecoverySpecification"] == {
            "PointInTimeRecoveryEnabled": True
        }
        assert properties["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}
        assert properties["BillingMode"] == "PAY_PER_REQUEST"
        assert one["DeletionPolicy"] == "RetainExceptOnCreate"
        assert one["UpdateReplacePolicy"] == "Retain"


def test_every_bucket_is_private_versioned_and_kept(all_resources: dict[str, Any]) -> None:
    buckets = of_type(all_resources, "AWS::S3::Bucket")
    protected = set()
    for one in of_type(all_resources, "AWS::S3::BucketPolicy").values():
        if "aws:SecureTransport" in str(one["Properties"]["PolicyDocument"]):
            protected |= references(one["Properties"]["Bucket"])
    assert protected == set(buckets)
    for one in buckets.values():
        assert set(one["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
        assert one["Properties"]["VersioningConfiguration"] == {"Status": "Enabled"}
        assert one["DeletionPolicy"] == "RetainExceptOnCreate"


@pytest.mark.parametrize(
    ("kind", "member"),
    [
        ("AWS::DynamoDB::Table", "SSESpecification"),
        ("AWS::Lambda::Function", "KmsKeyArn"),
        ("AWS::Logs::LogGroup", "KmsKeyId"),
        ("AWS::S3::Bucket", "BucketEncryption"),
        ("AWS::SNS::Topic", "KmsMasterKeyId"),
        ("AWS::SQS::Queue", "KmsMasterKeyId"),
        ("AWS::SecretsManager::Secret", "KmsKeyId"),
    ],
)
def test_everything_at_rest_takes_the_customers_key(
    all_resources: dict[str, Any], kind: str, member: str
) -> None:
    found = of_type(all_resources, kind)
    assert found
    for name, one in found.items():
        assert "KmsKeyArn" in references(one["Properties"][member]), name


def test_whoever_works_with_the_key_may_use_it(all_resources: dict[str, Any]) -> None:
    roles = {
        name
        for one in of_type(all_resources, "AWS::Lambda::Function").values()
        for name in references(one["Properties"]["Role"])
    }
    for policy in ("EncryptionPolicy", "TracingPolicy"):
        assert references(all_resources[policy]["Properties"]["Roles"]) >= roles, policy


def test_no_policy_has_a_star_for_an_action_or_for_everything(
    all_resources: dict[str, Any],
) -> None:
    policies = [
        policy["PolicyDocument"]
        for one in of_type(all_resources, "AWS::IAM::Role").values()
        for policy in one["Properties"].get("Policies", [])
    ]
    policies += [
        one["Properties"]["PolicyDocument"]
        for one in of_type(all_resources, "AWS::IAM::Policy").values()
    ]
    assert len(policies) >= 7
    for document in policies:
        for given in document["Statement"]:
            statement = given["Fn::If"][1] if "Fn::If" in given else given
            actions = set(as_list(statement["Action"]))
            assert not [one for one in actions if "*" in one]
            if "*" in as_list(statement["Resource"]):
                assert actions <= WHOLE_ACCOUNT, actions


def test_every_function_logs_to_a_group_that_forgets(all_resources: dict[str, Any]) -> None:
    groups = of_type(all_resources, "AWS::Logs::LogGroup")
    used = set()
    for one in of_type(all_resources, "AWS::Lambda::Function").values():
        logging = one["Properties"]["LoggingConfig"]
        assert logging["LogFormat"] == "JSON"
        used |= references(logging["LogGroup"])
    assert used == set(groups)
    for one in groups.values():
        assert one["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


def test_every_parameter_refuses_what_makes_no_sense(parameters: dict[str, Any]) -> None:
    for name, one in parameters.items():
        if one["Type"] == "Number":
            assert "AllowedValues" in one or {"MinValue", "MaxValue"} <= set(one), name
        elif name not in FREE_TEXT:
            assert {"AllowedValues", "AllowedPattern"} & set(one), name
        assert "Default" in one, name


def test_alarms_tell_somebody_and_are_quiet_without_traffic(
    all_resources: dict[str, Any],
) -> None:
    alarms = of_type(all_resources, "AWS::CloudWatch::Alarm")
    assert len(alarms) >= 8
    for one in alarms.values():
        properties = one["Properties"]
        assert properties["AlarmActions"] == properties["OKActions"] == [{"Ref": "AlarmTopic"}]
        assert properties["TreatMissingData"] == "notBreaching"
        assert properties["AlarmDescription"]


def test_every_alarm_is_in_the_handbook(all_resources: dict[str, Any]) -> None:
    handbook = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    for name in of_type(all_resources, "AWS::CloudWatch::Alarm"):
        assert name.removeprefix("Observability.") in handbook


def test_no_metric_is_of_somebody(all_resources: dict[str, Any]) -> None:
    text = json.dumps(of_type(all_resources, "AWS::CloudWatch::Alarm"))
    named = set(re.findall(r'"Dimensions": \[([^]]*)\]', text))
    dimensions = {name for one in named for name in re.findall(r'"Name": "(\w+)"', one)}
    assert dimensions == {"ApiName", "FunctionName", "QueueName", "Stack", "Stage", "TableName"}
