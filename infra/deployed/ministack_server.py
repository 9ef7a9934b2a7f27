"""MiniStack whose API Gateway hands over paths as they were sent: `python ministack_server.py`.

Runs under MiniStack's interpreter, so it imports nothing but the standard library and MiniStack.
A REST API gives a function the path percent-encoded, as the client sent it; MiniStack decodes it,
and an id with a slash would be another route.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Scope = MutableMapping[str, Any]
    Application = Callable[[Scope, Any, Any], Awaitable[None]]

REST_APIS = "/_aws/execute-api/"


def with_sent_paths(application: Application) -> Application:
    """The application, seeing the paths of REST APIs undecoded."""

    async def serve(scope: Scope, receive: object, send: object) -> None:
        raw = scope.get("raw_path")
        if raw and scope["path"].startswith(REST_APIS):
            scope = {**scope, "path": raw.partition(b"?")[0].decode("latin-1")}
        await application(scope, receive, send)

    return serve


def main() -> None:
    """Serve as MiniStack does, as its environment says."""
    module = importlib.import_module("ministack.app")
    module.app = with_sent_paths(module.app)  # type: ignore[attr-defined]
    module.main()


if __name__ == "__main__":
    main()
