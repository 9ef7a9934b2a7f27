"""Bringing dead letters back: by SQS itself where it can, else by hand, and never losing one."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from turnfold.adapters.dead_letters import DeadLetters
from turnfold.cli.main import main
from turnfold.domain.errors import StoreError


class Queues:
    """As much of an SQS client as is used."""

    def __init__(self, messages: int, refusal: str | None = None) -> None:
        self.dead = [
            {
                "MessageId": f"m{number}",
                "Body": f"body {number}",
                "ReceiptHandle": f"r{number}",
                "Attributes": {"MessageGroupId": f"group {number % 2}"},
            }
            for number in range(messages)
        ]
        self.refusal = refusal
        self.calls: list[tuple[str, str]] = []

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        return {"Attributes": {"QueueArn": "arn", "ApproximateNumberOfMessages": len(self.dead)}}

    def start_message_move_task(self, **asked: Any) -> dict[str, Any]:
        assert asked == {"SourceArn": "arn"}
        if self.refusal:
            raise ClientError({"Error": {"Code": self.refusal}}, "StartMessageMoveTask")
        return {"TaskHandle": "task"}

    def receive_message(self, **_: Any) -> dict[str, Any]:
        page = self.dead[:10]
        return {"Messages": page} if page else {}

    def send_message(self, **asked: Any) -> None:
        assert asked["QueueUrl"] == "queue"
        assert asked["MessageDeduplicationId"].startswith("redrive-m")
        self.calls.append(("send", f"{asked['MessageGroupId']}: {asked['MessageBody']}"))

    def delete_message(self, **asked: Any) -> None:
        assert asked["QueueUrl"] == "dead"
        self.calls.append(("delete", asked["ReceiptHandle"]))
        self.dead = [one for one in self.dead if one["ReceiptHandle"] != asked["ReceiptHandle"]]


def letters(queues: Any) -> DeadLetters:
    return DeadLetters(queues, "dead", "queue")


def test_sqs_moves_them_itself_where_it_can() -> None:
    queues = Queues(3)
    assert letters(queues).move().task == "task"
    assert not queues.calls
    assert letters(queues).count() == 3


@pytest.mark.parametrize("code", ["InvalidAction", "AWS.SimpleQueueService.UnsupportedOperation"])
def test_elsewhere_each_is_sent_in_order_before_it_is_deleted(code: str) -> None:
    queues = Queues(13, code)
    moved = letters(queues).move()
    assert (moved.task, moved.messages) == (None, 13)
    assert letters(queues).count() == 0
    assert queues.calls == [
        call
        for number in range(13)
        for call in (("send", f"group {number % 2}: body {number}"), ("delete", f"r{number}"))
    ]


def test_a_refusal_is_said() -> None:
    with pytest.raises(StoreError, match="AccessDenied"):
        letters(Queues(1, "AccessDenied")).move()


def test_the_command_line_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["redrive", "--help"])
    assert ended.value.code == 0
    assert "compaction,archive" in capsys.readouterr().out
