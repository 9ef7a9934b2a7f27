"""No connection leaves this machine."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def forbid_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sockets connect to loopback only; anything else fails the test that tries it."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else "127.0.0.1"
        assert host in ("127.0.0.1", "::1", "localhost"), "a connection to the outside"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
