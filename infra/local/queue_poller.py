"""A queue as event source of a function, with the semantics of Lambda.

Each thread receives a batch, runs the function on it and deletes what it did not report as
failed. What failed stays in the queue until its visibility runs out, which the function may have
changed; the queue itself moves it to the dead-letter queue after enough attempts. One group is
never in two batches at once: the queue gives out nothing of a group that is in flight.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.local.environments import InvocationError, ThrottledError
from infra.local.queue_event import failed_messages, queue_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

    from infra.local.environments import Environments
    from infra.local.logs import LogPrinter

BATCH_SIZE = 10
# Short, so that a stop does not wait for a long poll.
WAIT_SECONDS = 1
PAUSE_AFTER_ERROR_SECONDS = 1.0


class QueuePoller:
    """Feeds a function from a FIFO queue until it is stopped."""

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        queue_arn: str,
        environments: Environments,
        logs: LogPrinter,
        threads: int = 3,
    ) -> None:
        """Prepare the threads; `start` starts them."""
        self._sqs = sqs
        self._queue_url = queue_url
        self._queue_arn = queue_arn
        self._environments = environments
        self._logs = logs
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name=f"poller-{n}", daemon=True)
            for n in range(threads)
        ]

    def start(self) -> None:
        """Begin to receive."""
        for thread in self._threads:
            thread.start()

    def request_stop(self) -> None:
        """Receive nothing more."""
        self._stop.set()

    def join(self, patience: float) -> bool:
        """Wait for the batches at work; false if some are still running."""
        deadline = time.monotonic() + patience
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                messages = self._receive()
                if messages:
                    self.process(messages)
            except (BotoCoreError, ClientError) as error:
                if not self._stop.is_set():
                    self._logs.note("warning", f"the queue does not answer: {error}")
                    self._stop.wait(PAUSE_AFTER_ERROR_SECONDS)

    def _receive(self) -> list[MessageTypeDef]:
        answer = self._sqs.receive_message(
            QueueUrl=self._queue_url,
            MaxNumberOfMessages=BATCH_SIZE,
            WaitTimeSeconds=WAIT_SECONDS,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return answer.get("Messages") or []

    def process(self, messages: Sequence[MessageTypeDef]) -> None:
        """Run one batch and delete what succeeded."""
        event = queue_event(messages, self._queue_arn)
        ids = [message["MessageId"] for message in messages]
        failed = failed_messages(*self._invoke(event, ids))
        done = [message for message in messages if message["MessageId"] not in failed]
        if done:
            answer = self._sqs.delete_message_batch(
                QueueUrl=self._queue_url,
                Entries=[
                    {"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]}
                    for n, message in enumerate(done)
                ],
            )
            for failure in answer.get("Failed") or []:
                reason = failure.get("Message", "")
                self._logs.note("warning", f"a done message could not be deleted: {reason}")

    def _invoke(self, event: dict[str, Any], ids: list[str]) -> tuple[Any, list[str]]:
        everything = {"batchItemFailures": [{"itemIdentifier": id_} for id_ in ids]}
        try:
            return self._environments.invoke(event), ids
        except ThrottledError:
            return everything, ids
        except InvocationError as error:
            if not self._stop.is_set():
                name = self._environments.function.name
                self._logs.note("error", f"{name} failed on {len(ids)} messages: {error}")
                if error.trace:
                    self._logs.line(name, error.trace.rstrip())
            return everything, ids
