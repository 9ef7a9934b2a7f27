"""The poller gives the compactor batches with the semantics of Lambda's event source."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import boto3
import httpx
import pytest

from integration.local_stack import RunningStack, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mypy_boto3_sqs import SQSClient

pytestmark = pytest.mark.ministack


class Doorbells:
    """Sends to the queue and reads what the compactor noted."""

    def __init__(self, stack: RunningStack) -> None:
        variables = httpx.get(f"{stack.url}/context", trust_env=False).json()["variables"]
        self.stack = stack
        self.url = variables["TURNFOLD_QUEUE_URL"]
        self.dead_letters_url = self.url.replace(".fifo", "-dead-letters.fifo")
        self.sqs: SQSClient = boto3.client(
            "sqs",
            endpoint_url=variables["AWS_ENDPOINT_URL"],
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        self._sent = 0

    def ring(self, group: str, **body: object) -> str:
        self._sent += 1
        answer = self.sqs.send_message(
            QueueUrl=self.url,
            MessageBody=json.dumps(body | {"n": self._sent}),
            MessageGroupId=group,
            MessageDeduplicationId=f"{group}-{self._sent}",
        )
        return answer["MessageId"]

    def deliveries(self, *groups: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Batches and records of the groups, in the order in which the batches ended."""
        return [
            (batch, record)
            for batch in self.stack.notes()
            for record in batch["records"]
            if record["attributes"]["MessageGroupId"] in groups
        ]

    def wait(self, count: int, *groups: str) -> list[dict[str, Any]]:
        def enough() -> list[dict[str, Any]]:
            records = [record for _, record in self.deliveries(*groups)]
            return records if len(records) >= count else []

        return wait_for(enough, 30)

    def left(self, url: str) -> int:
        names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        counts = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(value) for value in counts.values())


@pytest.fixture(scope="module")
def doorbells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doorbells]:
    running = RunningStack(tmp_path_factory.mktemp("queue"), TURNFOLD_SWEEP_SECONDS="60")
    try:
        yield Doorbells(running.wait_until_ready())
    finally:
        running.stop()


def test_a_group_arrives_in_order_after_the_delay(doorbells: Doorbells) -> None:
    ids = [doorbells.ring("order") for _ in range(12)]
    records = doorbells.wait(12, "order")
    assert [record["messageId"] for record in records] == ids
    attributes = records[0]["attributes"]
    assert attributes["ApproximateReceiveCount"] == "1"
    assert attributes["MessageDeduplicationId"].startswith("order-")
    assert {"SequenceNumber", "SentTimestamp"} <= attributes.keys()
    (batch, _) = doorbells.deliveries("order")[0]
    assert batch["started"] - int(attributes["SentTimestamp"]) / 1000 > 0.9
    assert len(batch["records"]) <= 10
    assert 0 < batch["left"] <= 5000
    assert records[0]["eventSourceARN"].endswith(":turnfold-compaction.fifo")
    wait_for(lambda: doorbells.left(doorbells.url) == 0)


def test_one_group_is_never_in_two_batches_at_once(doorbells: Doorbells) -> None:
    for _ in range(4):
        doorbells.ring("slow-a", seconds=0.2)
        doorbells.ring("slow-b", seconds=0.2)
    doorbells.wait(8, "slow-a", "slow-b")
    for group in ("slow-a", "slow-b"):
        spans = sorted({(b["started"], b["ended"]) for b, _ in doorbells.deliveries(group)})
        for (_, ended), (started, _) in pairwise(spans):
            assert ended <= started


def test_groups_are_worked_on_at_the_same_time(doorbells: Doorbells) -> None:
    doorbells.ring("long", seconds=3)
    wait_for(lambda: doorbells.left(doorbells.url) > 0)
    doorbells.ring("short")
    doorbells.wait(1, "short")
    assert not doorbells.deliveries("long") or doorbells.left(doorbells.url) == 0


def test_only_what_failed_comes_again(doorbells: Doorbells) -> None:
    doorbells.ring("partial", do="ok")
    failing = doorbells.ring("partial", do="retry-soon")
    doorbells.ring("other", do="ok")
    records = doorbells.wait(3, "partial")
    assert [r["messageId"] for r in records].count(failing) == 2
    assert len(records) == 3
    assert len(doorbells.wait(1, "other")) == 1
    again = [r for r in records if r["messageId"] == failing][1]
    assert again["attributes"]["ApproximateReceiveCount"] == "2"
    wait_for(lambda: doorbells.left(doorbells.url) == 0)


def test_what_keeps_failing_goes_to_the_dead_letters(doorbells: Doorbells) -> None:
    before = doorbells.left(doorbells.dead_letters_url)
    doorbells.ring("failing", do="fail")
    doorbells.ring("raising", do="raise")
    wait_for(lambda: doorbells.left(doorbells.dead_letters_url) == before + 2, 40)
    counts = [
        record["attributes"]["ApproximateReceiveCount"]
        for _, record in doorbells.deliveries("failing")
    ]
    assert counts == ["1", "2", "3"]
    assert doorbells.left(doorbells.url) == 0
    assert "the batch failed" in doorbells.stack.log


def test_doorbells_survive_a_kill(tmp_path: Path) -> None:
    running = RunningStack(tmp_path).wait_until_ready()
    bells = Doorbells(running)
    bells.ring("done")
    bells.wait(1, "done")
    wait_for(lambda: bells.left(bells.url) == 0)
    waiting = {bells.ring("kept", note=n) and n for n in ("a", "b")}
    running.process.kill()
    running.process.wait()
    again = RunningStack(tmp_path).wait_until_ready()
    try:
        bells = Doorbells(again)
        records = bells.wait(2, "kept")
        assert {json.loads(record["body"])["note"] for record in records} == waiting
        assert len(bells.deliveries("done")) == 1
    finally:
        again.stop()
