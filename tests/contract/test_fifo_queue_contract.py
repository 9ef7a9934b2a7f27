"""The reference model of the queue against emulated queues: they agree on what the design needs."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from contract.conftest import MINISTACK, MOTO
from support.fifo_queue import InMemoryFifoQueue, ManualClock
from support.sessions import START

if TYPE_CHECKING:
    from support.aws import Services

pytestmark = pytest.mark.parametrize("backend", ["in-memory", MOTO, MINISTACK])

VISIBILITY_SECONDS = 1
MAX_RECEIVE_COUNT = 2

_numbers = itertools.count(1)


class Queue(Protocol):
    def send(self, group: str, deduplication_id: str, body: str) -> str: ...
    def receive(self, max_messages: int = 10) -> list[Any]: ...
    def delete(self, receipt: str) -> bool: ...
    def change_visibility(self, receipt: str, seconds: float) -> bool: ...
    def advance(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class Message:
    body: str
    receipt: str
    receive_count: int


@dataclass
class EmulatedQueue:
    """An emulated queue with the methods of the model; time passes by waiting."""

    services: Services
    url: str

    def send(self, group: str, deduplication_id: str, body: str) -> str:
        return self.services.sqs.send_message(
            QueueUrl=self.url,
            MessageGroupId=group,
            MessageDeduplicationId=deduplication_id,
            MessageBody=body,
        )["MessageId"]

    def receive(self, max_messages: int = 10) -> list[Message]:
        answer = self.services.sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=max_messages,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        return [
            Message(
                one["Body"], one["ReceiptHandle"], int(one["Attributes"]["ApproximateReceiveCount"])
            )
            for one in answer.get("Messages", [])
        ]

    def delete(self, receipt: str) -> bool:
        self.services.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=receipt)
        return True

    def change_visibility(self, receipt: str, seconds: float) -> bool:
        self.services.sqs.change_message_visibility(
            QueueUrl=self.url, ReceiptHandle=receipt, VisibilityTimeout=int(seconds)
        )
        return True

    def advance(self, seconds: float) -> None:
        time.sleep(seconds + 0.1)


@dataclass
class Queues:
    queue: Queue
    dead_letters: Queue


@pytest.fixture
def queues(services_of_backend: Services | None) -> Queues:
    if services_of_backend is None:
        clock = ManualClock(START)
        dead = InMemoryFifoQueue(clock)
        queue = InMemoryFifoQueue(
            clock, VISIBILITY_SECONDS, max_receive_count=MAX_RECEIVE_COUNT, dead_letters=dead
        )
        return Queues(queue, dead)
    sqs, number = services_of_backend.sqs, next(_numbers)
    attributes: dict[Any, str] = {
        "FifoQueue": "true",
        "DeduplicationScope": "messageGroup",
        "FifoThroughputLimit": "perMessageGroupId",
        "VisibilityTimeout": str(VISIBILITY_SECONDS),
    }
    dead_url = sqs.create_queue(QueueName=f"dead-{number}.fifo", Attributes=attributes)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead_url, AttributeNames=["QueueArn"])["Attributes"]
    redrive = {"deadLetterTargetArn": arn["QueueArn"], "maxReceiveCount": MAX_RECEIVE_COUNT}
    url = sqs.create_queue(
        QueueName=f"queue-{number}.fifo",
        Attributes=attributes | {"RedrivePolicy": json.dumps(redrive)},
    )["QueueUrl"]
    return Queues(
        EmulatedQueue(services_of_backend, url), EmulatedQueue(services_of_backend, dead_url)
    )


@pytest.fixture
def queue(queues: Queues) -> Queue:
    return queues.queue


def bodies(queue: Queue, max_messages: int = 10) -> list[str]:
    return [message.body for message in queue.receive(max_messages)]


def send(queue: Queue, *names: str) -> None:
    """Send messages whose group is the first letter of their body."""
    for name in names:
        queue.send(name[0], name, name)


def test_a_batch_holds_several_groups_each_in_order(queue: Queue) -> None:
    send(queue, "a1", "b1", "a2", "b2", "a3")
    got = bodies(queue)
    assert sorted(got) == ["a1", "a2", "a3", "b1", "b2"]
    assert [one for one in got if one[0] == "a"] == ["a1", "a2", "a3"]


def test_a_group_in_flight_waits(queue: Queue) -> None:
    send(queue, "a1", "a2")
    (first,) = queue.receive(1)
    assert first.body == "a1"
    assert bodies(queue) == []
    queue.delete(first.receipt)
    assert bodies(queue) == ["a2"]


def test_a_group_in_flight_does_not_stop_another(queue: Queue) -> None:
    send(queue, "a1", "a2", "b1")
    assert bodies(queue, 1) == ["a1"]
    assert bodies(queue) == ["b1"]


def test_after_a_timeout_the_old_order_holds(queue: Queue) -> None:
    send(queue, "a1", "a2", "a3")
    assert bodies(queue, 1) == ["a1"]
    queue.advance(VISIBILITY_SECONDS)
    got = queue.receive()
    assert [(one.body, one.receive_count) for one in got] == [("a1", 2), ("a2", 1), ("a3", 1)]


def test_a_message_given_back_comes_first(queue: Queue) -> None:
    send(queue, "a1", "a2")
    first, second = queue.receive()
    queue.change_visibility(second.receipt, 0)
    queue.change_visibility(first.receipt, 0)
    assert bodies(queue) == ["a1", "a2"]


def test_a_longer_visibility_keeps_the_group_waiting(queue: Queue) -> None:
    send(queue, "a1", "a2")
    (first,) = queue.receive(1)
    queue.change_visibility(first.receipt, 60)
    queue.advance(VISIBILITY_SECONDS)
    assert bodies(queue) == []


def test_a_duplicate_is_swallowed_in_its_group_only(queue: Queue) -> None:
    queue.send("a", "same", "a1")
    queue.send("a", "same", "a2")
    queue.send("b", "same", "b1")
    assert sorted(bodies(queue)) == ["a1", "b1"]


def test_a_duplicate_is_swallowed_after_the_first_was_deleted(queue: Queue) -> None:
    queue.send("a", "same", "a1")
    (message,) = queue.receive()
    queue.delete(message.receipt)
    queue.send("a", "same", "a2")
    assert bodies(queue) == []


def test_a_message_received_too_often_moves_away(queues: Queues) -> None:
    send(queues.queue, "a1", "a2")
    for _ in range(MAX_RECEIVE_COUNT):
        (message,) = queues.queue.receive(1)
        assert message.body == "a1"
        queues.queue.change_visibility(message.receipt, 0)
    assert bodies(queues.queue) == ["a2"]
    assert bodies(queues.dead_letters) == ["a1"]
