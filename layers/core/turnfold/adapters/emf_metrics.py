"""Measurements as lines of CloudWatch's embedded metric format.

The log turns them into metrics, without a call. Powertools does the same for a tenth of a second of
every cold start.
"""

import contextlib
import json
import sys
import time
from collections.abc import Mapping
from typing import TextIO

from turnfold.domain.measurements import Metric


class EmfMetrics:
    """Writes each record as one line. The only dimension is the stack: numbers are of nobody."""

    def __init__(self, namespace: str, stack: str, stream: TextIO | None = None) -> None:
        """Write to `stream`, by default to standard output as it is when a line is written."""
        self._namespace = namespace
        self._stack = stack
        self._stream = stream

    def record(self, values: Mapping[Metric, float]) -> None:
        """See `Metrics`."""
        if not values:
            return
        directive = {
            "Namespace": self._namespace,
            "Dimensions": [["Stack"]],
            "Metrics": [{"Name": metric.value, "Unit": metric.unit} for metric in values],
        }
        line = {
            "_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]},
            "Stack": self._stack,
            **{metric.value: round(value, 3) for metric, value in values.items()},
        }
        stream = self._stream or sys.stdout
        # Not being able to count a commit is no reason to fail it.
        with contextlib.suppress(OSError, ValueError):
            stream.write(json.dumps(line, separators=(",", ":")) + "\n")
            stream.flush()
