"""The command line's client follows links, and hands its key to nobody else."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from turnfold.cli.service_client import ServiceClient
from turnfold.domain.errors import InvalidInputError, NotFoundError, StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

type Answers = Callable[[str], tuple[int, dict[str, str], bytes]]


class Server:
    """Answers on loopback, and remembers paths and keys."""

    def __init__(self, answers: Answers) -> None:
        self.asked: list[tuple[str, str | None]] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append((self.path, self.headers.get("Authorization")))
                status, headers, body = answers(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def serving(answers: Answers) -> Iterator[Server]:
    server = Server(answers)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_an_export_is_followed_from_request_to_request_and_to_its_link() -> None:
    """More hops than urllib allows by itself; the key goes to the service alone."""
    hops = 30
    with serving(lambda _: (200, {}, b"the lines")) as bucket:

        def answers(path: str) -> tuple[int, dict[str, str], bytes]:
            at = int(path.partition("cursor=")[2] or 0)
            leads = f"?cursor={at + 1}" if at < hops else f"{bucket.url}/link?signature=1"
            return 303, {"Location": leads}, b"{}"

        with serving(answers) as service:
            client = ServiceClient(f"{service.url}/stage", "secret")
            size, chunks = client.stream(client.session_path("a/b", "export"))
            assert (size, b"".join(chunks)) == (9, b"the lines")
    paths = [path for path, _ in service.asked]
    assert paths[:2] == [f"/stage/v1/sessions/a%2Fb/export{query}" for query in ("", "?cursor=1")]
    assert len(paths) == hops + 1
    assert {key for _, key in service.asked} == {"Bearer secret"}
    assert bucket.asked == [("/link?signature=1", None)]


@pytest.mark.parametrize(
    ("status", "error", "times"),
    [
        (404, NotFoundError, 1),
        (422, InvalidInputError, 1),
        (500, StoreUnavailableError, 1),
        (429, StoreUnavailableError, 8),
        (503, StoreUnavailableError, 8),
    ],
)
def test_what_may_pass_is_asked_again(status: int, error: type[Exception], times: int) -> None:
    pauses: list[float] = []
    with serving(lambda _: (status, {"Retry-After": "3"}, b"not JSON")) as service:
        client = ServiceClient(service.url, "secret", pauses.append)
        with pytest.raises(error):
            client.call("GET", "/v1/sessions")
    assert len(service.asked) == times
    assert pauses == [3.0] * (times - 1)
