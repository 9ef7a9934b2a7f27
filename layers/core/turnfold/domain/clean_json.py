"""Parsing and cleaning JSON at the border, so that everything inside can be stored and sent.

Lone surrogates cannot be encoded as UTF-8 and NUL cuts texts in other people's software: both
become U+FFFD, in keys and values alike. NaN, infinities and nesting over `MAX_NESTING` are refused.
"""

import json
import math
import re
from typing import Any

from turnfold.domain.errors import BadJsonError
from turnfold.domain.limits import MAX_NESTING

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """The text with NUL and lone surrogates replaced by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def parse_json(raw: str | bytes) -> Any:  # noqa: ANN401 - JSON can be anything
    """A JSON document, cleaned. Raises `BadJsonError`."""
    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        return clean_value(value)
    except UnicodeDecodeError:
        raise BadJsonError("the body is not UTF-8") from None
    except RecursionError:
        raise BadJsonError(f"the body is nested over {MAX_NESTING} levels") from None
    except ValueError:
        raise BadJsonError("the body is not JSON") from None


def clean_value(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - JSON can be anything
    """A copy of a JSON value with clean texts.

    Raises `BadJsonError` if it is nested too deep, or holds NaN or an infinity.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadJsonError("NaN and Infinity are not JSON")
    if isinstance(value, dict | list):
        if depth >= MAX_NESTING:
            raise BadJsonError(f"the body is nested over {MAX_NESTING} levels")
        if isinstance(value, list):
            return [clean_value(one, depth + 1) for one in value]
        return {clean_text(name): clean_value(one, depth + 1) for name, one in value.items()}
    return value


def _refuse_constant(_name: str) -> None:
    raise BadJsonError("NaN and Infinity are not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise BadJsonError("a number is too large")
    return value
