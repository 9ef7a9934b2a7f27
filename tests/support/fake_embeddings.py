"""An embeddings endpoint on loopback: texts that share words get vectors that are close."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, override


class FakeEmbeddings:
    """The endpoint, running until `stop`. `texts` are all that it was asked for."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.fake = self
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def vector(text: str, dimensions: int) -> list[float]:
    """How often words occur that fall into each of so many classes."""
    counts = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        counts[int.from_bytes(digest[:4]) % dimensions] += 1
    return counts


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    fake: FakeEmbeddings


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request: dict[str, Any] = json.loads(raw)
        if self.path == "/v1/embeddings":
            texts, dimensions = request["input"], request["dimensions"]
            self.server.fake.texts += texts
            data = [
                {"object": "embedding", "index": at, "embedding": vector(text, dimensions)}
                for at, text in enumerate(texts)
            ]
            self._send(200, {"object": "list", "data": data, "model": request["model"]})
        else:
            self._send(404, {"error": {"message": "no such path"}})

    def _send(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""
