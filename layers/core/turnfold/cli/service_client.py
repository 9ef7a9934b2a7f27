"""The HTTP API for commands: one request at a time, patient where the service asks for it."""

import argparse
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPMessage
from typing import IO, Any

from turnfold.domain.errors import InvalidInputError, NotFoundError, StoreUnavailableError

DEFAULT_URL = "http://127.0.0.1:8787"
DEFAULT_KEY = "local"
"""Those of the local stack."""

TIMEOUT_SECONDS = 60
ATTEMPTS = 8
LONGEST_PAUSE_SECONDS = 10.0
CHUNK_BYTES = 64 * 1024
TOO_MANY, CONFLICT, NOT_FOUND, SERVER_ERROR = 429, 409, 404, 500


def add_service_options(parser: argparse.ArgumentParser) -> None:
    """The options that name the service and the key."""
    parser.add_argument(
        "--url",
        default=os.environ.get("TURNFOLD_URL", DEFAULT_URL),
        help="where the API answers (TURNFOLD_URL, or %(default)s)",
    )
    parser.add_argument(
        "--key",
        default=os.environ.get("TURNFOLD_API_KEY", DEFAULT_KEY),
        help="API key (TURNFOLD_API_KEY, or that of the local stack)",
    )


@dataclass(frozen=True, slots=True)
class ServiceClient:
    """Requests with a key. `sleep` waits between attempts."""

    url: str
    key: str
    sleep: Callable[[float], None] = time.sleep

    def session_path(self, session_id: str, *parts: str) -> str:
        """The path of something of a session."""
        escaped = urllib.parse.quote(session_id, safe="").replace(".", "%2E")
        return "/".join(["/v1/sessions", escaped, *parts])

    def call(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - any JSON
        """The decoded answer.

        Raises `NotFoundError`, `InvalidInputError` for another refusal, and `StoreUnavailableError`
        if the service does not answer after several attempts.
        """
        with self._open(method, path, body=body, headers=headers, query=query) as answer:
            raw = answer.read()
        return json.loads(raw) if raw else None

    def stream(self, path: str) -> tuple[int | None, Iterator[bytes]]:
        """The size of an answer, if it is known, and its bytes; a link is followed."""
        answer = self._open("GET", path)
        length = answer.headers.get("Content-Length")
        return (int(length) if length else None), _chunks(answer)

    def _open(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - urllib's answer
        target = f"{self.url.rstrip('/')}{path}"
        if query:
            target += f"?{urllib.parse.urlencode(query)}"
        for attempt in range(ATTEMPTS):
            request = urllib.request.Request(target, data=body, method=method)  # noqa: S310 - as given
            request.add_header("Authorization", f"Bearer {self.key}")
            for name, value in (headers or {}).items():
                request.add_header(name, value)
            try:
                return _OPENER.open(request, timeout=TIMEOUT_SECONDS)
            except urllib.error.HTTPError as error:
                if not _may_repeat(error.code) or attempt == ATTEMPTS - 1:
                    raise _refusal(error) from None
                pause = float(error.headers.get("Retry-After") or 2**attempt * 0.1)
            except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
                if attempt == ATTEMPTS - 1:
                    raise StoreUnavailableError(f"{self.url} does not answer: {error}") from None
                pause = 2**attempt * 0.1
            self.sleep(min(pause, LONGEST_PAUSE_SECONDS))
        raise StoreUnavailableError(f"{self.url} does not answer")


class _Redirect(urllib.request.HTTPRedirectHandler):
    """Follows a link; the key goes along only where it leads to the service itself.

    An export that takes long leads from request to request.
    """

    max_redirections = 1000

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """See `HTTPRedirectHandler`."""
        followed = super().redirect_request(req, fp, code, msg, headers, newurl)
        if followed is not None and _origin(newurl) != _origin(req.full_url):
            followed.remove_header("Authorization")
        return followed


def _origin(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc


_OPENER = urllib.request.build_opener(_Redirect)


def _chunks(answer: Any) -> Iterator[bytes]:  # noqa: ANN401 - urllib's answer
    with answer:
        while chunk := answer.read(CHUNK_BYTES):
            yield chunk


def _may_repeat(status: int) -> bool:
    return status in (TOO_MANY, CONFLICT) or status > SERVER_ERROR


def _refusal(error: urllib.error.HTTPError) -> Exception:
    """The problem that the service told of."""
    try:
        said = json.loads(error.read())
        text = f"{said.get('detail') or said.get('title')} ({said.get('code')})"
    except (ValueError, AttributeError):
        text = f"the service answers {error.code}"
    if error.code == NOT_FOUND:
        return NotFoundError(text)
    if error.code >= SERVER_ERROR or error.code == TOO_MANY:
        return StoreUnavailableError(text)
    return InvalidInputError(text)
