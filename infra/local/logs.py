"""Logs for people: JSON lines of the handlers as time, level, message and key=value."""

from __future__ import annotations

import json
import sys
import threading
from datetime import UTC, datetime
from typing import IO, Any

COLUMNS = frozenset({"timestamp", "level", "message", "location", "service", "xray_trace_id"})
CONTEXT = frozenset(
    {
        "cold_start",
        "function_name",
        "function_memory_size",
        "function_arn",
        "function_request_id",
        "exception_name",
        "sampling_rate",
        "stack_trace",
    }
)
NOISE = ("hypercorn.error",)


class LogPrinter:
    """Prints log lines of all processes to one stream, one line at a time."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        """Print to the stream, or to standard error."""
        self._stream = stream
        self._lock = threading.Lock()

    def note(self, level: str, message: str, **fields: object) -> None:
        """Print a line of the local stack itself."""
        self._print(_line(_now(), level, "stack", message, fields))

    def line(self, source: str, text: str) -> None:
        """Print one line that a process wrote, rendered if it is a JSON log record."""
        rendered = render(source, text)
        if rendered is not None:
            self._print(rendered)

    def follow(self, source: str, pipe: IO[bytes] | None) -> None:
        """Print every line of the pipe from a thread of its own, until the pipe ends."""
        if pipe is None:
            return

        def read() -> None:
            with pipe:
                for raw in pipe:
                    self.line(source, raw.decode("utf-8", "replace").rstrip())

        threading.Thread(target=read, name=f"logs-{source}", daemon=True).start()

    def _print(self, text: str) -> None:
        stream = self._stream or sys.stderr
        with self._lock:
            stream.write(text + "\n")
            stream.flush()


def render(source: str, text: str) -> str | None:
    """Render one line; `None` for lines that are not meant for people."""
    if not text.strip():
        return None
    record = _record(text)
    if record is None:
        return None if any(word in text for word in NOISE) else f"{_now()} {'':7} {source}: {text}"
    if "_aws" in record:  # embedded metrics
        return None
    fields = {k: v for k, v in record.items() if k not in COLUMNS | CONTEXT}
    exception = fields.pop("exception", None)
    time = _time_of_day(record.get("timestamp"))
    line = _line(time, str(record["level"]), source, record["message"], fields)
    return line if not exception else f"{line}\n{exception}"


def _record(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if isinstance(value, dict) and ("_aws" in value or {"level", "message"} <= value.keys()):
        return value
    return None


def _line(
    time: str, level: str, source: str, message: object, fields: dict[str, Any] | dict[str, object]
) -> str:
    text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    pairs = "".join(f" {k}={_value(v)}" for k, v in fields.items() if v is not None)
    return f"{time} {level.upper():7} {source}: {text}{pairs}"


def _value(value: object) -> str:
    if isinstance(value, str) and value and not any(c.isspace() or c in '"=' for c in value):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _now() -> str:
    return datetime.now(UTC).astimezone().strftime("%H:%M:%S")


def _time_of_day(timestamp: object) -> str:
    text = str(timestamp or "")
    for separator in ("T", " "):
        _, found, rest = text.partition(separator)
        if found and rest[2:3] == ":":
            return rest[:8]
    return _now()
