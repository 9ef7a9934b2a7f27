"""One execution environment of a function: a process that runs one event at a time, as on Lambda.

`python -m infra.local.environment <code folder> <module.handler>` imports the handler once, then
reads events from standard input and writes results to what was its standard output. What the
handler prints goes to standard error, where logs are read.

Each message is a length (four bytes, big-endian) and that many bytes of JSON.

A handler that is told `context.streams_bodies` may return an iterator of texts as its body. Then
the result is followed by messages with a piece each, until one says that it was the last. After
each piece the environment is told whether to go on: a client may have left.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import struct
import sys
import threading
import time
import traceback
from collections.abc import Generator
from decimal import Decimal
from queue import SimpleQueue
from typing import IO, Any

GRACE_SECONDS = 10.0
HEADER = struct.Struct(">I")


class LambdaContext:
    """What a handler is told about its invocation."""

    streams_bodies = True

    def __init__(self, invocation: dict[str, Any]) -> None:
        """Take the invocation's facts."""
        self.aws_request_id: str = invocation["request_id"]
        self.function_name: str = invocation["function_name"]
        self.function_version = "$LATEST"
        self.invoked_function_arn: str = invocation["function_arn"]
        self.memory_limit_in_mb: str = str(invocation["memory_mb"])
        self.log_group_name = f"/aws/lambda/{self.function_name}"
        self.log_stream_name = f"local/{os.getpid()}"
        self.identity = None
        self.client_context = None
        self._deadline: float = time.monotonic() + invocation["timeout_seconds"]

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the invocation is ended."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))


def write_message(stream: IO[bytes], value: object) -> None:
    """Write one message."""
    payload = json.dumps(value, ensure_ascii=True, default=_plain).encode("ascii")
    stream.write(HEADER.pack(len(payload)) + payload)
    stream.flush()


def read_message(stream: IO[bytes]) -> Any:
    """Read one message; `None` at the end of the stream."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    (length,) = HEADER.unpack(header)
    payload = stream.read(length)
    return json.loads(payload) if len(payload) == length else None


def _plain(value: object) -> float | int:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    message = f"Object of type {type(value).__name__} is not JSON serializable"
    raise TypeError(message)


def _private_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Keep the pipes to the parent; give the handler an empty input and the log as output."""
    events = os.fdopen(os.dup(0), "rb")
    results = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return events, results


def _failure(error: BaseException) -> dict[str, Any]:
    return {
        "error": {
            "errorType": type(error).__name__,
            "errorMessage": str(error),
            "stackTrace": "".join(traceback.format_exception(error)),
        }
    }


def _read_ahead(events: IO[bytes], inbox: SimpleQueue[Any]) -> None:
    """Queue the events; when the parent is gone, a handler that goes on for long is ended."""
    while (message := read_message(events)) is not None:
        inbox.put(message)
    inbox.put(None)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


def _stream(
    pieces: Generator[str], results: IO[bytes], inbox: SimpleQueue[dict[str, Any] | None]
) -> None:
    """Pass the pieces on one by one, and close their source if nobody wants the next one."""
    with contextlib.closing(pieces):
        for piece in pieces:
            write_message(results, {"piece": piece})
            answer = inbox.get()
            if answer is None or not answer["go_on"]:
                break
    write_message(results, {"end": True})


def main() -> int:
    """Run the handler that the arguments name."""
    events, results = _private_streams()
    code, handler = sys.argv[1:3]
    sys.path[0] = code  # in place of the working folder, as the root of a function is on Lambda
    module, _, name = handler.rpartition(".")
    try:
        function = getattr(importlib.import_module(module.replace("/", ".")), name)
    except BaseException as error:  # noqa: BLE001 - reported, as Lambda does
        write_message(results, _failure(error))
        return 1
    write_message(results, {"ready": True})
    inbox: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_read_ahead, args=(events, inbox), name="events", daemon=True).start()
    while (invocation := inbox.get()) is not None:
        try:
            result = function(invocation["event"], LambdaContext(invocation))
            pieces = result.get("body") if isinstance(result, dict) else None
            if isinstance(pieces, Generator):
                write_message(results, {"result": {**result, "body": None}, "streams": True})
                _stream(pieces, results, inbox)
            else:
                write_message(results, {"result": result})
        except Exception as error:  # noqa: BLE001 - reported, as Lambda does
            write_message(results, _failure(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
