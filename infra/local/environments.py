"""The execution environments of one function: started on demand, one event at a time each.

Handlers run in processes and not in threads because an event handler of Powertools keeps its
current event in a class attribute, which all threads share, and because Lambda never runs two
events at a time in one environment either.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.local.environment import read_message, write_message
from infra.local.settings import ACCOUNT, REGION, REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from infra.local.logs import LogPrinter

STOP_SECONDS = 2.0
TIMER_SLACK_SECONDS = 0.2


@dataclass(frozen=True)
class Function:
    """What to run."""

    name: str
    code: str
    handler: str
    timeout_seconds: float
    memory_mb: int
    variables: Mapping[str, str]

    @property
    def arn(self) -> str:
        """The name by which the function is invoked."""
        return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.name}"


class InvocationError(Exception):
    """The handler raised, ended or could not be loaded."""

    def __init__(self, kind: str, message: str, trace: str = "") -> None:
        """Take what the environment reported."""
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.trace = trace


class InvocationTimeoutError(InvocationError):
    """The handler took longer than the function's timeout and was ended."""


class ThrottledError(Exception):
    """Every environment is busy and stayed so."""


class _Environment:
    """One process."""

    def __init__(self, function: Function, logs: LogPrinter) -> None:
        self._function = function
        self._process = subprocess.Popen(
            [sys.executable, "-m", "infra.local.environment", function.code, function.handler],
            cwd=REPOSITORY,
            env=dict(function.variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        logs.follow(function.name, self._process.stderr)
        self._timed_out = False
        self._timer: threading.Timer | None = None

    def load(self) -> None:
        """Wait until the handler is imported; an environment that cannot do it is ended."""
        try:
            self.answer()
        except InvocationError:
            self.kill()
            raise

    def invoke(self, event: Any, timeout: float) -> dict[str, Any]:
        """Run one event: a message with its result, which says whether pieces follow.

        The process is ended when it takes longer than the timeout, until `finish`.
        """
        function = self._function
        self._timer = threading.Timer(timeout + TIMER_SLACK_SECONDS, self._time_out)
        self._timer.daemon = True
        self._timer.start()
        self.tell(
            {
                "event": event,
                "request_id": str(uuid.uuid4()),
                "function_name": function.name,
                "function_arn": function.arn,
                "memory_mb": function.memory_mb,
                "timeout_seconds": timeout,
            }
        )
        return self.answer()

    def finish(self) -> None:
        """Let time count no more: the event has been dealt with."""
        if self._timer is not None:
            self._timer.cancel()

    def tell(self, message: dict[str, Any]) -> None:
        """Write to the process. Whether it is gone is found out by its answer."""
        with contextlib.suppress(BrokenPipeError):
            write_message(_pipe(self._process.stdin), message)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None and not self._timed_out

    def answer(self) -> dict[str, Any]:
        """The next message of the process. Raises `InvocationError`."""
        answer: dict[str, Any] | None = read_message(_pipe(self._process.stdout))
        if answer is None:
            seconds = self._function.timeout_seconds
            if self._timed_out:
                message = f"the task timed out after {seconds:.0f} seconds"
                raise InvocationTimeoutError("Sandbox.Timedout", message)
            status = self._process.wait()
            raise InvocationError("Runtime.ExitError", f"the process ended with status {status}")
        if "error" in answer:
            error = answer["error"]
            raise InvocationError(error["errorType"], error["errorMessage"], error["stackTrace"])
        return answer

    def _time_out(self) -> None:
        self._timed_out = True
        self.kill()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Let it end by itself, then make it."""
        with contextlib.suppress(OSError):
            _pipe(self._process.stdin).close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        self.kill()
        self._process.wait()


class Pieces:
    """The pieces of a body, as the handler yields them. Whoever has them takes all or closes."""

    def __init__(self, environment: _Environment, finish: Callable[[], None]) -> None:
        """`finish` is called when there is no more to come."""
        self._environment = environment
        self._finish = finish
        self._waits = False
        self._over = False

    def __iter__(self) -> Pieces:
        """These pieces."""
        return self

    def __next__(self) -> str:
        """The next piece. Raises `InvocationError` if the handler failed meanwhile."""
        if self._waits:
            self._environment.tell({"go_on": True})
        self._receive()
        if self._over:
            raise StopIteration
        return self._piece

    def close(self) -> None:
        """Tell the handler that nobody wants the next piece."""
        with contextlib.suppress(InvocationError):
            while not self._over:
                if self._waits:
                    self._environment.tell({"go_on": False})
                self._receive()

    def _receive(self) -> None:
        self._waits = False
        try:
            message = {} if self._over else self._environment.answer()
        except InvocationError:
            self._end()
            raise
        if "piece" in message:
            self._piece: str = message["piece"]
            self._waits = True
        else:
            self._end()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._finish()


class Environments:
    """Invokes a function in as many processes as events need at once, up to a limit.

    New processes are started one after the other: loading several at once would take longer than
    the events that wait for them.
    """

    def __init__(self, function: Function, limit: int, logs: LogPrinter) -> None:
        """Start nothing yet."""
        self.function = function
        self._limit = limit
        self._logs = logs
        self._condition = threading.Condition()
        self._idle: list[_Environment] = []
        self._all: list[_Environment] = []
        self._loading = 0
        self._failure: InvocationError | None = None
        self._closed = False

    def warm(self, count: int = 1) -> None:
        """Start environments and wait until their handlers are loaded."""
        with self._condition:
            for _ in range(count):
                self._grow()
            while self._loading and not self._closed:
                self._condition.wait()
            if self._failure is not None:
                raise self._failure

    def invoke(self, event: Any, patience: float = 60.0) -> Any:
        """Run the handler and return what it returned; its body may be `Pieces`.

        Raises:
            ThrottledError: no environment became free in time.
            InvocationError: the handler failed.
        """
        environment = self._take(patience)
        streams = False
        try:
            answer = environment.invoke(event, self.function.timeout_seconds)
            streams = answer.get("streams", False)
        finally:
            if not streams:
                self._give_back(environment)
        result: Any = answer.get("result")
        if streams:
            result["body"] = Pieces(environment, lambda: self._give_back(environment))
        return result

    def close(self) -> None:
        """End every process, also those that are at work."""
        with self._condition:
            self._closed = True
            everyone, self._all, self._idle = self._all, [], []
            self._condition.notify_all()
        threads = [threading.Thread(target=e.stop, daemon=True) for e in everyone]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _take(self, patience: float) -> _Environment:
        deadline = time.monotonic() + patience
        with self._condition:
            while not self._closed:
                if self._idle:
                    return self._idle.pop()
                if not self._loading:
                    self._grow()
                left = deadline - time.monotonic()
                if left <= 0 or not self._condition.wait(left):
                    break
                if self._failure is not None and not self._all:
                    raise self._failure
        raise ThrottledError(self.function.name)

    def _give_back(self, environment: _Environment) -> None:
        environment.finish()
        with self._condition:
            if environment.alive and not self._closed:
                self._idle.append(environment)
            elif environment in self._all:
                self._all.remove(environment)
            self._condition.notify()

    def _grow(self) -> None:
        """Start one more environment from a thread; the condition is held."""
        if self._closed or len(self._all) >= self._limit:
            return
        environment = _Environment(self.function, self._logs)
        self._all.append(environment)
        self._loading += 1
        threading.Thread(target=self._load, args=(environment,), daemon=True).start()

    def _load(self, environment: _Environment) -> None:
        failure: InvocationError | None = None
        try:
            environment.load()
        except InvocationError as error:
            failure = error
        with self._condition:
            self._loading -= 1
            self._failure = failure
            if failure is None and not self._closed:
                self._idle.append(environment)
            elif environment in self._all:
                self._all.remove(environment)
            self._condition.notify_all()


def _pipe[T](stream: T | None) -> T:
    if stream is None:
        message = "the process was started without this pipe"
        raise RuntimeError(message)
    return stream
