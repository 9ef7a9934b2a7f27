"""MiniStack with a journal, as a process of its own: `python -m infra.local.ministack_server`.

Runs under MiniStack's interpreter, so it imports nothing but the standard library, MiniStack and
the journal. Three things are added to MiniStack: what it acknowledged survives its death
(`journal.py`), one data folder is used by one process at a time, and it ends when the process
that started it is gone, which it notices by the end of its standard input.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.local import journal
from infra.local.journal import Backlog, Journal, Record, Translator

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

IN_USE = 75
LOCK_PATIENCE_SECONDS = 15.0
BATCH = 25
OK = 200
# The region and account of a replayed call are read from its credential scope.
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/{service}/aws4_request, "
    "SignedHeaders=host, Signature=0"
)

logger = logging.getLogger("turnfold.journal")


class JournaledApplication:
    """MiniStack's application; writes are in the journal before they are answered."""

    def __init__(self, application: Application, folder: Path) -> None:
        """Wrap the application; the journal lies in the folder."""
        self._application = application
        self._path = folder / "journal.jsonl"
        self._translator = Translator()
        self._journal: Journal | None = None
        self._order = asyncio.Lock()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection event; the state is restored before the first request."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, self._restoring(send))
            return
        target = _target(scope)
        if target not in journal.JOURNALED or self._journal is None:
            await self._application(scope, receive, send)
            return
        body = await _body(receive)
        if target == journal.RECEIVE:  # waits for messages, so it must not hold others up
            await self._journaled(scope, target, body, send)
            return
        async with self._order:
            await self._journaled(scope, target, body, send)

    async def _journaled(
        self, scope: MutableMapping[str, Any], target: str, body: bytes, send: Send
    ) -> None:
        status, messages, answer = await _collect(self._application, scope, body)
        if status == OK and self._journal is not None:
            records = self._translator.records(
                target, json.loads(body), json.loads(answer or b"{}")
            )
            self._journal.append(records)
        for message in messages:
            await send(message)

    def _restoring(self, send: Send) -> Send:
        async def restore_then_send(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete":
                await self._restore()
            await send(message)

        return restore_then_send

    async def _restore(self) -> None:
        """Replay the journal, then begin a new one that holds the present state only."""
        started = time.monotonic()
        definitions: list[Record] = []
        backlog = Backlog()
        writes = 0
        for record in journal.read(self._path):
            if record["kind"] == "define":
                definitions.append(record)
            if record["kind"] in {"define", "write"}:
                writes += record["kind"] == "write"
                await self._call(record["target"], record["request"])
            else:
                backlog.apply(record)
        fresh = self._path.with_name("journal.new")
        fresh.unlink(missing_ok=True)
        new = Journal(fresh)
        new.append(definitions)
        await self._copy_items(new)
        for message in backlog.messages.values():
            answer = await self._call(journal.SEND, message)
            if answer is not None:
                new.append(self._translator.records(journal.SEND, message, answer))
        fresh.replace(self._path)
        self._journal = new
        logger.info(
            "restored %d writes and %d messages in %.1f s",
            writes,
            len(backlog.messages),
            time.monotonic() - started,
        )

    async def _copy_items(self, new: Journal) -> None:
        tables = await self._call("DynamoDB_20120810.ListTables", {}) or {}
        for table in tables.get("TableNames", []):
            start: Record | None = None
            while True:
                request = {"TableName": table, "ConsistentRead": True}
                page = await self._call(
                    "DynamoDB_20120810.Scan",
                    request if start is None else request | {"ExclusiveStartKey": start},
                )
                items = (page or {}).get("Items", [])
                for first in range(0, len(items), BATCH):
                    puts = [{"PutRequest": {"Item": i}} for i in items[first : first + BATCH]]
                    target = "DynamoDB_20120810.BatchWriteItem"
                    request = {"RequestItems": {table: puts}}
                    new.append([{"kind": "write", "target": target, "request": request}])
                start = (page or {}).get("LastEvaluatedKey")
                if start is None:
                    break

    async def _call(self, target: str, request: Record) -> Record | None:
        service = "dynamodb" if target.startswith("DynamoDB") else "sqs"
        version = "1.0"
        headers = {
            "host": f"127.0.0.1:{os.environ['GATEWAY_PORT']}",
            "authorization": AUTHORIZATION.format(service=service),
            "content-type": f"application/x-amz-json-{version}",
            "x-amz-target": target,
        }
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/",
            "raw_path": b"/",
            "query_string": b"",
            "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
            "client": ("127.0.0.1", 0),
            "server": ("127.0.0.1", int(os.environ["GATEWAY_PORT"])),
        }
        body = json.dumps(request).encode()
        status, _, answer = await _collect(self._application, scope, body)
        if status != OK:
            logger.error("could not replay %s: %s", target, answer[:500])
            return None
        result: Record = json.loads(answer or b"{}")
        return result


def _target(scope: MutableMapping[str, Any]) -> str:
    for name, value in scope.get("headers", []):
        if name.lower() == b"x-amz-target":
            target: str = value.decode("latin-1")
            return target
    return ""


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            break
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    return b"".join(parts)


async def _collect(
    application: Application, scope: MutableMapping[str, Any], body: bytes
) -> tuple[int, list[Message], bytes]:
    """Call the application with a complete body and keep what it would send."""
    messages: list[Message] = []
    delivered = False
    never = asyncio.Event()

    async def receive() -> Message:
        nonlocal delivered
        if delivered:
            await never.wait()
        delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        messages.append(dict(message))

    await application(scope, receive, send)
    status = next((m["status"] for m in messages if m["type"] == "http.response.start"), 0)
    parts = [m.get("body", b"") for m in messages if m["type"] == "http.response.body"]
    return status, messages, b"".join(parts)


def _lock(folder: Path) -> int | None:
    descriptor = os.open(folder / "store.lock", os.O_RDWR | os.O_CREAT, 0o600)
    patience = time.monotonic() + LOCK_PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > patience:
                return None
            time.sleep(0.1)
        else:
            return descriptor


def _end_with_parent() -> None:
    """End when standard input does: whoever started this process is gone or wants it gone."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(3)
        os._exit(0)  # nothing is lost: the journal is complete at any time

    threading.Thread(target=watch, name="parent", daemon=True).start()


def main() -> int:
    """Serve the folder that is named by the only argument."""
    folder = Path(sys.argv.pop())
    folder.mkdir(parents=True, exist_ok=True)
    _end_with_parent()
    if _lock(folder) is None:
        return IN_USE
    module: Any = importlib.import_module("ministack.app")
    module.app = JournaledApplication(module.app, folder)
    module.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
