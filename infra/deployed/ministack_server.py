"""MiniStack with two differences at its API Gateway: `python ministack_server.py`.

Runs under MiniStack's interpreter, so it imports nothing but the standard library and MiniStack.

A REST API gives a function the path percent-encoded, as the client sent it. MiniStack decodes it,
and an id with a slash would be another route; so here it gets the path undecoded.

Each request that is under way has a process of its own, which unpacks its layers. Starting many at
once takes two cores longer than a client waits; so here some go on and others queue.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Scope = MutableMapping[str, Any]
    Application = Callable[[Scope, Any, Any], Awaitable[None]]

REST_APIS = "/_aws/execute-api/"
AT_ONCE = 6


def like_a_gateway(application: Application) -> Application:
    """The application, which sees paths of REST APIs undecoded, and few requests at once."""
    places = asyncio.Semaphore(AT_ONCE)

    async def serve(scope: Scope, receive: object, send: object) -> None:
        raw = scope.get("raw_path")
        if not raw or not scope["path"].startswith(REST_APIS):
            await application(scope, receive, send)
            return
        path = raw.partition(b"?")[0].decode("latin-1")
        async with places:
            await application({**scope, "path": path}, receive, send)

    return serve


def main() -> None:
    """Serve as MiniStack does, as its environment says."""
    module: Any = importlib.import_module("ministack.app")
    module.app = like_a_gateway(module.app)
    module.main()


if __name__ == "__main__":
    main()
