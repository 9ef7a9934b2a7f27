"""Values as attributes of items, and back.

Whatever a user can shape (messages, metadata, settings, a stored answer) is one JSON string, never
a native map: numbers keep their type (DynamoDB has only decimals), member order stays, nesting does
not count, and a text is byte-equal. Times are RFC 3339 in UTC with microseconds, so they sort as
texts.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from turnfold.adapters.dynamo_keys import partition_key
from turnfold.domain.sessions import SessionKey
from turnfold.domain.transcript import format_time, parse_time

type Attribute = dict[str, Any]
"""A value as DynamoDB's protocol has it: `{"S": "text"}`."""

type Item = dict[str, Attribute]


def text(value: str) -> Attribute:
    """A text."""
    return {"S": str(value)}


def number(value: int) -> Attribute:
    """A whole number."""
    return {"N": str(value)}


def flag(value: bool) -> Attribute:  # noqa: FBT001 - it is the value
    """True or false."""
    return {"BOOL": value}


def moment(value: datetime) -> Attribute:
    """A time."""
    return {"S": format_time(value)}


def expiry(expires_at: datetime) -> Item:
    """When an item expires: by `expires_at`; `ttl` only lets DynamoDB tidy up."""
    return {"expires_at": moment(expires_at), "ttl": number(int(expires_at.timestamp()) + 1)}


def document(value: object) -> Attribute:
    """Any JSON value as a string. Raises `ValueError` for NaN and infinities."""
    return {
        "S": json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")),
    }


def read_text(attribute: Mapping[str, Any]) -> str:
    """What `text` wrote."""
    return str(attribute["S"])


def read_number(attribute: Mapping[str, Any]) -> int:
    """What `number` wrote."""
    return int(attribute["N"])


def read_flag(attribute: Mapping[str, Any]) -> bool:
    """What `flag` wrote."""
    return bool(attribute["BOOL"])


def read_moment(attribute: Mapping[str, Any]) -> datetime:
    """What `moment` wrote."""
    return parse_time(attribute["S"])


def read_document(attribute: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON can be anything
    """What `document` wrote."""
    return json.loads(attribute["S"])


def item_key(key: SessionKey, sort_key: str) -> Item:
    """The primary key of one item of a session."""
    return {"PK": text(partition_key(key)), "SK": text(sort_key)}
