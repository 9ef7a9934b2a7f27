"""Each function may do what it does, and nothing else."""

from typing import Any

import pytest

ROLES = {
    "ApiFunction": "ApiRole",
    "AuthorizerFunction": "AuthorizerRole",
    "CompactorFunction": "CompactorRole",
    "SweeperFunction": "SweeperRole",
    "ArchivistFunction": "ArchivistRole",
}


OBJECTS = (
    "${TranscriptBucket.Arn}/v1/*",
    "${TranscriptBucket.Arn}/v1/*/index/*",
    "${TranscriptBucket.Arn}/v1/*/memory/*",
)


def statements(resources: dict[str, Any], role: str) -> list[dict[str, Any]]:
    """A role's statements, those under a condition included."""
    found = []
    for policy in resources[role]["Properties"]["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            if "Fn::If" in statement:
                _, yes, no = statement["Fn::If"]
                assert no == {"Ref": "AWS::NoValue"}
                found.append(yes)
            else:
                found.append(statement)
    return found


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def actions(resources: dict[str, Any], role: str, service: str) -> set[str]:
    return {
        action.removeprefix(f"{service}:")
        for statement in statements(resources, role)
        for action in as_list(statement["Action"])
        if action.startswith(f"{service}:")
    }


@pytest.mark.parametrize(("function", "role"), ROLES.items())
def test_every_function_has_a_role_of_its_own(
    resources: dict[str, Any], function: str, role: str
) -> None:
    properties = resources[function]["Properties"]
    assert properties["Role"] == {"Fn::GetAtt": [role, "Arn"]}
    # With a role, SAM ignores these; they would only look as if they did something.
    assert "Policies" not in properties
    assert "ManagedPolicyArns" not in resources[role]["Properties"]


@pytest.mark.parametrize("role", ROLES.values())
def test_no_wildcards(resources: dict[str, Any], role: str) -> None:
    for statement in statements(resources, role):
        assert statement["Effect"] == "Allow"
        assert not {"NotAction", "NotResource"} & set(statement)
        for action in as_list(statement["Action"]):
            assert "*" not in action, action
        for resource in as_list(statement["Resource"]):
            # Plain text would be a hand-written ARN or "*"; everything refers to a resource here.
            assert isinstance(resource, dict), resource
            if "Fn::Sub" in resource:
                text = resource["Fn::Sub"]
                assert text.startswith("${"), text
                assert text in OBJECTS or "*" not in text, text


@pytest.mark.parametrize("role", ROLES.values())
def test_roles_are_for_lambda_alone(resources: dict[str, Any], role: str) -> None:
    trust = resources[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert [one["Principal"] for one in trust] == [{"Service": "lambda.amazonaws.com"}]


@pytest.mark.parametrize("role", ["ApiRole", "CompactorRole", "ArchivistRole"])
def test_listing_the_bucket_is_limited_to_transcripts(resources: dict[str, Any], role: str) -> None:
    listing = [
        one for one in statements(resources, role) if "s3:ListBucket" in as_list(one["Action"])
    ]
    assert len(listing) == 1
    assert listing[0]["Condition"] == {"StringLike": {"s3:prefix": "v1/*"}}


def test_only_api_and_archivist_write_transcripts(resources: dict[str, Any]) -> None:
    assert "PutObject" in actions(resources, "ApiRole", "s3")
    assert "PutObject" in actions(resources, "ArchivistRole", "s3")
    assert not actions(resources, "SweeperRole", "s3")
    for statement in statements(resources, "CompactorRole"):
        if "s3:PutObject" in as_list(statement["Action"]):
            folder = statement["Resource"]["Fn::Sub"].rsplit("/", 2)[1]
            assert folder in ("index", "memory")


def test_only_the_archivist_deletes_from_a_transcript(resources: dict[str, Any]) -> None:
    needed = {"DeleteObject", "DeleteObjectVersion", "AbortMultipartUpload"}
    assert needed <= actions(resources, "ArchivistRole", "s3")
    for role in set(ROLES.values()) - {"ArchivistRole"}:
        for statement in statements(resources, role):
            if any(action.startswith("s3:Delete") for action in as_list(statement["Action"])):
                folder = statement["Resource"]["Fn::Sub"].rsplit("/", 2)[1]
                assert folder in ("index", "memory")


def test_retention_is_passed_over_only_where_there_is_one(resources: dict[str, Any]) -> None:
    policy = resources["ArchivistRole"]["Properties"]["Policies"][0]["PolicyDocument"]
    conditional = [one["Fn::If"] for one in policy["Statement"] if "Fn::If" in one]
    (found,) = (one for one in conditional if "s3:BypassGovernanceRetention" in one[1]["Action"])
    assert found[0] == "HasObjectLock"


def test_the_archivist_has_its_queue_to_itself(resources: dict[str, Any]) -> None:
    for role in ROLES.values():
        for statement in statements(resources, role):
            if any(one.startswith("sqs:Receive") for one in as_list(statement["Action"])):
                queue = "ArchiveQueue" if role == "ArchivistRole" else "CompactionQueue"
                assert statement["Resource"] == {"Fn::GetAtt": [queue, "Arn"]}


def test_only_the_compactor_takes_doorbells(resources: dict[str, Any]) -> None:
    assert "ReceiveMessage" in actions(resources, "CompactorRole", "sqs")
    assert "ReceiveMessage" not in actions(resources, "ApiRole", "sqs")
    assert actions(resources, "SweeperRole", "sqs") == {"SendMessage"}


def test_sweeper_neither_adds_nor_removes_items(resources: dict[str, Any]) -> None:
    assert actions(resources, "SweeperRole", "dynamodb") == {"BatchGetItem", "Query", "UpdateItem"}


def test_whoever_reads_a_session_may_read_a_batch(resources: dict[str, Any]) -> None:
    """A session and an idempotency record are read by one BatchGetItem."""
    for role in ("ApiRole", "ArchivistRole", "CompactorRole", "SweeperRole"):
        assert "BatchGetItem" in actions(resources, role, "dynamodb"), role


def test_nobody_scans_the_table(resources: dict[str, Any]) -> None:
    for role in ROLES.values():
        assert "Scan" not in actions(resources, role, "dynamodb")


def test_secrets_are_readable_only_where_one_is_named(template: dict[str, Any]) -> None:
    resources = template["Resources"]
    for role in ROLES.values():
        for statement in statements(resources, role):
            if any("secretsmanager" in one for one in as_list(statement["Action"])):
                assert statement["Action"] == "secretsmanager:GetSecretValue"
                assert statement["Resource"] in (
                    {"Ref": "ModelSecretArn"},
                    {"Fn::GetAtt": ["PepperSecret", "Id"]},
                )
    assert not actions(resources, "SweeperRole", "secretsmanager")
