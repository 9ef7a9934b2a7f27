"""AWS's answers as errors of the domain, on the real clients with answers put in their mouth."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.stub import Stubber

from support.aws import aws_environment
from support.sessions import START, a_session, a_turn
from turnfold.adapters.aws_clients import AwsClients
from turnfold.adapters.aws_errors import CONFLICT_ATTEMPTS
from turnfold.adapters.dynamo_memory import DynamoMemoryStore
from turnfold.adapters.in_memory_archive import InMemoryArchive
from turnfold.adapters.s3_archive import WRITE_ATTEMPTS, S3Archive
from turnfold.adapters.sqs_doorbell import SqsDoorbell
from turnfold.application.ports.memory import Change
from turnfold.domain.errors import (
    GuardFailedError,
    StoreError,
    StoreUnavailableError,
    ThrottledError,
)
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY = SessionKey("t", "a-secret-session")
CHANGE = Change(key=KEY, epoch="e1", sets={"next_turn": 2}, turn=a_turn(1)[0])
UPDATE = Change(key=KEY, epoch="e1", sets={"sweeps": 1})


@pytest.fixture(scope="module")
def clients() -> AwsClients:
    with aws_environment("http://127.0.0.1:9"):
        made = AwsClients()
        for service in ("dynamodb", "s3", "sqs"):
            assert getattr(made, service).meta.endpoint_url == "http://127.0.0.1:9"
    return made


@pytest.fixture
def dynamodb(clients: AwsClients) -> Iterator[Stubber]:
    with Stubber(clients.dynamodb) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def s3(clients: AwsClients) -> Iterator[Stubber]:
    with Stubber(clients.s3) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def store(clients: AwsClients, pauses: list[float]) -> DynamoMemoryStore:
    return DynamoMemoryStore(
        clients.dynamodb, "memory", InMemoryArchive(), lambda: START, pauses.append
    )


def cancel(stub: Stubber, *codes: str) -> None:
    """Let a transaction be cancelled for these reasons."""
    stub.add_client_error(
        "transact_write_items",
        service_error_code="TransactionCanceledException",
        service_message="Transaction cancelled",
        http_status_code=400,
        modeled_fields={"CancellationReasons": [{"Code": code} for code in codes]},
    )


def refuse(stub: Stubber, operation: str, code: str, status: int = 400) -> None:
    stub.add_client_error(operation, service_error_code=code, http_status_code=status)


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("ProvisionedThroughputExceededException", 400, ThrottledError),
        ("ThrottlingException", 400, ThrottledError),
        ("RequestLimitExceeded", 400, ThrottledError),
        ("InternalServerError", 500, StoreUnavailableError),
        ("ServiceUnavailable", 503, StoreUnavailableError),
        ("502", 502, StoreUnavailableError),
        ("ResourceNotFoundException", 400, StoreError),
        ("AccessDeniedException", 400, StoreError),
        ("ValidationException", 400, StoreError),
    ],
)
def test_refusals_have_their_error(
    dynamodb: Stubber, store: DynamoMemoryStore, code: str, status: int, error: type[StoreError]
) -> None:
    for operation, call in (
        ("query", lambda: store.load(KEY)),
        ("batch_get_item", lambda: store.read_session(KEY, "k")),
        ("get_item", lambda: store.get_turn(KEY, 1)),
        ("transact_write_items", lambda: store.write(CHANGE)),
        ("update_item", lambda: store.write(UPDATE)),
    ):
        refuse(dynamodb, operation, code, status)
        with pytest.raises(StoreError) as caught:
            call()
        assert type(caught.value) is error
        assert code in str(caught.value)


@pytest.mark.parametrize(
    ("codes", "failed"),
    [
        (("ConditionalCheckFailed", "None"), {"session"}),
        (("None", "ConditionalCheckFailed"), {"turn"}),
        (("ConditionalCheckFailed", "ConditionalCheckFailed"), {"session", "turn"}),
        (("TransactionConflict", "ConditionalCheckFailed"), {"turn"}),
        (("ConditionalCheckFailed", "ThrottlingError"), {"session"}),
    ],
)
def test_the_failed_parts_are_told_apart(
    dynamodb: Stubber, store: DynamoMemoryStore, codes: tuple[str, ...], failed: set[str]
) -> None:
    cancel(dynamodb, *codes)
    with pytest.raises(GuardFailedError) as caught:
        store.write(CHANGE)
    assert caught.value.failed == failed


def test_a_failed_update_names_the_session(dynamodb: Stubber, store: DynamoMemoryStore) -> None:
    refuse(dynamodb, "update_item", "ConditionalCheckFailedException")
    with pytest.raises(GuardFailedError) as caught:
        store.write(UPDATE)
    assert caught.value.failed == {"session"}


def test_a_conflict_is_tried_again(
    dynamodb: Stubber, store: DynamoMemoryStore, pauses: list[float]
) -> None:
    cancel(dynamodb, "TransactionConflict", "None")
    cancel(dynamodb, "None", "TransactionConflict")
    dynamodb.add_response("transact_write_items", {})
    store.write(CHANGE)
    assert len(pauses) == 2
    refuse(dynamodb, "update_item", "TransactionConflictException")
    dynamodb.add_response("update_item", {})
    store.write(UPDATE)
    assert len(pauses) == 3


def test_a_conflict_without_end_is_throttling(
    dynamodb: Stubber, store: DynamoMemoryStore, pauses: list[float]
) -> None:
    for _ in range(CONFLICT_ATTEMPTS):
        cancel(dynamodb, "TransactionConflict", "None")
    with pytest.raises(ThrottledError):
        store.write(CHANGE)
    assert sum(pauses) < 1.5


def test_each_attempt_is_a_transaction_of_its_own(
    dynamodb: Stubber, clients: AwsClients, store: DynamoMemoryStore
) -> None:
    """But one that is still at work is recognised by its token."""
    tokens: list[str] = []

    def note(params: dict[str, Any], **_: object) -> None:
        tokens.append(params["ClientRequestToken"])

    event = "provide-client-params.dynamodb.TransactWriteItems"
    clients.dynamodb.meta.events.register(event, note)
    cancel(dynamodb, "TransactionConflict", "None")
    refuse(dynamodb, "transact_write_items", "TransactionInProgressException")
    dynamodb.add_response("transact_write_items", {})
    store.write(CHANGE)
    clients.dynamodb.meta.events.unregister(event, note)
    assert len(tokens) == 3
    assert tokens[0] != tokens[1] == tokens[2]


@pytest.mark.parametrize(
    ("codes", "error"),
    [
        (("ThrottlingError", "None"), ThrottledError),
        (("ProvisionedThroughputExceeded", "None"), ThrottledError),
        (("None", "ValidationError"), StoreError),
        (("None", "ItemCollectionSizeLimitExceeded"), StoreError),
    ],
)
def test_other_reasons_of_a_cancelled_transaction(
    dynamodb: Stubber, store: DynamoMemoryStore, codes: tuple[str, ...], error: type[StoreError]
) -> None:
    cancel(dynamodb, *codes)
    with pytest.raises(StoreError) as caught:
        store.write(CHANGE)
    assert type(caught.value) is error


@pytest.mark.parametrize(
    "failure",
    [
        EndpointConnectionError(endpoint_url="http://x"),
        ConnectTimeoutError(endpoint_url="http://x"),
        ReadTimeoutError(endpoint_url="http://x"),
        NoCredentialsError(),
    ],
)
def test_no_answer_is_unavailable(clients: AwsClients, failure: Exception) -> None:
    def fail(**_: object) -> None:
        raise failure

    store = DynamoMemoryStore(clients.dynamodb, "memory", InMemoryArchive(), lambda: START)
    archive, doorbell = S3Archive(clients.s3, "b"), SqsDoorbell(clients.sqs, "http://x/q.fifo")
    calls: list[Callable[[], object]] = [
        lambda: store.load(KEY),
        lambda: store.write(CHANGE),
        lambda: store.write(UPDATE),
        lambda: archive.put_record(KEY, 1, "t", b""),
        lambda: archive.get_record(KEY, 1, "t"),
        lambda: archive.list_records(KEY, 1, 2),
        lambda: doorbell.ring(KEY, "r", 1),
    ]
    made = (clients.dynamodb, clients.s3, clients.sqs)
    for client in made:
        client.meta.events.register("before-call.*.*", fail)
    try:
        for call in calls:
            with pytest.raises(StoreUnavailableError):
                call()
    finally:
        for client in made:
            client.meta.events.unregister("before-call.*.*", fail)


def test_an_unreachable_endpoint_is_unavailable(store: DynamoMemoryStore) -> None:
    """Over the wire: nothing listens at the address; the client's own retries are included."""
    with pytest.raises(StoreUnavailableError):
        store.load(KEY)


def test_a_message_that_is_throttled(clients: AwsClients) -> None:
    with Stubber(clients.sqs) as stub:
        refuse(stub, "send_message", "RequestThrottled", 403)
        with pytest.raises(ThrottledError):
            SqsDoorbell(clients.sqs, "http://x/q.fifo").ring(KEY, "r", 1)


def test_a_record_that_exists_is_fine(clients: AwsClients, s3: Stubber) -> None:
    refuse(s3, "put_object", "PreconditionFailed", 412)
    S3Archive(clients.s3, "b").put_record(KEY, 1, "t", b"{}")


def test_a_conflict_of_two_records_is_tried_again(
    clients: AwsClients, s3: Stubber, pauses: list[float]
) -> None:
    archive = S3Archive(clients.s3, "b", pauses.append)
    refuse(s3, "put_object", "ConditionalRequestConflict", 409)
    refuse(s3, "put_object", "PreconditionFailed", 412)
    archive.put_record(KEY, 1, "t", b"{}")
    for _ in range(WRITE_ATTEMPTS):
        refuse(s3, "put_object", "ConditionalRequestConflict", 409)
    with pytest.raises(ThrottledError):
        archive.put_record(KEY, 1, "t", b"{}")


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("SlowDown", 503, ThrottledError),
        ("InternalError", 500, StoreUnavailableError),
        ("AccessDenied", 403, StoreError),
        ("NoSuchBucket", 404, StoreError),
    ],
)
def test_the_archive_maps_refusals(
    clients: AwsClients, s3: Stubber, code: str, status: int, error: type[StoreError]
) -> None:
    archive = S3Archive(clients.s3, "b")
    for operation, call in (
        ("put_object", lambda: archive.put_record(KEY, 1, "t", b"")),
        ("get_object", lambda: archive.get_record(KEY, 1, "t")),
        ("list_objects_v2", lambda: archive.list_records(KEY, 1, 2)),
    ):
        refuse(s3, operation, code, status)
        with pytest.raises(StoreError) as caught:
            call()
        assert type(caught.value) is error


def test_no_text_of_a_user_is_in_an_error(clients: AwsClients) -> None:
    """Not even where botocore's own error repeats a parameter."""
    store = DynamoMemoryStore(clients.dynamodb, "memory", InMemoryArchive(), lambda: START)
    session: Any = a_session(KEY, epoch="e1")
    change = Change(key=KEY, creates=session, turn=a_turn(1, "my secret")[0])
    broken = DynamoMemoryStore(clients.dynamodb, 5, InMemoryArchive(), lambda: START)  # type: ignore[arg-type]  # a table of the wrong type
    for which in (store, broken):
        with pytest.raises(StoreError) as caught:
            which.write(change)
        shown = "".join(traceback.format_exception(caught.value))
        assert "my secret" not in str(caught.value)
        assert "'my secret'" not in shown
        assert "a-secret-session" not in shown
