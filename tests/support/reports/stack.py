"""The service of one case: the real functions over emulated AWS, a FIFO queue and a fake model.

The API, the compactor, the archivist and the sweeper are the deployed handlers, called with the
events that AWS makes. Table and bucket are moto's, the queues are the reference model of SQS FIFO
(moto redelivers out of order), and the model is an endpoint on loopback.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.local.definitions import ARCHIVE_QUEUE, QUEUE
from support.fifo_queue import InMemoryFifoQueue
from support.reports.fifo_sqs import ReferenceSqs
from support.reports.resources import BUCKET_NAME, TABLE_NAME, Stores
from turnfold.adapters.aws_clients import AwsClients
from turnfold.bootstrap import Turnfold, resources

if TYPE_CHECKING:
    import pytest

    from support.reports.aws_gate import AwsGate
    from support.reports.clock import CaseClock
    from support.reports.model import CaseModel

VOCABULARY = Path(__file__).resolve().parents[3] / "layers" / "vocab" / "vocabulary"
DOORBELLS, ARCHIVE_BELLS = "compaction.fifo", "archive.fifo"
FUNCTIONS = ("api", "compactor", "archivist", "sweeper")


class ClientsOfCase(AwsClients):
    """The module's clients of DynamoDB and S3, and the case's of SQS."""

    def __init__(self, stores: Stores, sqs: ReferenceSqs) -> None:
        super().__init__()
        self.__dict__["dynamodb"] = stores.dynamodb
        self.__dict__["s3"] = stores.s3
        self.__dict__["sqs"] = sqs


class RecordedMetrics:
    """Sums of what was measured, by name."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()

    def record(self, values: Any) -> None:
        for metric, value in values.items():
            self.sums[str(metric.value)] += value


class Stack:
    """Makes the handlers serve a case."""

    def __init__(
        self,
        stores: Stores,
        gate: AwsGate,
        clock: CaseClock,
        model: CaseModel,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.stores = stores
        self.gate = gate
        self.clock = clock
        self.model = model
        self.metrics = RecordedMetrics()
        self.key_file = Path()
        self._monkeypatch = monkeypatch
        gate.clear()
        stores.create()
        definitions = stores.definitions
        self.dead_letters = InMemoryFifoQueue(clock)
        self.queue = self._queue(definitions.properties(QUEUE), self.dead_letters)
        self.archive_queue = self._queue(definitions.properties(ARCHIVE_QUEUE), self.dead_letters)
        self.sqs = ReferenceSqs(gate, {DOORBELLS: self.queue, ARCHIVE_BELLS: self.archive_queue})
        monkeypatch.setattr(resources, "utc_now", clock)

    def _queue(self, definition: dict[str, Any], dead: InMemoryFifoQueue) -> InMemoryFifoQueue:
        return InMemoryFifoQueue(
            self.clock,
            visibility_seconds=float(definition["VisibilityTimeout"]),
            delay_seconds=float(definition.get("DelaySeconds", 0)),
            max_receive_count=int(definition["RedrivePolicy"]["maxReceiveCount"]),
            dead_letters=dead,
        )

    def start(self, tenants: set[str], folder: Path, *, vocabulary: bool = True) -> None:
        """Begin to serve these tenants. Without `vocabulary` nothing names its folder."""
        self.key_file = folder / "keys.json"
        scopes = ["read", "write", "admin"]
        keys = [{"key": f"key-{one}", "tenant": one, "scopes": scopes} for one in sorted(tenants)]
        self.key_file.write_text(json.dumps({"keys": keys}), encoding="utf-8")
        environment = {
            "TURNFOLD_TABLE": TABLE_NAME,
            "TURNFOLD_BUCKET": BUCKET_NAME,
            "TURNFOLD_QUEUE_URL": DOORBELLS,
            "TURNFOLD_ARCHIVE_QUEUE_URL": ARCHIVE_BELLS,
            "TURNFOLD_KEY_FILE": str(self.key_file),
            "OPENAI_API_KEY": "test",
            "OPENAI_BASE_URL": self.model.url,
        }
        if vocabulary:
            environment["TIKTOKEN_CACHE_DIR"] = str(VOCABULARY)
        else:
            # As a layer puts it: beside the code.
            self._monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
            self._monkeypatch.syspath_prepend(str(VOCABULARY.parent))
        self._environment = environment
        self.restart()

    def shorten_patience(self, seconds: float) -> None:
        """Wait for the model no longer than that."""
        for name in ("COMPACTOR_SECONDS", "API_SECONDS"):
            self._monkeypatch.setattr(f"turnfold.adapters.openai_completions.{name}", seconds)
        self.restart()

    def restart(self) -> None:
        """A new process: nothing is kept in memory from before."""
        self.turnfold = Turnfold(self._environment)
        self.turnfold.__dict__["_clients"] = ClientsOfCase(self.stores, self.sqs)
        self.turnfold.__dict__["metrics"] = self.metrics
        # The fake endpoint has no embeddings: searches go by words.
        self.turnfold.__dict__["_embedder"] = lambda _seconds: None
        for name in FUNCTIONS:
            self._monkeypatch.setattr(f"{name}.app.service", lambda: self.turnfold)
