"""The reference model of the queue, since other tests trust it."""

from datetime import UTC, datetime

import pytest

from support.fifo_queue import InMemoryFifoQueue, ManualClock


@pytest.fixture
def queue() -> InMemoryFifoQueue:
    return InMemoryFifoQueue(clock=ManualClock(datetime(2026, 1, 1, tzinfo=UTC)))


def bodies(queue: InMemoryFifoQueue, max_messages: int = 10) -> list[str]:
    return [message.body for message in queue.receive(max_messages)]


def test_a_batch_keeps_the_order_of_each_group(queue: InMemoryFifoQueue) -> None:
    for body in ("a1", "b1", "a2", "b2"):
        queue.send(body[0], body, body)
    assert bodies(queue) == ["a1", "b1", "a2", "b2"]


def test_a_group_in_flight_is_not_handed_out(queue: InMemoryFifoQueue) -> None:
    for body in ("a1", "a2", "b1"):
        queue.send(body[0], body, body)
    (first,) = queue.receive(1)
    assert bodies(queue) == ["b1"]
    assert queue.delete(first.receipt)
    assert bodies(queue) == ["a2"]


def test_a_timed_out_message_comes_again_before_younger_ones(queue: InMemoryFifoQueue) -> None:
    for body in ("a1", "a2"):
        queue.send("a", body, body)
    (first,) = queue.receive(1)
    queue.advance(31)
    assert not queue.delete(first.receipt)
    again = queue.receive()
    assert [(one.body, one.receive_count) for one in again] == [("a1", 2), ("a2", 1)]
    assert queue.delete(again[0].receipt)


def test_one_message_still_in_flight_blocks_its_group(queue: InMemoryFifoQueue) -> None:
    for body in ("a1", "a2"):
        queue.send("a", body, body)
    first, second = queue.receive()
    assert queue.change_visibility(first.receipt, 0)
    assert bodies(queue) == []
    assert queue.delete(second.receipt)
    assert bodies(queue) == ["a1"]


def test_duplicates_are_swallowed_by_group_for_five_minutes(queue: InMemoryFifoQueue) -> None:
    first = queue.send("a", "same", "1")
    assert queue.send("a", "same", "2") == first
    assert queue.send("b", "same", "3") != first
    for message in queue.receive():
        assert queue.delete(message.receipt)
    queue.send("a", "same", "4")
    assert bodies(queue) == []
    queue.advance(300)
    queue.send("a", "same", "5")
    assert bodies(queue) == ["5"]


def test_spent_messages_move_to_the_dead_letters() -> None:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    dead = InMemoryFifoQueue(clock=clock)
    queue = InMemoryFifoQueue(clock=clock, max_receive_count=2, dead_letters=dead)
    queue.send("a", "1", "a1")
    queue.send("a", "2", "a2")
    for _ in range(2):
        (message,) = queue.receive(1)
        assert message.body == "a1"
        queue.advance(31)
    assert bodies(queue) == ["a2"]
    assert bodies(dead) == ["a1"]


def test_a_delayed_queue_hands_out_late(queue: InMemoryFifoQueue) -> None:
    queue.delay_seconds = 2
    queue.send("a", "1", "a1")
    assert bodies(queue) == []
    queue.advance(2)
    assert bodies(queue) == ["a1"]


def test_a_batch_has_ten_messages_at_most(queue: InMemoryFifoQueue) -> None:
    for number in range(12):
        queue.send("a", str(number), str(number))
    assert bodies(queue, 99) == [str(number) for number in range(10)]
