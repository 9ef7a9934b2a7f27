"""The public keys of a token issuer (a JWKS document), fetched and kept."""

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turnfold.domain.errors import StoreUnavailableError

KEPT_SECONDS = 3600.0
"""A key that the issuer took back is refused after this time at the latest."""

REFETCH_SECONDS = 30.0
"""An unknown key id leads to a new fetch at most this often, whatever clients send."""

FETCH_SECONDS = 3.0
MAX_BYTES = 256 * 1024

type Fetch = Callable[[str], bytes]


class KeySet:
    """Keys by their ids, of one issuer."""

    def __init__(
        self,
        url: str,
        fetch: Fetch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Fetch nothing yet. Raises `ValueError` for an address without TLS, loopback excepted."""
        if not url.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
            raise ValueError("the address of a JWKS begins with https://")
        self._url = url
        self._fetch = fetch or fetch_document
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: Mapping[str, Mapping[str, Any]] | None = None
        self._fetched_at = 0.0

    def find(self, key_id: str) -> Mapping[str, Any] | None:
        """The key of that id; None if the issuer has none.

        While the issuer does not answer, what it said before stays valid. Raises
        `StoreUnavailableError` if it said nothing yet.
        """
        with self._lock:
            age = self._clock() - self._fetched_at
            known = self._keys is not None and key_id in self._keys
            if self._keys is None or age > (KEPT_SECONDS if known else REFETCH_SECONDS):
                self._refresh()
            return (self._keys or {}).get(key_id)

    def _refresh(self) -> None:
        try:
            self._keys = _by_id(json.loads(self._fetch(self._url)))
        except (OSError, ValueError, RecursionError):
            if self._keys is None:
                raise StoreUnavailableError("the issuer's keys cannot be had") from None
        # After a failure, too: an issuer that is down is not asked at each request.
        self._fetched_at = self._clock()


def fetch_document(url: str) -> bytes:
    """The document at an address, of at most 256 KiB. Raises `OSError` or `ValueError`."""
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310 - https, see KeySet
    opener = urllib.request.build_opener(_NoRedirects)
    with opener.open(request, timeout=FETCH_SECONDS) as answer:
        document: bytes = answer.read(MAX_BYTES + 1)
    if len(document) > MAX_BYTES:
        raise ValueError("the document is too large")
    return document


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An issuer's keys are where its address says, and nowhere else."""

    def redirect_request(self, *_args: object) -> None:
        """Follow nothing; the redirection then counts as an error."""
        return


def _by_id(document: object) -> dict[str, Mapping[str, Any]]:
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, Sequence) or isinstance(keys, str):
        raise ValueError("not a JWKS")  # noqa: TRY004 - any wrong document is a wrong value
    return {
        key["kid"]: key for key in keys if isinstance(key, dict) and isinstance(key.get("kid"), str)
    }
