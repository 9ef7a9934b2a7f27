"""API keys from a file: the local stack's way to know its callers."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

from turnfold.application.ports.callers import Caller
from turnfold.domain.errors import InvalidIdError
from turnfold.domain.sessions import check_id

_UNREADABLE = (OSError, ValueError, LookupError, TypeError, RecursionError, InvalidIdError)


class KeyFile:
    """A `KeyRing` over `{"keys": [{"key": "...", "tenant": "...", "scopes": ["read", ...]}]}`.

    The file is read again when it was changed. While it is missing, or anything in it is wrong,
    nobody is known.
    """

    def __init__(self, path: Path) -> None:
        """Read the file when the first key is asked for."""
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._callers: tuple[tuple[bytes, Caller], ...] = ()

    def identify(self, api_key: str) -> Caller | None:
        """See `KeyRing`. The time it takes tells nothing about how much of a key was right."""
        digest = _digest(api_key)
        found = None
        for known, caller in self._current():
            if hmac.compare_digest(known, digest):
                found = caller
        return found

    def _current(self) -> tuple[tuple[bytes, Caller], ...]:
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp != self._stamp:
                entries = json.loads(self._path.read_text(encoding="utf-8"))["keys"]
                self._callers = tuple(_read_entry(entry) for entry in entries)
                self._stamp = stamp
        except _UNREADABLE:
            self._callers, self._stamp = (), None
        return self._callers


def _read_entry(entry: dict[str, Any]) -> tuple[bytes, Caller]:
    key, tenant, scopes = entry["key"], entry["tenant"], entry["scopes"]
    if not isinstance(key, str) or not key or not isinstance(tenant, str):
        raise TypeError("key and tenant are texts")
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise TypeError("scopes are a list of texts")
    return _digest(key), Caller(check_id(tenant, "tenant"), frozenset(scopes))


def _digest(api_key: str) -> bytes:
    return hashlib.sha256(api_key.encode("utf-8", "surrogatepass")).digest()
