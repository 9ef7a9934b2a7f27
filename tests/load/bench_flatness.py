"""What a commit and a context read cost at turn 10 and at turn 5,000 of one session.

    python tests/load/bench_flatness.py [TURNS]

Counts the AWS calls, the consumed write units and the bytes that a context reads, on MiniStack,
with the real adapters and use cases. Latency is shown and means little: the emulator's queries
scan the whole partition.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.aws import Services, make_services
from support.ministack import running_ministack
from support.service import KEY, Service, plain_turn
from turnfold.adapters.dynamo_memory import DynamoMemoryStore
from turnfold.adapters.s3_archive import S3Archive
from turnfold.adapters.sqs_doorbell import SqsDoorbell
from turnfold.application.read_context import ContextRequest

COMPACT_EVERY = 250
SAMPLES = 5


class Meter:
    """Calls, consumed write units and answered bytes of the clients, between two looks."""

    def __init__(self, services: Services) -> None:
        self.calls: list[str] = []
        self.units = 0.0
        self.bytes = 0
        for client in (services.dynamodb, services.s3, services.sqs):
            events = client.meta.events
            events.register("before-parameter-build.dynamodb.*", _ask_for_units)
            events.register("before-call.*.*", self._called)
            events.register("after-call.*.*", self._answered)

    def reset(self) -> None:
        self.calls, self.units, self.bytes = [], 0.0, 0

    def _called(self, model: Any, **_: object) -> None:
        self.calls.append(model.name)

    def _answered(self, http_response: Any, parsed: Any, **_: object) -> None:
        streamed = parsed.get(
            "ContentLength"
        )  # reading a stream here would take it from the caller
        self.bytes += len(http_response.content) if streamed is None else streamed
        consumed = parsed.get("ConsumedCapacity") or []
        for one in consumed if isinstance(consumed, list) else [consumed]:
            self.units += one.get("CapacityUnits", 0.0)


def _ask_for_units(params: dict[str, Any], model: Any, **_: object) -> None:
    if model.name in ("TransactWriteItems", "UpdateItem", "PutItem"):
        params["ReturnConsumedCapacity"] = "TOTAL"


def measure(service: Service, meter: Meter, number: int) -> dict[str, Any]:
    """The cost of the next commits and of context reads, the median of some samples."""
    commits, reads = [], []
    for offset in range(SAMPLES):
        meter.reset()
        started = time.perf_counter()
        service.commit(plain_turn(10_000 + number + offset, 60))
        commits.append((time.perf_counter() - started, list(meter.calls), meter.units))
    service.ring()
    for _ in range(SAMPLES):
        meter.reset()
        started = time.perf_counter()
        memory = service.context.memory(KEY)
        service.context.view(memory, ContextRequest(max_tokens=4000))
        reads.append((time.perf_counter() - started, list(meter.calls), meter.bytes))
    return {
        "turn": number,
        "commit_calls": commits[-1][1],
        "commit_write_units": sorted(one[2] for one in commits)[SAMPLES // 2],
        "commit_ms": round(1000 * sorted(one[0] for one in commits)[SAMPLES // 2], 1),
        "context_calls": reads[-1][1],
        "context_bytes": sorted(one[2] for one in reads)[SAMPLES // 2],
        "context_ms": round(1000 * sorted(one[0] for one in reads)[SAMPLES // 2], 1),
    }


def on_aws(services: Services) -> Service:
    """The service on the emulator's table, bucket and queue."""
    archive = S3Archive(services.s3, services.bucket)

    def port(name: str, given: Any) -> Any:
        return {
            "archive": archive,
            "store": DynamoMemoryStore(
                services.dynamodb,
                services.table,
                archive,
                given._clock,
            )
            if name == "store"
            else given,
            "doorbell": SqsDoorbell(services.sqs, services.queue_url),
        }.get(name, given)

    return Service(wrap=port, pin_mode="off")


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with tempfile.TemporaryDirectory() as folder, running_ministack(Path(folder)) as endpoint:
        services = make_services(endpoint)
        meter = Meter(services)
        service = on_aws(services)
        numbers = itertools.count(1)
        results = []
        for target in (10, turns):
            number = 0
            while number < target:
                number = service.commit(plain_turn(next(numbers), 60)).body["turn"]
                if number % COMPACT_EVERY == 0:
                    service.ring()
                    print(f"turn {number}", file=sys.stderr, flush=True)
            service.ring()
            results.append(measure(service, meter, target))
        for result in results:
            print(result)


if __name__ == "__main__":
    main()
