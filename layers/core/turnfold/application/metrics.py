"""The port for measurements, apart from the others: every use case may have it, none needs it."""

from collections.abc import Mapping
from typing import Protocol

from turnfold.domain.measurements import Metric


class Metrics(Protocol):
    """Takes measurements. It has no place for an id or a text, and never fails its caller."""

    def record(self, values: Mapping[Metric, float]) -> None:
        """Note what one piece of work has measured."""
        ...


class NoMetrics:
    """Takes measurements and forgets them."""

    def record(self, values: Mapping[Metric, float]) -> None:
        """Do nothing."""


NO_METRICS = NoMetrics()
