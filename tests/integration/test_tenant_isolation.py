"""Credentials of one tenant, judged by the emulator's IAM and not by this service's code.

MiniStack evaluates session policies, S3 resources and `s3:prefix`. It does not know
`dynamodb:LeadingKeys`: the first test on DynamoDB shows that, and that the policy then refuses
everything rather than nothing. The others run on a MiniStack that is told the keys
(`support/ministack_leading_keys.py`).
"""

from __future__ import annotations

import json
import uuid
from array import array
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from infra.local.definitions import Definitions
from support.aws import ENVIRONMENT, TEMPLATE, Services, aws_environment, make_services
from support.ministack import running_ministack
from support.service import plain_turn
from turnfold.adapters.aws_clients import AwsClients
from turnfold.adapters.dynamo_vectors import DynamoVectors
from turnfold.adapters.tenant_clients import TenantClients
from turnfold.application.answer import IdempotentRequest
from turnfold.application.commit_turn import TurnToCommit
from turnfold.bootstrap import Turnfold
from turnfold.domain.errors import StoreError
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.ministack

ACCOUNT, REGION = "000000000000", "us-east-1"
TABLE_ARN = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/memory"
BUCKET_ARN = "arn:aws:s3:::transcripts"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/tenant"
SERVICES = "dynamodb,s3,sqs,iam,sts"
WITH_VECTORS = {"VectorIndex": "true", "EmbeddingDimensions": "8"}
SANE = ["acme", "acme#S", "a%23", "漢字", "a/b=c"]
PATTERNS = ["acme*", "a?me*", "${aws:username}", "*"]
"""Escaped as IAM asks for (`${*}`), which MiniStack does not undo: there they match nothing."""


@dataclass
class Account:
    """An account of the emulator with the stack's table, bucket and role of tenants."""

    endpoint: str
    services: Services

    def clients(self, tenant: str) -> TenantClients:
        """Clients as a request of the tenant has them."""
        return TenantClients(AwsClients(), tenant, ROLE_ARN, TABLE_ARN, BUCKET_ARN)

    def service(self) -> Turnfold:
        """The service with tenants isolated."""
        return Turnfold(
            {
                "TURNFOLD_TABLE": self.services.table,
                "TURNFOLD_BUCKET": self.services.bucket,
                "TURNFOLD_QUEUE_URL": self.services.queue_url,
                "TURNFOLD_TENANT_ROLE_ARN": ROLE_ARN,
                "TURNFOLD_TABLE_ARN": TABLE_ARN,
                "TURNFOLD_BUCKET_ARN": BUCKET_ARN,
            }
        )


def role_policy() -> str:
    """The policy of the template's role, on this account's table and bucket."""
    role = Definitions.load(TEMPLATE, WITH_VECTORS).properties("TenantRole")
    text = json.dumps(role["Policies"][0]["PolicyDocument"])
    text = text.replace("turnfold-memory", "memory").replace("turnfold-transcripts", "transcripts")
    assert TABLE_ARN in text
    assert BUCKET_ARN in text
    return text


def prepare(endpoint: str) -> Account:
    import botocore.session

    services = make_services(endpoint, WITH_VECTORS)
    iam: Any = botocore.session.get_session().create_client(
        "iam", endpoint_url=endpoint, region_name=REGION,
        aws_access_key_id="test", aws_secret_access_key="test",
    )  # fmt: skip
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
                "Action": "sts:AssumeRole",
            }
        ],
    }
    iam.create_role(RoleName="tenant", AssumeRolePolicyDocument=json.dumps(trust))
    iam.put_role_policy(RoleName="tenant", PolicyName="tenant", PolicyDocument=role_policy())
    return Account(endpoint, services)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    folder = tmp_path_factory.mktemp("plain")
    with running_ministack(folder, SERVICES, auth=True) as endpoint, aws_environment(endpoint):
        yield prepare(endpoint)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    folder = tmp_path_factory.mktemp("leading-keys")
    with (
        running_ministack(
            folder, SERVICES, auth=True, script="ministack_leading_keys.py"
        ) as endpoint,
        aws_environment(endpoint),
    ):
        yield prepare(endpoint)


def refused(call: Any, **parameters: Any) -> None:
    """The emulator denies the call."""
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    assert caught.value.response["Error"]["Code"] in {"AccessDenied", "AccessDeniedException"}


def commit(served: Turnfold, key: SessionKey, messages: list[dict[str, Any]]) -> None:
    request = IdempotentRequest.of("test", uuid.uuid4().hex, {})
    served.commit(key, TurnToCommit(messages), request)


def key_of(tenant: str) -> dict[str, Any]:
    return {"PK": {"S": f"T#{tenant}#S#raw"}, "SK": {"S": "META"}}


# ----------------------------------------------------------------------------------------------- S3


def test_objects_of_other_tenants_are_refused(plain: Account) -> None:
    own, everyone = plain.clients("acme").s3, plain.services.s3
    for tenant in ("acme", "acme2", "other"):
        everyone.put_object(Bucket="transcripts", Key=f"v1/tenant={tenant}/x", Body=b"1")
    everyone.put_object(Bucket="transcripts", Key="elsewhere", Body=b"1")
    assert own.get_object(Bucket="transcripts", Key="v1/tenant=acme/x")["Body"].read() == b"1"
    own.put_object(Bucket="transcripts", Key="v1/tenant=acme/y", Body=b"2")
    for key in ("v1/tenant=acme2/x", "v1/tenant=other/x", "v1/tenant=", "elsewhere"):
        refused(own.get_object, Bucket="transcripts", Key=key)
        refused(own.put_object, Bucket="transcripts", Key=key, Body=b"3")
    # Allowed for the place, but not by the role.
    refused(own.delete_object, Bucket="transcripts", Key="v1/tenant=acme/x")


def test_lists_of_other_tenants_are_refused(plain: Account) -> None:
    own = plain.clients("acme").s3
    own.list_objects_v2(Bucket="transcripts", Prefix="v1/tenant=acme/session=s1/")
    for prefix in ("", "v1/", "v1/tenant=", "v1/tenant=acme", "v1/tenant=acme2/", "v1/tenant=x/"):
        refused(own.list_objects_v2, Bucket="transcripts", Prefix=prefix)
    refused(own.list_objects_v2, Bucket="transcripts")


# ----------------------------------------------------------------------------------------- DynamoDB


def test_an_iam_that_knows_no_leading_keys_refuses_everything(plain: Account) -> None:
    """MiniStack as it is. Without the policy's `Null` condition it would allow everything."""
    own = plain.clients("acme").dynamodb
    for tenant in ("acme", "other"):
        refused(own.get_item, TableName="memory", Key=key_of(tenant))


def test_items_of_other_tenants_are_refused(account: Account) -> None:
    own: Any = account.clients("acme").dynamodb
    table = {"TableName": "memory"}
    own.put_item(**table, Item=key_of("acme"))
    assert own.get_item(**table, Key=key_of("acme"))["Item"] == key_of("acme")
    for tenant in ("other", "acme2", "", "acm"):
        key = key_of(tenant)
        refused(own.get_item, **table, Key=key)
        refused(own.put_item, **table, Item=key)
        refused(own.delete_item, **table, Key=key)
        refused(own.update_item, **table, Key=key, UpdateExpression="REMOVE x")
        refused(
            own.query,
            **table,
            KeyConditionExpression="PK = :pk",
            ExpressionAttributeValues={":pk": key["PK"]},
        )
    refused(own.get_item, **table, Key={"PK": {"S": "T#acme"}, "SK": {"S": "#S#s1"}} | key_of("x"))
    refused(own.scan, **table)


def test_a_foreign_key_among_own_ones_is_refused(account: Account) -> None:
    own: Any = account.clients("acme").dynamodb
    keys = [key_of("acme"), key_of("other")]
    refused(own.batch_get_item, RequestItems={"memory": {"Keys": keys}})
    puts = [{"Put": {"TableName": "memory", "Item": key}} for key in keys]
    refused(own.transact_write_items, TransactItems=puts)
    check = {"TableName": "memory", "Key": keys[1], "ConditionExpression": "attribute_exists(PK)"}
    refused(own.transact_write_items, TransactItems=[puts[0], {"ConditionCheck": check}])


def test_indexes_show_own_entries_only(account: Account) -> None:
    own: Any = account.clients("acme").dynamodb

    def ask(call: Any, index: str, name: str, value: str) -> None:
        call(
            TableName="memory",
            IndexName=index,
            KeyConditionExpression=f"{name} = :value",
            ExpressionAttributeValues={":value": {"S": value}},
        )

    ask(own.query, "by_tenant", "tenant_key", "T#acme")
    ask(own.query, "by_user", "user_key", "T#acme#U#u1")
    for index, name, value in (
        ("by_tenant", "tenant_key", "T#other"),
        ("by_tenant", "tenant_key", "T#acme2"),
        ("by_user", "user_key", "T#other#U#u1"),
        ("due", "due_shard", "D#0"),
    ):
        refused(lambda index=index, name=name, value=value: ask(own.query, index, name, value))


def test_a_search_of_vectors_is_allowed_whatever_it_names_but_for_this_index_only(
    plain: Account,
) -> None:
    """IAM tells nothing of what it looks at: the one call that works without leading keys."""
    own = plain.clients("acme").dynamodb
    query: Any = {
        "TableName": "memory",
        "IndexName": "vectors",
        "SearchVector": [{"N": "1"}, *[{"N": "0"}] * 7],
        "SearchConditionExpression": "vec_scope = :scope",
        "ExpressionAttributeValues": {":scope": {"S": "a guess"}},
        "TopK": 100,
    }
    assert own.search_vectors(**query)["SearchResults"] == []
    refused(own.search_vectors, **query | {"IndexName": "by_tenant"})
    # Nor is there a search without a scope.
    del query["SearchConditionExpression"], query["ExpressionAttributeValues"]
    with pytest.raises(ClientError, match="SearchConditionExpression must be provided"):
        own.search_vectors(**query)


def test_vectors_of_other_tenants_are_neither_found_nor_read_nor_written(account: Account) -> None:
    """What holds a search to its session is the epoch, which only its own items tell."""
    vector = array("f", [1.0, *[0.0] * 7])
    sessions = {}
    for tenant in ("victim", "curious"):
        served = account.service().for_tenant(tenant)
        commit(served, SessionKey(tenant, "v1"), plain_turn(1))
        memory = served.store.load(SessionKey(tenant, "v1"))
        assert memory is not None
        sessions[tenant] = memory.session
        own = DynamoVectors(account.clients(tenant).dynamodb, "memory", 8)
        assert own.put(memory.session, "m", 1, [vector])
        assert own.resume(memory.session, "m") == 1
        assert [turn for turn, _ in own.closest(memory.session, "m", vector, 10)] == [1]
    other = DynamoVectors(account.clients("curious").dynamodb, "memory", 8)
    for guess in ("", sessions["curious"].epoch, "0" * 32):
        guessed = replace(sessions["victim"], epoch=guess)
        assert list(other.closest(guessed, "m", vector, 10)) == []
        with pytest.raises(StoreError, match="AccessDenied"):
            other.resume(guessed, "m")
        with pytest.raises(StoreError, match="AccessDenied"):
            other.put(guessed, "m", 1, [vector])


# -------------------------------------------------------------------------------------- the service


@pytest.mark.parametrize("tenant", SANE)
def test_a_tenants_service_does_its_work(account: Account, tenant: str) -> None:
    served = account.service().for_tenant(tenant)
    key = SessionKey(tenant, "s1")
    large = [{"role": "user", "content": "x" * 100_000}, {"role": "assistant", "content": "ok"}]
    for messages in (plain_turn(1), large):
        commit(served, key, messages)
    memory = served.store.load(key)
    assert memory is not None
    assert memory.session.committed_through == 2
    listed = served.sessions.list(tenant, None, 20, None)
    assert [one.key for one in listed.items] == [key]


@pytest.mark.parametrize("tenant", [*SANE, *PATTERNS])
def test_a_tenants_service_reaches_nobody_else(account: Account, tenant: str) -> None:
    """Though code would ask for it. Names that would be patterns in a policy are only names."""
    victim = SessionKey("acme-the-victim", "s1")
    commit(account.service().for_tenant(victim.tenant), victim, plain_turn(1))
    served = account.service().for_tenant(tenant)
    for attempt in (
        lambda: served.store.load(victim),
        lambda: served.store.get_turn(victim, 1),
        lambda: served.store.read_session(victim, None),
        lambda: served.store.list_sessions(victim.tenant, None, 20, None),
        lambda: served.archive.list_records(victim, 1, 9),
        lambda: served.archive.put_record(victim, 9, "t", b"{}"),
        lambda: served.archive.get_record(victim, 1, "t"),
    ):
        with pytest.raises(StoreError, match="AccessDenied"):
            attempt()


def test_credentials_are_fetched_once_and_kept(account: Account) -> None:
    service = account.service()
    assert service.for_tenant("acme") is service.for_tenant("acme")
    calls: list[str] = []
    service._clients.sts.meta.events.register(
        "before-send.*.*", lambda event_name, **_: calls.append(event_name)
    )
    for tenant in ("acme", "other", "acme"):
        served = service.for_tenant(tenant)
        served.store.load(SessionKey(tenant, "nothing"))
        served.archive.list_records(SessionKey(tenant, "nothing"), 1, 2)
    assert len(calls) == 2


def test_without_a_role_nothing_is_narrowed() -> None:
    service = Turnfold({})
    assert service.for_tenant("acme") is service
    assert "TURNFOLD_TENANT_ROLE_ARN" not in ENVIRONMENT
