"""Measurements that a test can look at."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turnfold.domain.measurements import Metric


class RecordedMetrics:
    """Implements `Metrics` and keeps all values."""

    def __init__(self) -> None:
        self.values: dict[Metric, list[float]] = defaultdict(list)

    def record(self, values: Mapping[Metric, float]) -> None:
        """See `Metrics`."""
        for metric, value in values.items():
            self.values[metric].append(value)

    def sum(self, metric: Metric) -> float:
        """All values of one metric together."""
        return sum(self.values[metric])
