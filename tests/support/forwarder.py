"""Makes a port of the loopback reachable at another address of this machine."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 65536


@contextlib.contextmanager
def forwarded(address: str, port: int) -> Iterator[int]:
    """Connections to `address` go on to that port of 127.0.0.1; the port that it took there."""
    server = socket.create_server((address, 0))
    taken: int = server.getsockname()[1]
    threading.Thread(target=_accept, args=(server, port), daemon=True).start()
    try:
        yield taken
    finally:
        server.close()


def _accept(server: socket.socket, port: int) -> None:
    while True:
        try:
            one, _ = server.accept()
            other = socket.create_connection(("127.0.0.1", port))
        except OSError:
            return
        for source, target in ((one, other), (other, one)):
            threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
