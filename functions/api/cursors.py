"""Cursors: places in a list, opaque to clients and of no use in another list or tenant."""

import base64
import binascii
import json

from turnfold.domain.errors import InvalidCursorError
from turnfold.domain.transcript import sha256_of

_NAME_LENGTH = 16


def list_name(*parts: str | None) -> str:
    """A short name of a list: its route, tenant, session and filters."""
    return sha256_of(list(parts))[:_NAME_LENGTH]


def write_cursor(name: str, position: str | None) -> str | None:
    """The cursor of a position in the list of that name; None at its end."""
    if position is None:
        return None
    raw = json.dumps([name, position], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_cursor(name: str, cursor: str | None) -> str | None:
    """The position of a cursor. Raises `InvalidCursorError` if it is not one of that list."""
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        made_for, position = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, TypeError, RecursionError, binascii.Error):
        made_for, position = None, None
    if made_for != name or not isinstance(position, str):
        raise InvalidCursorError("send next_cursor as it was answered, to the same list")
    return position
