"""Searches by meaning over the handlers, with DynamoDB's vector index as MiniStack has it."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.queue_event import queue_event
from integration.local_stack import REPOSITORY, RunningStack, wait_for
from support.api import KEYS, Api, Session, turn
from support.aws import Services, aws_environment, make_services
from support.fake_embeddings import FakeEmbeddings
from support.ministack import running_ministack
from turnfold.adapters.aws_clients import AwsClients
from turnfold.bootstrap import Turnfold
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.ministack

VOCABULARY = REPOSITORY / "layers" / "vocab" / "vocabulary"
DIMENSIONS = "256"
NEEDLE = "The lighthouse has white stripes."
QUESTION = "stripes of that lighthouse"
TURNS = 20


class Context:
    """The part of Lambda's context that the compactor reads."""

    def get_remaining_time_in_millis(self) -> int:
        return 100_000


@pytest.fixture(scope="module")
def embeddings() -> Iterator[FakeEmbeddings]:
    with FakeEmbeddings() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("ministack")
    with running_ministack(folder) as address, aws_environment(address):
        yield address


@pytest.fixture(scope="module")
def services(endpoint: str) -> Services:
    return make_services(endpoint, {"VectorIndex": "true", "EmbeddingDimensions": DIMENSIONS})


@pytest.fixture(scope="module")
def make(
    services: Services, embeddings: FakeEmbeddings, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Turnfold]:
    """Makes a service on that table."""
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_text(json.dumps(KEYS), encoding="utf-8")
    clients = AwsClients()

    def made(**variables: str) -> Turnfold:
        service = Turnfold(
            {
                "TURNFOLD_TABLE": services.table,
                "TURNFOLD_BUCKET": services.bucket,
                "TURNFOLD_QUEUE_URL": services.queue_url,
                "TURNFOLD_ARCHIVE_QUEUE_URL": services.archive_queue_url,
                "TURNFOLD_KEY_FILE": str(keys),
                "TIKTOKEN_CACHE_DIR": str(VOCABULARY),
                "TURNFOLD_VECTOR_INDEX": "true",
                "TURNFOLD_EMBEDDING_DIMENSIONS": DIMENSIONS,
                "TURNFOLD_ERASURE_SETTLE_SECONDS": "1",
                "OPENAI_API_KEY": "a-key",
                "OPENAI_BASE_URL": embeddings.url,
            }
            | variables
        )
        service.__dict__["_clients"] = clients
        return service

    return made


@pytest.fixture
def turnfold(make: Callable[..., Turnfold]) -> Turnfold:
    return make()


def client_of(turnfold: Turnfold, monkeypatch: pytest.MonkeyPatch, key: str = "local") -> Api:
    from api import app

    monkeypatch.setattr(app, "service", lambda: turnfold)
    return Api(app.handler, key)


@pytest.fixture
def api(turnfold: Turnfold, monkeypatch: pytest.MonkeyPatch) -> Api:
    return client_of(turnfold, monkeypatch)


def talk(session: Session, needle_at: int = 5, turns: int = TURNS) -> None:
    for number in range(1, turns + 1):
        text = NEEDLE if number == needle_at else f"We spoke about topic {number}."
        session.commit(number, text)


def compact(turnfold: Turnfold, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the compactor answer all doorbells that wait."""
    from compactor import app

    handler: Any = app.handler
    monkeypatch.setattr(app, "service", lambda: turnfold)
    while True:
        answer: Any = services.sqs.receive_message(
            QueueUrl=services.queue_url, MaxNumberOfMessages=10, AttributeNames=["All"]
        )
        messages = answer.get("Messages", [])
        if not messages:
            return
        event = queue_event(messages, "arn:aws:sqs:us-east-1:0:doorbells.fifo")
        assert handler(event, Context()) == {"batchItemFailures": []}
        for one in messages:
            services.sqs.delete_message(
                QueueUrl=services.queue_url, ReceiptHandle=one["ReceiptHandle"]
            )


@pytest.fixture
def talked(
    api: Api, turnfold: Turnfold, services: Services, monkeypatch: pytest.MonkeyPatch
) -> Session:
    """A session of 20 turns, the fifth of which speaks of a lighthouse, after compaction."""
    session = api.session(f"s-{uuid.uuid4().hex}")
    talk(session)
    compact(turnfold, services, monkeypatch)
    return session


def search(session: Session, query: str = QUESTION, **members: object) -> Any:
    return session("POST", "/search", {"query": query, **members}).ok()


def test_meaning_finds_the_turn(talked: Session) -> None:
    found = search(talked, mode="semantic", k=3)
    assert found["mode"] == "semantic"
    assert found["items"][0]["turn"] == 5
    assert found["items"][0]["matched_by"] == ["semantic"]
    assert 0 < found["items"][0]["score"] <= 1


def test_a_search_asks_the_index_once_and_reads_no_vectors(
    talked: Session, make: Callable[..., Turnfold], services: Services
) -> None:
    counted = make()
    counted.__dict__["_clients"] = _Clients(services)
    with services.counted_calls() as calls:
        counted.search(SessionKey("local", talked.id), QUESTION, 3)
    assert calls.pop("SearchVectors") == 1
    # Working memory, and words: turns that are in no piece of the index of words yet.
    assert set(calls) <= {"Query", "ListObjectsV2", "GetObject"}


class _Clients(AwsClients):
    """Clients whose calls are counted."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self.__dict__ |= {"dynamodb": services.dynamodb, "s3": services.s3, "sqs": services.sqs}


def test_a_hybrid_search_joins_words_and_meaning(talked: Session) -> None:
    answer = search(talked)
    assert answer["mode"] == "hybrid"
    assert answer["items"][0]["turn"] == 5
    assert answer["items"][0]["matched_by"] == ["stripes", "lighthouse", "semantic"]


def test_a_context_quotes_what_the_index_found(talked: Session) -> None:
    path = "/context?query=stripes%20of%20that%20lighthouse&recall=1&max_tokens=3000"
    context = talked("GET", path).ok()
    assert [one["turn"] for one in context["regions"]["recall"]] == [5]
    assert NEEDLE in str(context["messages"])


def test_every_turn_is_embedded_once(
    talked: Session,
    turnfold: Turnfold,
    services: Services,
    embeddings: FakeEmbeddings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embeddings.texts.clear()
    talked.commit(TURNS + 1, "The xylograph stands in cabinet nine.")
    compact(turnfold, services, monkeypatch)
    (text,) = embeddings.texts
    assert "xylograph" in text
    found = search(talked, "xylograph in a cabinet", mode="semantic", k=1)
    assert found["items"][0]["turn"] == TURNS + 1


def test_no_session_and_no_tenant_finds_anothers_turns(
    talked: Session,
    turnfold: Turnfold,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stranger = client_of(turnfold, monkeypatch, "local-2")
    namesake = stranger.session(talked.id)
    talk(namesake, needle_at=9)
    beside = Api(talked.api.handler).session(f"{talked.id}-2")
    talk(beside, needle_at=0)
    compact(turnfold, services, monkeypatch)
    for mode in ("semantic", "hybrid"):
        assert search(namesake, mode=mode, k=1)["items"][0]["turn"] == 9
        assert search(talked, mode=mode, k=1)["items"][0]["turn"] == 5
        near = search(beside, mode=mode, k=100)["items"]
        assert NEEDLE not in str(near)
        everywhere = stranger("POST", "/v1/search", {"query": QUESTION, "mode": mode}).ok()
        assert {item["session_id"] for item in everywhere["items"]} == {talked.id}
        assert "topic 9." not in str(everywhere["items"])


def test_an_erasure_counts_the_vectors_and_leaves_none(
    talked: Session, turnfold: Turnfold, services: Services
) -> None:
    key = SessionKey("local", talked.id)
    erasure = turnfold.delete.session(key)

    def erased() -> Any:
        turnfold.tend.tend(key)
        receipt = turnfold.delete.receipt("local", erasure.erasure_id)
        return receipt if receipt.finished_at else None

    receipt = wait_for(erased)
    assert receipt.removed.vectors == TURNS
    assert receipt.removed.items > TURNS
    left = services.dynamodb.query(
        TableName=services.table,
        KeyConditionExpression="PK = :pk",
        ExpressionAttributeValues={":pk": {"S": f"T#local#S#{talked.id}"}},
    )
    assert left["Items"] == []


def test_a_table_without_the_index_searches_by_words_and_says_so_to_who_asks_for_more(
    talked: Session,
    make: Callable[..., Turnfold],
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table: Any = services.dynamodb.describe_table(TableName=services.table)["Table"]
    definitions = [
        one for one in table["AttributeDefinitions"] if one["AttributeName"] != "vec_scope"
    ]
    indexes: Any = [
        {name: index[name] for name in ("IndexName", "KeySchema", "Projection")}
        for index in table["GlobalSecondaryIndexes"]
    ]
    services.dynamodb.create_table(
        TableName="plain",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=table["KeySchema"],
        AttributeDefinitions=definitions,
        GlobalSecondaryIndexes=indexes,
    )
    plain = make(TURNFOLD_TABLE="plain")
    session = client_of(plain, monkeypatch).session("s1")
    talk(session)
    compact(plain, services, monkeypatch)
    answer = search(session)
    assert (answer["mode"], answer["items"][0]["turn"]) == ("keyword", 5)
    for mode in ("semantic", "hybrid"):
        body = {"query": QUESTION, "mode": mode}
        for refused in (
            session("POST", "/search", body),
            session.api("POST", "/v1/search", body),
        ):
            problem = refused.problem(503, "vectors_unavailable")
            assert "mode keyword" in problem["detail"]
            assert refused.headers["retry-after"] == "1"
    assert session("GET", "/context?query=lighthouse&recall=1").status == 200


# ---------------------------------------------------------------------------------- the local stack


@pytest.mark.slow
def test_the_local_stack_adds_the_index_to_a_table_that_lacks_it(
    tmp_path: Path, embeddings: FakeEmbeddings
) -> None:
    """`TURNFOLD_VECTOR_INDEX=true make run`, on data of a stack that was run without."""
    import httpx

    variables: Any = {
        "TURNFOLD_FUNCTIONS": str(REPOSITORY / "functions"),
        "TURNFOLD_TEMPLATE": str(REPOSITORY / "template.yaml"),
        "TURNFOLD_EMBEDDING_DIMENSIONS": DIMENSIONS,
        "OPENAI_API_KEY": "a-key",
        "OPENAI_BASE_URL": embeddings.url,
    }
    path = "/v1/sessions/s1"

    def commit(client: httpx.Client, number: int, text: str) -> None:
        answer = client.post(f"{path}/turns", json={"messages": turn(number, text)})
        assert answer.status_code == 201, answer.text

    def by_meaning(client: httpx.Client) -> int | None:
        body = {"query": QUESTION, "mode": "semantic", "k": 1}
        answer = client.post(f"{path}/search", json=body)
        # 503 while the index is being built.
        assert answer.status_code in (200, 503), answer.text
        items = answer.json()["items"] if answer.status_code == 200 else []
        return items[0]["turn"] if items else None

    def client_of_stack(running: RunningStack) -> httpx.Client:
        headers = {"Authorization": "Bearer local"}
        return httpx.Client(base_url=running.url, headers=headers, timeout=30, trust_env=False)

    running = RunningStack(tmp_path, **variables).wait_until_ready()
    try:
        with client_of_stack(running) as client:
            for number in range(1, TURNS + 1):
                commit(client, number, NEEDLE if number == 5 else "")
            assert wait_for(lambda: by_meaning(client)) == 5
    finally:
        running.stop()
    running = RunningStack(tmp_path, TURNFOLD_VECTOR_INDEX="true", **variables).wait_until_ready()
    try:
        with client_of_stack(running) as client:
            # The next compaction embeds the session for the index.
            commit(client, TURNS + 1, "")
            assert wait_for(lambda: by_meaning(client), 60) == 5
            erasure = client.delete(path).json()["erasure_id"]

            def erased() -> Any:
                receipt = client.get(f"/v1/erasures/{erasure}").json()
                return receipt if receipt["status"] == "erased" else None

            assert wait_for(erased, 60)["removed"]["vectors"] > TURNS
    finally:
        running.stop()
