"""The workers: batches from the queues to the handlers, at once or held up half way."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.reports.aws_gate import KilledError, Pause

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from support.fifo_queue import InMemoryFifoQueue, ReceivedMessage
    from support.reports.stack import Stack

MOST_BATCHES = 3000
SECONDS = 60


class LambdaContext:
    """What handlers ask their context for."""

    def get_remaining_time_in_millis(self) -> int:
        return 170_000


def event_of(batch: Sequence[ReceivedMessage]) -> dict[str, Any]:
    """The event of Lambda's SQS event source."""
    return {
        "Records": [
            {
                "messageId": one.message_id,
                "receiptHandle": one.receipt,
                "body": one.body,
                "attributes": {
                    "ApproximateReceiveCount": str(one.receive_count),
                    "MessageGroupId": one.group,
                    "MessageDeduplicationId": one.deduplication_id,
                },
                "eventSource": "aws:sqs",
            }
            for one in batch
        ]
    }


@dataclass
class HeldWorker:
    """A compactor in a thread of its own, waiting at a point."""

    thread: threading.Thread
    let_go: Callable[[], None]
    pause: Pause
    errors: list[BaseException]


@dataclass
class Workers:
    """Compactor, archivist and sweeper of a case."""

    stack: Stack
    held: HeldWorker | None = None
    last: list[ReceivedMessage] = field(default_factory=list)
    stopped: int = 0
    """How many workers came to the point where they were to stop."""

    def compact(self, batch: Sequence[ReceivedMessage]) -> list[str]:
        """One invocation of the compactor; the ids that have to come again, in order."""
        from compactor import app

        return _failures(app.handler(event_of(batch), LambdaContext()))  # type: ignore[arg-type]  # what Lambda gives, as far as it is read

    def tend(self, batch: Sequence[ReceivedMessage]) -> list[str]:
        """One invocation of the archivist."""
        from archivist import app

        return _failures(app.handler(event_of(batch), LambdaContext()))  # type: ignore[arg-type]  # what Lambda gives, as far as it is read

    def sweep(self) -> None:
        """One pass of the sweeper."""
        from sweeper import app

        app.handler({}, LambdaContext())  # type: ignore[arg-type]  # what Lambda gives, as far as it is read

    def drain(self) -> None:
        """Deliver until both queues are empty, letting time pass where messages wait."""
        stack = self.stack
        queues = ((stack.queue, self.compact), (stack.archive_queue, self.tend))
        for _ in range(MOST_BATCHES):
            busy = [self._deliver(queue, handle) for queue, handle in queues]
            if any(busy):
                continue
            if not any(len(queue) for queue, _ in queues):
                return
            waits = [queue.next_visible_at for queue, _ in queues]
            # The clock ticks: a message may have become visible just now.
            stack.clock.wait_until(min((one for one in waits if one), default=stack.clock.now))
        raise AssertionError("the queues do not get empty")

    def _deliver(
        self, queue: InMemoryFifoQueue, handle: Callable[[Sequence[ReceivedMessage]], list[str]]
    ) -> bool:
        batch = queue.receive()
        if not batch:
            return False
        if queue is self.stack.queue:
            self.last = batch
        _done(queue, batch, handle(batch))
        return True

    def hold(self, at: str) -> None:
        """Start a compactor that stops at a point: while the model answers, or before it writes."""
        queue = self.stack.queue
        # Every bell that was rung by now can be heard, the last one too.
        self.stack.clock.advance(queue.delay_seconds + 1)
        model, release, pause = self.stack.model, threading.Event(), Pause()
        model.reached.clear()
        in_model = "during" in at or "before_model" in at
        errors: list[BaseException] = []

        def work() -> None:
            pauses = self.stack.gate.pauses
            pauses[threading.get_ident()] = pause
            try:
                while self._deliver(queue, self.compact):
                    pass
            except BaseException as error:  # noqa: BLE001 - shown by the thread that waits for it
                errors.append(error)
            finally:
                pauses.pop(threading.get_ident(), None)

        thread = threading.Thread(target=work, daemon=True)
        if in_model:
            model.hold = release
            self.held = HeldWorker(thread, release.set, pause, errors)
            thread.start()
            self.stopped += _wait(thread, model.reached)
        else:
            model.when_summarised = lambda: setattr(pause, "armed", True)
            self.held = HeldWorker(thread, pause.go_on.set, pause, errors)
            thread.start()
            self.stopped += _wait(thread, pause.reached)

    def resume(self) -> None:
        """Let the held compactor go on to its end."""
        held = self._let_go()
        if held.errors:
            raise held.errors[0]

    def kill(self) -> None:
        """End the held compactor where it is; its messages come again when nobody holds them."""
        assert self.held is not None, "no worker is paused"
        self.held.pause.killed = True
        held = self._let_go()
        for error in held.errors:
            if not isinstance(error, KilledError):
                raise error

    def _let_go(self) -> HeldWorker:
        held, self.held = self.held, None
        assert held is not None, "no worker is paused"
        held.let_go()
        self.stack.model.hold = None
        self.stack.model.when_summarised = None
        held.thread.join(SECONDS)
        assert not held.thread.is_alive(), "the worker does not end"
        return held


def _wait(thread: threading.Thread, reached: threading.Event) -> bool:
    """Whether the point was reached; a worker that has nothing to do never reaches it."""
    while thread.is_alive() and not reached.wait(0.01):
        pass
    return reached.is_set()


def _done(
    queue: InMemoryFifoQueue, batch: Sequence[ReceivedMessage], failed: Sequence[str]
) -> None:
    for one in batch:
        if one.message_id not in failed:
            queue.delete(one.receipt)


def _failures(result: dict[str, Any]) -> list[str]:
    return [one["itemIdentifier"] for one in result["batchItemFailures"]]
