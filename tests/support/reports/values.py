"""The value forms of the notation: `$repeat`, `$concat`, `$nest`, `$pad_base64`, and variables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

_LETTERS = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
_PLACE = re.compile(r"\{(urlencoded )?(\w+)\}")


def expand(value: Any, scope: Mapping[str, Any]) -> Any:
    """The value that a form stands for; `{name}` and `$name` are replaced for names in scope."""
    if isinstance(value, str):
        return _filled(value, scope)
    if isinstance(value, list):
        return [expand(one, scope) for one in value]
    if not isinstance(value, dict):
        return value
    if not any(name in value for name in ("$repeat", "$concat", "$nest", "$pad_base64", "$prefix")):
        return {name: expand(one, scope) for name, one in value.items()}
    if "$nest" in value:
        return _nested(int(value["$nest"]))
    return str(value.get("$prefix", "")) + _made(value, scope)


def _made(value: Mapping[str, Any], scope: Mapping[str, Any]) -> str:
    if "$repeat" in value:
        text, times = value["$repeat"]
        return str(expand(text, scope)) * int(times)
    if "$concat" in value:
        return "".join(str(expand(one, scope)) for one in value["$concat"])
    length = int(value.get("$pad_base64", 0))
    return (_LETTERS * (length // len(_LETTERS) + 1))[:length]


def _nested(levels: int) -> dict[str, Any]:
    """An object that holds an object, and so on, that many levels deep."""
    found: dict[str, Any] = {"end": True}
    for _ in range(levels - 1):
        found = {"in": found}
    return found


def _filled(text: str, scope: Mapping[str, Any]) -> Any:
    if text.startswith("$") and text[1:] in scope:
        return scope[text[1:]]

    def put(found: re.Match[str]) -> str:
        encoded, name = found.groups()
        if name not in scope:
            return found.group()
        value = str(scope[name])
        return quote(value, safe="") if encoded else value

    return _PLACE.sub(put, text)
