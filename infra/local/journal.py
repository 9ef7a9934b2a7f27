"""A journal of what the emulated table and queue acknowledged.

MiniStack keeps tables and queues in memory and writes them down only at a clean shutdown. A
journal on the wire level makes every acknowledged write survive `kill -9` too: a write's
request is appended to a file before its answer leaves, and the file is replayed at the next
start. Objects need none of this: MiniStack writes them to disk itself.

Data is handed to the operating system, not forced to the disk: it outlives every process, but
the last seconds may be missing after a power cut.

A journal is one JSON record per line:

- `define`: a request that defines a table or queue, kept for good
- `write`: a request that changed items
- `send`: a message, with its id; `delete`: that message was deleted
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Record = dict[str, Any]

DEFINITIONS = frozenset(
    {
        "DynamoDB_20120810.CreateTable",
        "DynamoDB_20120810.DeleteTable",
        "DynamoDB_20120810.UpdateTable",
        "DynamoDB_20120810.UpdateTimeToLive",
        "DynamoDB_20120810.UpdateContinuousBackups",
        "AmazonSQS.CreateQueue",
        "AmazonSQS.DeleteQueue",
        "AmazonSQS.SetQueueAttributes",
    }
)
WRITES = frozenset(
    {
        "DynamoDB_20120810.PutItem",
        "DynamoDB_20120810.UpdateItem",
        "DynamoDB_20120810.DeleteItem",
        "DynamoDB_20120810.BatchWriteItem",
        "DynamoDB_20120810.TransactWriteItems",
    }
)
RECEIVE = "AmazonSQS.ReceiveMessage"
SEND = "AmazonSQS.SendMessage"
SEND_BATCH = "AmazonSQS.SendMessageBatch"
DELETE = "AmazonSQS.DeleteMessage"
DELETE_BATCH = "AmazonSQS.DeleteMessageBatch"
PURGE = "AmazonSQS.PurgeQueue"
QUEUE_CALLS = frozenset({RECEIVE, SEND, SEND_BATCH, DELETE, DELETE_BATCH, PURGE})
JOURNALED = DEFINITIONS | WRITES | QUEUE_CALLS


@dataclass
class Backlog:
    """The messages that were sent and not deleted, by id, oldest first."""

    messages: dict[str, Record] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def apply(self, record: Record) -> None:
        """Follow one record of the journal."""
        kind = record["kind"]
        if kind == "send":
            # A repeated deduplication id is answered with the first message's id, even when that
            # message is long deleted.
            if record["id"] not in self._known:
                self._known.add(record["id"])
                self.messages[record["id"]] = record["message"]
        elif kind == "delete":
            self.messages.pop(record["id"], None)
        elif kind == "purge":
            queue = queue_name(record["queue"])
            self.messages = {
                id_: message
                for id_, message in self.messages.items()
                if queue_name(message["QueueUrl"]) != queue
            }


def queue_name(url: str) -> str:
    """The queue's name in its address, whose host and port differ between runs."""
    return url.rsplit("/", 1)[-1]


class Translator:
    """Turns answered calls into records; remembers which receipt stands for which message."""

    def __init__(self) -> None:
        """Start without receipts."""
        self._receipts: dict[str, str] = {}

    def records(self, target: str, request: Record, answer: Record) -> list[Record]:
        """Give the records that make one successful call survive."""
        if target in DEFINITIONS | WRITES:
            kind = "define" if target in DEFINITIONS else "write"
            return [{"kind": kind, "target": target, "request": request}]
        if target == RECEIVE:
            for message in answer.get("Messages") or []:
                self._receipts[message["ReceiptHandle"]] = message["MessageId"]
            return []
        if target in {SEND, SEND_BATCH}:
            return list(_sent(request, answer))
        if target == PURGE:
            return [{"kind": "purge", "queue": request["QueueUrl"]}]
        return list(self._deleted(target, request, answer))

    def _deleted(self, target: str, request: Record, answer: Record) -> Iterator[Record]:
        if target == DELETE:
            receipts = [request["ReceiptHandle"]]
        else:
            done = {entry["Id"] for entry in answer.get("Successful") or []}
            receipts = [e["ReceiptHandle"] for e in request["Entries"] if e["Id"] in done]
        for receipt in receipts:
            message_id = self._receipts.pop(receipt, None)
            if message_id is not None:
                yield {"kind": "delete", "id": message_id}


def _sent(request: Record, answer: Record) -> Iterator[Record]:
    if "Entries" not in request:
        yield {"kind": "send", "id": answer["MessageId"], "message": request}
        return
    entries = {entry["Id"]: entry for entry in request["Entries"]}
    for result in answer.get("Successful") or []:
        message = {k: v for k, v in entries[result["Id"]].items() if k != "Id"}
        message["QueueUrl"] = request["QueueUrl"]
        yield {"kind": "send", "id": result["MessageId"], "message": message}


class Journal:
    """The file that records are appended to."""

    def __init__(self, path: Path) -> None:
        """Open or create the journal."""
        self._file = path.open("ab", buffering=0)

    def append(self, records: list[Record]) -> None:
        """Hand the records to the operating system, in one write."""
        if records:
            lines = [json.dumps(r, ensure_ascii=True, separators=(",", ":")) for r in records]
            self._file.write(("\n".join(lines) + "\n").encode("ascii"))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path) -> Iterator[Record]:
    """Read a journal; a last line that was cut off by a crash was never acknowledged."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            record: Record = json.loads(line)
            yield record
