"""All functions of a stack in this process: their real handlers, over emulated services."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.local.queue_event import queue_event
from support.api import KEYS, Api
from turnfold.adapters.aws_clients import AwsClients
from turnfold.adapters.dynamo_keys import META, partition_key
from turnfold.bootstrap import Turnfold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.aws import Services
    from turnfold.domain.sessions import SessionKey

VOCABULARY = Path(__file__).resolve().parents[2] / "layers" / "vocab" / "vocabulary"

SECONDS = 180.0
"""What the functions have; with less, the compactor keeps all of it for its last step."""

PATIENCE = 60.0
"""Seconds until the queues must be empty. Messages that come again later are waited for."""


class Context:
    """The part of Lambda's context that the functions read."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._end = time.monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        return int((self._end - time.monotonic()) * 1000)


class Handlers:
    """A client of the API, and what runs behind the queues."""

    def __init__(self, services: Services, turnfold: Turnfold) -> None:
        from api import app as api
        from archivist import app as archivist
        from compactor import app as compactor
        from sweeper import app as sweeper

        self.services = services
        self.turnfold = turnfold
        self.api = Api(api.handler)
        self._sweeper: Callable[..., dict[str, int]] = sweeper.handler
        self._queues: dict[str, Callable[..., Any]] = {
            services.queue_url: compactor.handler,
            services.archive_queue_url: archivist.handler,
        }
        self.modules: tuple[Any, ...] = (api, archivist, compactor, sweeper)

    def sweep(self) -> dict[str, int]:
        """One pass of the sweeper."""
        return self._sweeper({}, Context())

    def drain(self, patience: float = PATIENCE) -> None:
        """Let compactor and archivist work until nothing waits in their queues."""
        deadline = time.monotonic() + patience
        while waiting := [one for one in self._queues.items() if self._is_waiting(one[0])]:
            assert time.monotonic() < deadline, "the queues do not get empty"
            delivered = [self._deliver(url, handler) for url, handler in waiting]
            if not any(delivered):
                time.sleep(0.05)

    def _deliver(self, url: str, handler: Callable[..., Any]) -> bool:
        """Hand one batch over, as Lambda's event source does; whether there was one."""
        sqs = self.services.sqs
        answer = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"]
        )
        messages = answer.get("Messages", [])
        if messages:
            given = handler(queue_event(messages, "arn:aws:sqs:us-east-1:0:any.fifo"), Context())
            failed = {one["itemIdentifier"] for one in given["batchItemFailures"]}
            for one in messages:
                if one["MessageId"] not in failed:
                    sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
        return bool(messages)

    def _is_waiting(self, url: str) -> bool:
        counted: Any = self.services.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])[
            "Attributes"
        ]
        names = ("", "NotVisible", "Delayed")
        return any(int(counted.get(f"ApproximateNumberOfMessages{name}", 0)) for name in names)


@contextlib.contextmanager
def running_handlers(services: Services, folder: Path, **variables: str) -> Iterator[Handlers]:
    """The handlers over these services, with the API keys of `support.api`."""
    keys = folder / "keys.json"
    keys.write_text(json.dumps(KEYS), encoding="utf-8")
    turnfold = Turnfold(
        {
            "TURNFOLD_TABLE": services.table,
            "TURNFOLD_BUCKET": services.bucket,
            "TURNFOLD_QUEUE_URL": services.queue_url,
            "TURNFOLD_ARCHIVE_QUEUE_URL": services.archive_queue_url,
            "TURNFOLD_ERASURE_SETTLE_SECONDS": "1",
            "TURNFOLD_KEY_FILE": str(keys),
            "TIKTOKEN_CACHE_DIR": str(VOCABULARY),
        }
        | variables
    )
    turnfold.__dict__["_clients"] = clients_of(services)
    handlers = Handlers(services, turnfold)
    before = [module.service for module in handlers.modules]
    for module in handlers.modules:
        module.service = lambda: turnfold
    try:
        yield handlers
    finally:
        for module, service in zip(handlers.modules, before, strict=True):
            module.service = service


def clients_of(services: Services) -> AwsClients:
    """The services' clients as the functions hold theirs, so that calls can be counted."""
    clients = AwsClients()
    clients.__dict__.update(dynamodb=services.dynamodb, s3=services.s3, sqs=services.sqs)
    return clients


def let_expire(services: Services, key: SessionKey) -> None:
    """As if the last commit to a session had been long ago."""
    services.dynamodb.update_item(
        TableName=services.table,
        Key={"PK": {"S": partition_key(key)}, "SK": {"S": META}},
        UpdateExpression="SET updated_at = :then, due_at = :then",
        ExpressionAttributeValues={":then": {"S": "2020-01-01T00:00:00.000000Z"}},
    )
