"""Bringing dead letters back to the queue that they came from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from turnfold.adapters.aws_errors import mapped_errors

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

PAGE = 10
HIDDEN_SECONDS = 60
UNKNOWN_ACTION = frozenset({"InvalidAction", "UnsupportedOperation", "UnknownOperationException"})


@dataclass(frozen=True, slots=True)
class Moved:
    """What was done: a task of SQS that goes on by itself, or messages that were moved."""

    task: str | None = None
    messages: int = 0


class DeadLetters:
    """The dead-letter queue of one queue."""

    def __init__(self, client: "SQSClient", dead_letter_url: str, queue_url: str) -> None:
        """Name both queues."""
        self._client = client
        self._dead_letter_url = dead_letter_url
        self._queue_url = queue_url

    def count(self) -> int:
        """About how many there are. Raises `StoreError`."""
        with mapped_errors("dead letters"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._dead_letter_url, AttributeNames=["ApproximateNumberOfMessages"]
            )
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])

    def move(self) -> Moved:
        """Send all back. SQS does it by itself; where it cannot, one by one. Raises `StoreError`.

        One that is moved twice does no harm: a doorbell carries no work.
        """
        from botocore.exceptions import ClientError

        with mapped_errors("redrive"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._dead_letter_url, AttributeNames=["QueueArn"]
            )
            try:
                started = self._client.start_message_move_task(
                    SourceArn=answer["Attributes"]["QueueArn"]
                )
            except ClientError as error:
                if error.response["Error"]["Code"].rpartition(".")[2] not in UNKNOWN_ACTION:
                    raise
                return Moved(messages=self._move_by_hand())
        return Moved(task=started["TaskHandle"])

    def _move_by_hand(self) -> int:
        moved = 0
        while True:
            answer = self._client.receive_message(
                QueueUrl=self._dead_letter_url,
                MaxNumberOfMessages=PAGE,
                VisibilityTimeout=HIDDEN_SECONDS,
                MessageSystemAttributeNames=["MessageGroupId"],
            )
            messages = answer.get("Messages", [])
            if not messages:
                return moved
            for message in messages:
                self._move_one(message)
                moved += 1

    def _move_one(self, message: "MessageTypeDef") -> None:
        """Send first: what happens in between is a repetition, never a loss."""
        self._client.send_message(
            QueueUrl=self._queue_url,
            MessageBody=message["Body"],
            MessageGroupId=message["Attributes"]["MessageGroupId"],
            MessageDeduplicationId=f"redrive-{message['MessageId']}",
        )
        self._client.delete_message(
            QueueUrl=self._dead_letter_url, ReceiptHandle=message["ReceiptHandle"]
        )
