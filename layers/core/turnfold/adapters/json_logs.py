"""Logs as JSON lines that hold nothing a user wrote.

A line has the record's time, level, message and the `extra` members of the call. The error of a
record is shown by its types and places only: its text may repeat an input, and so may the values
that a usual traceback prints of some libraries. Powertools' Logger does more, but importing it
takes as long as all of this service's own code.
"""

import json
import logging
import os
import re
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

LOGGER = "turnfold"
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_FRAMES = 12
_TRACE = re.compile(r"Root=([0-9a-f-]+)")


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "message": record.getMessage(),
        }
        # Lambda sets it anew for each invocation, also where nothing is traced.
        if trace := _TRACE.search(os.environ.get("_X_AMZN_TRACE_ID", "")):
            line["trace_id"] = trace[1]
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info and record.exc_info[1]:
            line["exception"] = described(record.exc_info[1])
        return json.dumps(line, default=_plain)


def described(error: BaseException) -> str:
    """Types and places of an error and of what led to it, without any of their texts."""
    lines: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        lines.append(type(current).__qualname__)
        frames = traceback.extract_tb(current.__traceback__)[-_FRAMES:]
        lines += [f"  at {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
    return "\n".join(lines)


def configure_logs(level: str = "INFO", stream: TextIO | None = None) -> None:
    """Write this service's log as JSON lines, once, and keep it from other handlers."""
    logger = logging.getLogger(LOGGER)
    handler = logging.StreamHandler(stream or sys.stdout)
    handler.setFormatter(JsonLines())
    logger.handlers = [handler]
    logger.setLevel(level if level in logging.getLevelNamesMapping() else "INFO")
    logger.propagate = False


def _plain(value: object) -> str:
    """Nothing but plain values belongs into a log; of anything else only its kind is shown."""
    return type(value).__name__
