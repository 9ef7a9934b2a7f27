"""Between the AWS clients and the emulator: faults, pauses, and one call at a time.

It sits where botocore sends a request, so the client's own retries see what it injects. The
emulator is not made for threads: calls go through one by one. Requests of a `parallel` operation
hold a baton while they compute and pass it on at each call, so they meet between any two calls.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, ReadTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable

WRITES = frozenset(
    {"TransactWriteItems", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "PutObject"}
)
SERVER_ERRORS = ("InternalServerError", "InternalError", "ServiceUnavailable", "SlowDown")
_LONGEST_PAUSE = 60


@dataclass
class Fault:
    """An error to answer a number of attempts with, of a service or one of its operations."""

    service: str
    error: str
    times: int
    reasons: tuple[str, ...] = ()
    operation: str | None = None
    text: str | None = None

    def fits(self, service: str, operation: str, said: str) -> bool:
        if self.times <= 0 or service != self.service:
            return False
        if self.operation is not None and self.operation != operation:
            return False
        if self.error == "TransactionCanceledException" and operation != "TransactWriteItems":
            return False
        if self.error == "ConditionalCheckFailedException" and operation not in WRITES:
            return False
        return self.text is None or self.text in said

    def parsed(self) -> dict[str, Any]:
        """The error as botocore parses it."""
        status = 503 if self.error in SERVER_ERRORS or self.error[:1] == "5" else 400
        answer: dict[str, Any] = {
            "Error": {"Code": self.error, "Message": "injected"},
            "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}},
        }
        if self.reasons:
            answer["CancellationReasons"] = [{"Code": reason} for reason in self.reasons]
        return answer


class KilledError(BaseException):
    """The process of a worker ends here; nothing of it may handle that."""


@dataclass
class Pause:
    """Holds one thread before its next write, until it is let go or killed."""

    armed: bool = False
    killed: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        self.armed = False
        self.reached.set()
        assert self.go_on.wait(_LONGEST_PAUSE), "the worker was never resumed"


class AwsGate:
    """One for all clients of a module; `clear` makes it new for the next case."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._local = threading.local()
        self.baton = threading.Lock()
        self.clear()

    def clear(self) -> None:
        self.faults: list[Fault] = []
        self.pauses: dict[int, Pause] = {}
        self.calls: list[tuple[str, str]] = []
        self.emulator_seconds = 0.0

    def attach(self, client: Any, service: str) -> None:
        """Stand before a client's sending of requests."""
        endpoint = client._endpoint
        send = endpoint._do_get_response

        def pass_on(request: Any, operation_model: Any, context: Any) -> Any:
            body = request.body
            said = body.decode("utf-8", "replace") if isinstance(body, bytes) else ""
            said += str(request.url)
            return self.pass_on(
                service,
                operation_model.name,
                said,
                lambda: send(request, operation_model, context),
                _as_answer,
            )

        endpoint._do_get_response = pass_on

    def pass_on(
        self,
        service: str,
        operation: str,
        said: str,
        send: Callable[[], Any],
        failed: Callable[[Fault, str], Any],
    ) -> Any:
        """Send a request, or answer it with what `failed` makes of a fault."""
        pause = self.pauses.get(threading.get_ident())
        if pause is not None and pause.armed and operation in WRITES:
            pause.wait()
        if pause is not None and pause.killed:
            raise KilledError
        with _Yielded(self):
            self.calls.append((service, operation))
            fault = next((one for one in self.faults if one.fits(service, operation, said)), None)
            if fault is None:
                started = time.process_time()
                try:
                    return send()
                finally:
                    self.emulator_seconds += time.process_time() - started
            fault.times -= 1
            return failed(fault, operation)

    def with_baton[Result](self, act: Callable[[], Result]) -> Result:
        """Compute while no other of these does, except while AWS is being called."""
        with self.baton:
            self._local.holds = True
            try:
                return act()
            finally:
                self._local.holds = False

    def holds_baton(self) -> bool:
        return bool(getattr(self._local, "holds", False))


class _Yielded:
    """Gives others their turn, then has the emulator to itself."""

    def __init__(self, gate: AwsGate) -> None:
        self._gate = gate

    def __enter__(self) -> None:
        if self._gate.holds_baton():
            self._gate.baton.release()
            time.sleep(0.0005)
            self._gate.baton.acquire()
        self._gate._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._gate._lock.release()


def _as_answer(fault: Fault, _operation: str) -> Any:
    if "imeout" in fault.error and not fault.error.startswith("RequestTimeout"):
        return None, ReadTimeoutError(endpoint_url="https://emulator")
    parsed = fault.parsed()
    status = parsed["ResponseMetadata"]["HTTPStatusCode"]
    return (SimpleNamespace(status_code=status, headers={}, raw=None, content=b""), parsed), None


def raise_fault(fault: Fault, operation: str) -> Any:
    """The fault as the error that a client raises."""
    raise ClientError(fault.parsed(), operation)  # type: ignore[arg-type]  # as a service words it
