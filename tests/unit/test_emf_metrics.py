"""Measurements as CloudWatch reads them from a log."""

import io
import json

from turnfold.adapters.emf_metrics import EmfMetrics
from turnfold.domain.measurements import Metric


def test_a_record_is_one_line_of_the_embedded_metric_format() -> None:
    stream = io.StringIO()
    EmfMetrics("Turnfold", "prod", stream).record(
        {Metric.COMMITS: 1, Metric.COMMIT_LATENCY: 12.34567}
    )
    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)
    meta = said.pop("_aws")
    assert said == {"Stack": "prod", "Commits": 1, "CommitLatency": 12.346}
    assert meta["Timestamp"] > 1_700_000_000_000
    assert meta["CloudWatchMetrics"] == [
        {
            "Namespace": "Turnfold",
            "Dimensions": [["Stack"]],
            "Metrics": [
                {"Name": "Commits", "Unit": "Count"},
                {"Name": "CommitLatency", "Unit": "Milliseconds"},
            ],
        }
    ]


def test_every_metric_has_a_unit_that_cloudwatch_knows() -> None:
    assert {metric.unit for metric in Metric} == {"Count", "Milliseconds", "Seconds"}


def test_nothing_measured_is_nothing_written() -> None:
    stream = io.StringIO()
    EmfMetrics("Turnfold", "prod", stream).record({})
    assert not stream.getvalue()


def test_a_log_that_cannot_be_written_fails_nobody() -> None:
    stream = io.StringIO()
    stream.close()
    EmfMetrics("Turnfold", "prod", stream).record({Metric.COMMITS: 1})
