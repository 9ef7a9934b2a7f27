"""A request as the routes see it: decoded, cleaned and checked at the edge."""

import base64
import binascii
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from api.problems import RefusedError
from turnfold.application.answer import IdempotentRequest
from turnfold.application.ports.callers import Caller
from turnfold.domain.clean_json import parse_json
from turnfold.domain.errors import BadJsonError, InvalidIdError
from turnfold.domain.layouts import DEFAULT_LAYOUT, LAYOUTS
from turnfold.domain.limits import DEFAULT_PAGE, MAX_IDEMPOTENCY_KEY_CHARACTERS, MAX_PAGE
from turnfold.domain.sessions import SessionKey, check_id
from turnfold.domain.settings import MAX_MODEL_NAME

MAX_TOKENS = 10_000_000
"""More than any model reads; a larger number is a mistake."""

MAX_QUERY_CHARACTERS = 10_000

_DIGITS = re.compile(r"[0-9]{1,12}")
_KEY = re.compile(rf"[\x20-\x7e]{{1,{MAX_IDEMPOTENCY_KEY_CHARACTERS}}}")


@dataclass(frozen=True)
class Request:
    """One request. `values` are the decoded path values, by name.

    `host_streams` tells whether the host passes an answer on in pieces, as the handler yields them.
    """

    event: Mapping[str, Any]
    request_id: str
    caller: Caller
    values: Mapping[str, str] = field(default_factory=dict)
    host_streams: bool = False

    @property
    def session_key(self) -> SessionKey:
        """The session that the path names, of the caller's tenant. Raises `InvalidIdError`."""
        return SessionKey(self.caller.tenant, check_id(self.values["session_id"], "the session id"))

    # ------------------------------------------------------------------------------------ headers

    def header(self, name: str) -> str | None:
        """A header; the fields of one that was sent several times, joined by commas."""
        values = header_values(self.event, name)
        return ", ".join(values) if values else None

    @cached_property
    def idempotency_key(self) -> str:
        """The client's Idempotency-Key, or a new one."""
        given = header_values(self.event, "idempotency-key")
        if not given:
            return str(uuid.uuid4())
        if len(given) > 1 or not _KEY.fullmatch(given[0]):
            raise RefusedError(
                422,
                "invalid_idempotency_key",
                f"send one Idempotency-Key of 1 to {MAX_IDEMPOTENCY_KEY_CHARACTERS} printable"
                " ASCII characters, or none",
            )
        return given[0]

    def idempotent(self, route: str, body: object = None) -> IdempotentRequest:
        """This request on a route, so that a repetition of it can be told; by its body if not None.

        A route whose body may be absent passes what it read instead.
        """
        said = self.body if body is None else body
        return IdempotentRequest.of(route, self.idempotency_key, said)

    # --------------------------------------------------------------------------------------- body

    @cached_property
    def body(self) -> Mapping[str, Any]:
        """The members of the body; the members of an optional one may be absent altogether."""
        value = parse_json(self._raw_body)
        if not isinstance(value, dict):
            raise RefusedError(422, "invalid_body", "the body must be a JSON object")
        return value

    @property
    def optional_body(self) -> Mapping[str, Any]:
        """The members of the body; none if there is no body."""
        return self.body if self._raw_body else {}

    @property
    def text_body(self) -> str:
        """The body as it was sent. Raises `BadJsonError` if it is not UTF-8."""
        raw = self._raw_body
        try:
            return raw if isinstance(raw, str) else raw.decode("utf-8")
        except UnicodeDecodeError:
            raise BadJsonError("the body is not UTF-8") from None

    @property
    def _raw_body(self) -> str | bytes:
        raw = self.event.get("body") or ""
        if not self.event.get("isBase64Encoded"):
            return str(raw)
        try:
            return base64.b64decode(raw, validate=True)
        except (binascii.Error, ValueError):
            raise BadJsonError("the body is not UTF-8") from None

    # -------------------------------------------------------------------------------------- query

    def query(self, name: str) -> str | None:
        """A query parameter; the last one if it was sent several times."""
        value = (self.event.get("queryStringParameters") or {}).get(name)
        return None if value is None else str(value)

    @property
    def queries(self) -> Mapping[str, str]:
        """All query parameters, the last one of each name."""
        given = self.event.get("queryStringParameters") or {}
        return {name: str(value) for name, value in given.items() if value is not None}

    def query_number(self, name: str, low: int, high: int) -> int | None:
        """A whole number from the query."""
        text = self.query(name)
        if text is None:
            return None
        return number(name, int(text) if _DIGITS.fullmatch(text) else text, low, high)

    def query_flag(self, name: str) -> object:
        """A flag from the query: true, false, or whatever else it is, to be refused."""
        text = self.query(name)
        return {"true": True, "false": False, None: None}.get(text, text)

    @property
    def limit(self) -> int:
        """How many items a page of a list may have."""
        return self.query_number("limit", 1, MAX_PAGE) or DEFAULT_PAGE


def header_values(event: Mapping[str, Any], name: str) -> list[str]:
    """All values of a header, whatever the case of its name."""
    for source in ("multiValueHeaders", "headers"):
        found: list[str] = []
        for key, value in (event.get(source) or {}).items():
            if key.lower() == name and value is not None:
                found += [str(one) for one in value] if isinstance(value, list) else [str(value)]
        if found:
            return found
    return []


def number(name: str, value: object, low: int, high: int) -> int | None:
    """A whole number within bounds, or None. Raises `RefusedError` naming the parameter."""
    if value is None:
        return None
    if type(value) is not int or not low <= value <= high:
        raise RefusedError(
            422, "invalid_parameter", f"{name} must be a whole number from {low} to {high}"
        )
    return value


def flag(name: str, value: object) -> bool:
    """A flag; absent is false. Raises `RefusedError` naming the parameter."""
    if value is None or isinstance(value, bool):
        return bool(value)
    raise RefusedError(422, "invalid_parameter", f"{name} must be true or false")


def max_tokens(value: object, name: str = "max_tokens") -> int | None:
    """A budget in tokens, or None."""
    return number(name, value, 1, MAX_TOKENS)


def text(name: str, value: object, longest: int) -> str | None:
    """A text that is not empty, or None. Raises `RefusedError` naming the parameter."""
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= longest:
        raise RefusedError(
            422, "invalid_parameter", f"{name} must be a text of 1 to {longest} characters"
        )
    return value


def layout_name(value: object) -> str:
    """The name of a context's layout. Raises `RefusedError`."""
    if value is None:
        return DEFAULT_LAYOUT
    if not isinstance(value, str) or value not in LAYOUTS:
        raise RefusedError(422, "invalid_parameter", f"format may be {', '.join(LAYOUTS)}")
    return value


def model_name(value: object) -> str | None:
    """The name of a model, or None."""
    return text("model", value, MAX_MODEL_NAME)


def user_id(value: object) -> str | None:
    """A user id, or None. Raises `RefusedError`."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise RefusedError(422, "invalid_user_id", "user_id must be a text")
    try:
        return check_id(value, "user_id")
    except InvalidIdError as error:
        raise RefusedError(422, "invalid_user_id", str(error)) from None


def metadata(value: object) -> Mapping[str, Any] | None:
    """Metadata, or None. Raises `RefusedError`."""
    if value is None or isinstance(value, dict):
        return value
    raise RefusedError(422, "invalid_metadata", "metadata must be an object")
