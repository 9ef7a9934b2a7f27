"""The HTTP side of the gateway: requests in, proxy events to the function, responses out."""

from __future__ import annotations

import contextlib
import json
import re
import select
import socket
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

from infra.local.api_event import Request, api_event
from infra.local.api_response import (
    WITHOUT_BODY,
    MalformedResponseError,
    Response,
    api_response,
    problem,
)
from infra.local.environments import InvocationError, InvocationTimeoutError, ThrottledError
from infra.local.settings import LOOPBACK

if TYPE_CHECKING:
    from infra.local.environments import Environments, Pieces
    from infra.local.logs import LogPrinter

MAX_REQUEST_BYTES = 10 * 1024 * 1024
MAX_RESULT_BYTES = 6 * 1024 * 1024
# A body that is too long is read to its end up to here, so that the client reads the answer.
MAX_DISCARDED_BYTES = 128 * 1024 * 1024
CHUNK = 65536
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class PortTakenError(Exception):
    """Another program listens on the port."""


class _TooLargeError(Exception):
    """The request's body is over the gateway's limit."""


class _BadRequestError(Exception):
    """The request cannot be read."""


class HttpServer:
    """Serves a function over HTTP on the loopback interface."""

    def __init__(self, port: int, logs: LogPrinter) -> None:
        """Take the port; requests wait until `serve` is called."""
        try:
            self._server = _Server((LOOPBACK, port), logs)
        except OSError as error:
            message = (
                f"Port {port} of {LOOPBACK} cannot be used ({error.strerror}). "
                "Stop what uses it, or choose another one: PORT=8788 make run"
            )
            raise PortTakenError(message) from error
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.server_address[1])

    def serve(self, environments: Environments) -> None:
        """Begin to answer, from a thread of its own."""
        self._server.environments = environments
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="http", daemon=True
        )
        self._thread.start()

    def stop(self, patience: float) -> bool:
        """Accept nothing new and wait for the requests in flight; false if some were cut off."""
        self._server.draining = True
        if self._thread is not None:
            self._server.shutdown()
        self._server.server_close()
        deadline = time.monotonic() + patience
        while self._server.in_flight and time.monotonic() < deadline:
            time.sleep(0.02)
        return not self._server.in_flight


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], logs: LogPrinter) -> None:
        self.logs = logs
        self.environments: Environments | None = None
        self.draining = False
        self._count = 0
        self._count_lock = threading.Lock()
        super().__init__(address, _Handler)

    @property
    def in_flight(self) -> int:
        return self._count

    def count(self, change: int) -> None:
        with self._count_lock:
            self._count += change

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is none of our business."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "turnfold-local"
    sys_version = ""
    disable_nagle_algorithm = True
    timeout: ClassVar[int] = 75
    server: _Server

    def _handle(self) -> None:
        self.server.count(1)
        try:
            response = self._answer()
            if response.pieces is None:
                self._respond(response)
            else:
                self._stream(response, response.pieces)
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        finally:
            self.server.count(-1)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            if name.removeprefix("do_") in METHODS:
                return self._handle
            raise AttributeError(name)
        raise AttributeError(name)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named so above
        """The functions log; the server does not repeat it."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what the standard library refuses, in the form of the contract."""
        title = HTTPStatus(code).phrase
        self.close_connection = True
        with contextlib.suppress(OSError):
            self._respond(problem(code, "bad_request", title, message or explain or title))

    def _answer(self) -> Response:
        try:
            body = self._read_body()
        except _TooLargeError:
            self.close_connection = True
            return problem(
                413,
                "request_too_large",
                "Content Too Large",
                f"A request is at most {MAX_REQUEST_BYTES} bytes; send less.",
            )
        except _BadRequestError as error:
            self.close_connection = True
            return problem(400, "bad_request", "Bad Request", str(error))
        headers = [(name, value) for name, value in self.headers.items()]
        target = self.requestline.split(" ")[1]
        request = Request(self.command, target, headers, body, str(self.client_address[0]))
        return self._invoke(request)

    def _invoke(self, request: Request) -> Response:
        environments, logs = self.server.environments, self.server.logs
        if environments is None:
            return problem(503, "starting", "Service Unavailable", "The stack is starting.")
        where = f"{request.method} {request.target.partition('?')[0]}"
        try:
            result = environments.invoke(api_event(request))
            response = api_response(result)
            # Measured as Lambda does, with the escapes of JSON; small bodies need no look.
            if len(response.body) * 6 > MAX_RESULT_BYTES:
                size = len(json.dumps(result, ensure_ascii=False).encode("utf-8", "replace"))
                if size > MAX_RESULT_BYTES:
                    message = f"{where}: the result has {size} bytes; Lambda refuses over 6 MB"
                    logs.note("error", message)
        except ThrottledError:
            logs.note("warning", f"{where}: every environment is busy")
            busy = problem(429, "throttled", "Too Many Requests", "Try again in a second.")
            return Response(busy.status, [*busy.headers, ("Retry-After", "1")], busy.body)
        except InvocationTimeoutError as error:
            logs.note("error", f"{where}: {error}")
            return problem(504, "gateway_timeout", "Gateway Timeout", "The request took too long.")
        except (InvocationError, MalformedResponseError) as error:
            logs.note("error", f"{where}: {error}")
            trace = getattr(error, "trace", "")
            if trace:
                logs.line("api", trace.rstrip())
            return problem(502, "bad_gateway", "Bad Gateway", "The request failed; see the log.")
        else:
            return response

    def _stream(self, response: Response, pieces: Pieces) -> None:
        """Send each piece as it comes; the handler is told when the client has left."""
        chunked = self.request_version != "HTTP/1.0"
        self.close_connection |= not chunked or self.server.draining
        more = [("Transfer-Encoding", "chunked")] if chunked else []
        try:
            self.wfile.write(self._head(response, more))
            for piece in pieces:
                if self._client_left():
                    raise ConnectionResetError
                data = piece.encode("utf-8", "replace")
                framed = b"%x\r\n%b\r\n" % (len(data), data) if chunked else data
                self.wfile.write(framed if data else b"")
            self.wfile.write(b"0\r\n\r\n" if chunked else b"")
        except InvocationError as error:
            # The head is sent, so all that can be told is that the body did not come to its end.
            self.server.logs.note("error", f"a streamed answer broke off: {error}")
            self.close_connection = True
        finally:
            pieces.close()

    def _client_left(self) -> bool:
        """Whether the client has closed its side. Writing to it would be noticed too late."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def _head(self, response: Response, more: list[tuple[str, str]]) -> bytes:
        """The status line and the headers."""
        phrase = HTTPStatus(response.status).phrase if response.status in _PHRASES else ""
        lines = [f"HTTP/1.1 {response.status} {phrase}"]
        lines += [f"{name}: {value}" for name, value in (*response.headers, *more)]
        lines.append(f"Date: {self.date_time_string()}")
        if self.close_connection:
            lines.append("Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8")

    def _respond(self, response: Response) -> None:
        head_only = getattr(self, "command", None) == "HEAD" or response.status in WITHOUT_BODY
        self.close_connection |= self.server.draining
        length = [("Content-Length", str(len(response.body)))]
        head = self._head(response, [] if response.status in WITHOUT_BODY else length)
        self.wfile.write(head if head_only else head + response.body)

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._read_chunks()
        text = self.headers.get("Content-Length", "0").strip()
        if not text.isascii() or not text.isdigit():
            raise _BadRequestError("Content-Length is not a number.")
        length = int(text)
        if length > MAX_REQUEST_BYTES:
            self._discard(length)
            raise _TooLargeError
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionResetError
        return body

    def _read_chunks(self) -> bytes:
        parts: list[bytes] = []
        total = 0
        while True:
            size_text = self.rfile.readline(CHUNK).split(b";", 1)[0].strip()
            if not _CHUNK_SIZE.fullmatch(size_text):
                raise _BadRequestError("A chunk has no valid size.")
            size = int(size_text, 16)
            if size == 0:
                break
            total += size
            if total > MAX_REQUEST_BYTES:
                self._discard(size)
                raise _TooLargeError
            parts.append(self.rfile.read(size))
            self.rfile.readline(CHUNK)
        while self.rfile.readline(CHUNK).strip():
            pass
        return b"".join(parts)

    def _discard(self, length: int) -> None:
        left = min(length, MAX_DISCARDED_BYTES)
        while left > 0:
            data = self.rfile.read(min(CHUNK, left))
            if not data:
                break
            left -= len(data)


_PHRASES = frozenset(int(status) for status in HTTPStatus)
