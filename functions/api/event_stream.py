"""Streamed answers as server-sent events, in the form of OpenAI's."""

import json
import logging
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from typing import Any

from turnfold.domain.errors import TurnfoldError

CONTENT_TYPE = "text/event-stream; charset=utf-8"
DONE = "data: [DONE]\n\n"

_LINE_BREAKERS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
"""Ends of lines for many clients, though not by the standard; in JSON they stand in texts alone."""

logger = logging.getLogger("turnfold")


def event(value: Mapping[str, Any]) -> str:
    """One event, whose data is one line for every client."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"data: {written.translate(_LINE_BREAKERS)}\n\n"


def events(
    chunks: Generator[Mapping[str, Any]],
    end: Callable[[], Iterator[Mapping[str, Any]]],
    failed: Callable[[Exception], Mapping[str, Any]],
) -> Iterator[str]:
    """The events of an answer whose head is sent already, so that a failure has to be one of them.

    `end` gives what comes after the last chunk. After a failure there is no `[DONE]`.
    """
    try:
        with closing(chunks):
            for chunk in chunks:
                yield event(chunk)
        for last in end():
            yield event(last)
    except Exception as error:
        extra = {"code": "STREAM_FAILED", "error": type(error).__name__}
        expected = isinstance(error, TurnfoldError)
        logger.warning("stream failed", extra=extra, exc_info=None if expected else error)
        yield event(failed(error))
        return
    yield DONE
