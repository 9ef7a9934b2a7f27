"""What the design asks of each resource."""

from typing import Any

import pytest

FUNCTIONS = (
    "ApiFunction",
    "AuthorizerFunction",
    "CompactorFunction",
    "SweeperFunction",
    "ArchivistFunction",
)


def of_type(resources: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: one["Properties"] for name, one in resources.items() if one["Type"] == kind}


def test_all_queues_are_fifo_in_high_throughput_mode(resources: dict[str, Any]) -> None:
    queues = of_type(resources, "AWS::SQS::Queue")
    assert set(queues) == {
        "CompactionQueue",
        "CompactionDeadLetterQueue",
        "ArchiveQueue",
        "ArchiveDeadLetterQueue",
    }
    for queue in queues.values():
        assert queue["FifoQueue"] is True
        assert queue["QueueName"]["Fn::Sub"].endswith(".fifo")
        assert queue["FifoThroughputLimit"] == "perMessageGroupId"
        assert queue["DeduplicationScope"] == "messageGroup"
        assert queue["ContentBasedDeduplication"] is False
        assert queue["SqsManagedSseEnabled"] == {
            "Fn::If": ["HasKmsKey", {"Ref": "AWS::NoValue"}, True]
        }


def test_failed_doorbells_go_to_the_dead_letter_queue(resources: dict[str, Any]) -> None:
    queue = resources["CompactionQueue"]["Properties"]
    dead = resources["CompactionDeadLetterQueue"]["Properties"]
    assert queue["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["CompactionDeadLetterQueue", "Arn"]},
        "maxReceiveCount": 5,
    }
    # A moved message keeps its age: with the same retention it would be gone on arrival.
    assert dead["MessageRetentionPeriod"] > queue["MessageRetentionPeriod"]


def test_doorbells_stay_hidden_for_six_timeouts(resources: dict[str, Any]) -> None:
    timeout = resources["CompactorFunction"]["Properties"]["Timeout"]
    assert resources["CompactionQueue"]["Properties"]["VisibilityTimeout"] >= 6 * timeout


def test_doorbell_delay_is_a_parameter(
    resources: dict[str, Any], parameters: dict[str, Any]
) -> None:
    delay = resources["CompactionQueue"]["Properties"]["DelaySeconds"]
    assert delay == {"Ref": "CompactionDelaySeconds"}
    assert parameters["CompactionDelaySeconds"]["Default"] == 1


def test_compactor_takes_batches_and_reports_single_failures(resources: dict[str, Any]) -> None:
    event = resources["CompactorFunction"]["Properties"]["Events"]["Doorbells"]
    assert event["Type"] == "SQS"
    assert event["Properties"]["Queue"] == {"Fn::GetAtt": ["CompactionQueue", "Arn"]}
    assert event["Properties"]["BatchSize"] == 10
    assert event["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert event["Properties"]["ScalingConfig"] == {
        "MaximumConcurrency": {"Ref": "CompactorMaxConcurrency"}
    }


def test_sweeper_runs_every_minute_and_ends_before_the_next(resources: dict[str, Any]) -> None:
    sweeper = resources["SweeperFunction"]["Properties"]
    event = sweeper["Events"]["EveryMinute"]
    assert event["Type"] == "ScheduleV2"
    assert event["Properties"]["ScheduleExpression"] == "rate(1 minute)"
    assert sweeper["Timeout"] <= 60


def test_table(resources: dict[str, Any], parameters: dict[str, Any]) -> None:
    table = resources["MemoryTable"]["Properties"]
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["SSESpecification"]["SSEEnabled"] is True
    assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert table["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}
    assert parameters["DeletionProtection"]["Default"] == "true"
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["PK", "SK"]
    indexes = {
        index["IndexName"]: [key["AttributeName"] for key in index["KeySchema"]]
        for index in table["GlobalSecondaryIndexes"]
    }
    assert indexes == {
        "due": ["due_shard", "due_at"],
        "by_user": ["user_key", "created_key"],
        "by_tenant": ["tenant_key", "created_key"],
    }
    # A projected attribute would be written again with every commit.
    for index in table["GlobalSecondaryIndexes"]:
        assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


@pytest.mark.parametrize("name", ["MemoryTable", "TranscriptBucket"])
def test_what_holds_memory_outlives_the_stack(resources: dict[str, Any], name: str) -> None:
    assert resources[name]["DeletionPolicy"] == "RetainExceptOnCreate"
    assert resources[name]["UpdateReplacePolicy"] == "Retain"


def test_bucket_is_private_versioned_and_encrypted(resources: dict[str, Any]) -> None:
    bucket = resources["TranscriptBucket"]["Properties"]
    block = bucket["PublicAccessBlockConfiguration"]
    assert block == dict.fromkeys(
        ["BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"],
        True,
    )
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]


def lifecycle(resources: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rules of the bucket by id, those under a condition included."""
    rules = resources["TranscriptBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    plain = [rule["Fn::If"][1] if "Fn::If" in rule else rule for rule in rules]
    return {rule["Id"]: rule for rule in plain}


def test_no_rule_deletes_a_transcript(resources: dict[str, Any]) -> None:
    """What is current goes by no rule but exports; old versions of it go after a while."""
    for name, rule in lifecycle(resources).items():
        assert rule["Status"] == "Enabled"
        if "ExpirationInDays" in rule:
            assert rule["TagFilters"] == [{"Key": "turnfold", "Value": "export"}], name
        assert "ExpirationDate" not in rule
    days = lifecycle(resources)["replaced-versions"]["NoncurrentVersionExpiration"]
    assert days == {"NoncurrentDays": {"Ref": "NoncurrentDays"}}


def test_cold_segments_and_object_lock_are_parameters(
    resources: dict[str, Any], parameters: dict[str, Any]
) -> None:
    for name in ("ColdAfterDays", "ObjectLockDays"):
        assert parameters[name]["Default"] == 0, "off unless asked for"
    bucket = resources["TranscriptBucket"]["Properties"]
    rules = bucket["LifecycleConfiguration"]["Rules"]
    cold = next(rule["Fn::If"] for rule in rules if "Fn::If" in rule)
    assert cold[0] == "HasColdSegments"
    assert cold[1]["TagFilters"] == [{"Key": "turnfold", "Value": "segment"}]
    condition, lock, _ = bucket["ObjectLockConfiguration"]["Fn::If"]
    assert condition == bucket["ObjectLockEnabled"]["Fn::If"][0] == "HasObjectLock"
    assert lock["Rule"]["DefaultRetention"]["Mode"] == "GOVERNANCE"


def test_the_archivist_is_rung_by_a_queue_of_its_own(resources: dict[str, Any]) -> None:
    function = resources["ArchivistFunction"]["Properties"]
    queue = resources["ArchiveQueue"]["Properties"]
    assert queue["VisibilityTimeout"] >= 6 * function["Timeout"]
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {
        "Fn::GetAtt": ["ArchiveDeadLetterQueue", "Arn"]
    }
    event = function["Events"]["Bells"]["Properties"]
    assert event["Queue"] == {"Fn::GetAtt": ["ArchiveQueue", "Arn"]}
    assert event["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_an_erasure_waits_for_every_request_that_may_be_at_work(
    resources: dict[str, Any], parameters: dict[str, Any]
) -> None:
    timeout = resources["ApiFunction"]["Properties"]["Timeout"]
    assert parameters["ErasureSettleSeconds"]["MinValue"] > timeout


def test_bucket_is_spoken_to_by_tls_only(resources: dict[str, Any]) -> None:
    policy = resources["TranscriptBucketPolicy"]
    assert policy["Condition"] == "OnAws"
    denials = policy["Properties"]["PolicyDocument"]["Statement"]
    assert all(statement["Effect"] == "Deny" for statement in denials)
    only_tls = next(one for one in denials if one["Sid"] == "OnlyTls")
    assert only_tls["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert only_tls["Principal"] == "*"
    assert {"Fn::GetAtt": ["TranscriptBucket", "Arn"]} in only_tls["Resource"]
    assert {"Fn::Sub": "${TranscriptBucket.Arn}/*"} in only_tls["Resource"]


def test_api_is_a_rest_api_that_hands_every_path_to_one_function(
    resources: dict[str, Any],
) -> None:
    assert not of_type(resources, "AWS::Serverless::HttpApi")
    paths = resources["Api"]["Properties"]["DefinitionBody"]["paths"]
    methods = {"get", "head", "post", "put", "patch", "delete", "options"}
    assert set(paths["/"]) == {"get"}
    assert set(paths["/{proxy+}"]) - {"parameters"} == methods
    for path in paths.values():
        for name in methods & set(path):
            integration = path[name]["x-amazon-apigateway-integration"]
            assert integration["type"] == "aws_proxy"
            assert "${ApiFunction.Alias}" in integration["uri"]["Fn::Sub"]
    # API Gateway gives up after 29 seconds.
    assert resources["ApiFunction"]["Properties"]["Timeout"] <= 29


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_logs_to_a_group_that_forgets(resources: dict[str, Any], name: str) -> None:
    group = resources[name]["Properties"]["LoggingConfig"]["LogGroup"]["Ref"]
    assert resources[group]["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_turnfold_and_its_packages(resources: dict[str, Any], name: str) -> None:
    function = resources[name]["Properties"]
    layers = {layer["Ref"] for layer in function["Layers"]}
    assert {"CoreLayer", "DepsLayer"} <= layers
    variables = function.get("Environment", {}).get("Variables", {})
    assert ("VocabLayer" in layers) == (variables.get("TIKTOKEN_CACHE_DIR") == "/opt/vocabulary")


def test_compiled_layer_is_bound_to_the_functions_architecture(template: dict[str, Any]) -> None:
    architecture = [{"Ref": "Architecture"}]
    assert template["Globals"]["Function"]["Architectures"] == architecture
    deps = template["Resources"]["DepsLayer"]["Properties"]
    assert deps["CompatibleArchitectures"] == architecture


def test_outputs_say_where_everything_is(template: dict[str, Any]) -> None:
    assert {
        "ApiUrl",
        "TableName",
        "BucketName",
        "QueueUrl",
        "QueueName",
        "DeadLetterQueueUrl",
        "DeadLetterQueueName",
        "ApiFunctionName",
        "CompactorFunctionName",
        "SweeperFunctionName",
        "DashboardName",
        "AlarmTopicArn",
    } <= set(template["Outputs"])
