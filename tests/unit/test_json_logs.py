"""A log line: what happened, where, in which request; nothing that somebody wrote."""

from __future__ import annotations

import io
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from turnfold.adapters.json_logs import configure_logs

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER = "zqxmarker"
TRACE = "1-5f84c7a5-3c3f4f7e8a7d6b5c4d3e2f1a"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    logger = logging.getLogger("turnfold")
    before = (logger.handlers, logger.level, logger.propagate)
    stream = io.StringIO()
    configure_logs("INFO", stream)
    yield stream
    logger.handlers, logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


def lines(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def fail_with(text: str) -> None:
    try:
        int(text)
    except ValueError as error:
        raise LookupError(text) from error


def test_an_error_is_told_by_types_and_places_of_all_that_led_to_it(log: io.StringIO) -> None:
    try:
        fail_with(MARKER)
    except LookupError:
        logging.getLogger("turnfold").exception("failed", extra={"code": "FAILED"})
    assert MARKER not in log.getvalue()
    (line,) = lines(log)
    assert line["code"] == "FAILED"
    assert line["level"] == "ERROR"
    assert "LookupError" in line["exception"]
    assert "ValueError" in line["exception"]
    assert "in fail_with" in line["exception"]


def test_what_is_no_plain_value_is_told_by_its_kind(log: io.StringIO) -> None:
    logging.getLogger("turnfold").info("odd", extra={"what": {"a": object(), "b": {MARKER}}})
    assert lines(log)[0]["what"] == {"a": "object", "b": "set"}


def test_lines_of_one_invocation_have_its_trace(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger("turnfold")
    monkeypatch.delenv("_X_AMZN_TRACE_ID", raising=False)
    logger.info("outside")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", f"Root={TRACE};Parent=1;Sampled=0")
    logger.info("inside")
    outside, inside = lines(log)
    assert "trace_id" not in outside
    assert inside["trace_id"] == TRACE
