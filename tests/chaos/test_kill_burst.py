"""`kill -9` of the whole local stack in the middle of a burst of commits.

After a restart every acknowledged turn is there once, the numbers have no gaps, the hash chain
closes, the memory that is read stands for every turn, and the background work catches up.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import random
import signal
import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from integration.local_stack import REPOSITORY, RunningStack, wait_for, wait_until_gone
from support.fake_openai import FakeOpenAI, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.ministack, pytest.mark.slow]

SESSIONS = ("first", "second/third", "日誌 #3")
CLIENTS = 10
BURSTS = 2
LEAST_ACKNOWLEDGED = 15
RETRYABLE = {409, 429, 503}


@dataclass
class Client:
    """One connection to the stack."""

    port: int
    seconds: float = 15
    _connection: http.client.HTTPConnection | None = None

    def __call__(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                "127.0.0.1", self.port, timeout=self.seconds
            )
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        content = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(
                method, path, content, {"Authorization": "Bearer local", **sent}
            )
            answer = self._connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            self._connection = None
            raise
        found = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, found, json.loads(text)


@dataclass
class Burst:
    """Clients that commit as fast as they can, and what was acknowledged to them."""

    number: int
    port: int
    acknowledged: dict[str, tuple[str, int, Any]] = field(default_factory=dict)
    unexpected: list[tuple[int, Any]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def run(self, kill: Callable[[], None]) -> None:
        threads = [threading.Thread(target=self._client, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(self.acknowledged) >= LEAST_ACKNOWLEDGED)
        self.over.wait(random.Random(self.number).uniform(0, 0.8))
        kill()
        self.over.set()
        for thread in threads:
            thread.join(30)

    def _client(self, client: int) -> None:
        call, count = Client(self.port), 0
        while not self.over.is_set():
            count += 1
            key = f"{self.number}-{client}-{count}"
            session = SESSIONS[(client + count) % len(SESSIONS)]
            body = {"messages": said(key)}
            try:
                while not self.over.is_set():
                    status, _, answer = call(
                        "POST", f"{path_of(session)}/turns", body, Idempotency_Key=key
                    )
                    if status == 201:
                        self.acknowledged[key] = (session, answer["turn"], body)
                        break
                    if status not in RETRYABLE:
                        self.unexpected.append((status, answer))
                        break
            except (OSError, http.client.HTTPException):
                return


def said(key: str) -> list[dict[str, Any]]:
    filler = f"We spoke about the harbour and the number {key}. " * 6
    return [
        {"role": "user", "content": f"Question {key}? {filler}"},
        {"role": "assistant", "content": f"Answer {key}. {filler}"},
    ]


def path_of(session: str) -> str:
    return "/v1/sessions/" + "".join(f"%{byte:02X}" for byte in session.encode())


def kill_all(stack: RunningStack) -> None:
    """All processes of the stack at once, none of which gets to tidy up."""
    pids = stack.processes()
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    stack.process.wait(10)
    wait_until_gone(pids)


def transcript(call: Client, session: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor = ""
    while True:
        status, _, page = call("GET", f"{path_of(session)}/transcript?limit=100{cursor}")
        assert status == 200, page
        items += page["items"]
        if not page["next_cursor"]:
            return items
        cursor = f"&cursor={page['next_cursor']}"


def canonical_hash(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def records(data: Path) -> dict[str, dict[str, Any]]:
    """The records in the bucket's files, by their own hash, each recomputed."""
    found = {}
    for path in data.rglob("*/turns/*.json"):
        if path.name.endswith(".meta.json"):
            continue
        record = json.loads(path.read_text(encoding="utf-8"))
        stated = record.pop("sha256")
        assert canonical_hash(record) == stated, path.name
        found[stated] = record
    return found


def check_chain(items: list[dict[str, Any]], archived: dict[str, dict[str, Any]]) -> None:
    before = "0" * 64
    for number, item in enumerate(items, start=1):
        assert item["turn"] == number
        assert item["prev_sha256"] == before
        record = archived[item["sha256"]]
        assert record["prev_sha256"] == before
        assert record["messages"] == item["messages"]
        before = item["sha256"]


def check_coverage(call: Client, session: str, turns: int) -> None:
    """Every turn is represented once, in order."""
    status, _, memory = call("GET", f"{path_of(session)}/working-memory")
    assert status == 200
    runs = [
        *((turn["turn"], turn["turn"]) for turn in memory["head"]),
        *((entry["from_turn"], entry["to_turn"]) for entry in memory["window"]),
        *((turn["turn"], turn["turn"]) for turn in memory["tail"]),
    ]
    reached = 0
    for first, last in runs:
        assert first == reached + 1, runs
        reached = last
    assert reached == turns


@pytest.fixture
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as fake:
        yield fake


def start(data: Path, model: FakeOpenAI) -> RunningStack:
    return RunningStack(
        data,
        TURNFOLD_FUNCTIONS=str(REPOSITORY / "functions"),
        TURNFOLD_TEMPLATE=str(REPOSITORY / "template.yaml"),
        OPENAI_API_KEY="fake",
        OPENAI_BASE_URL=model.url,
        HTTP_PROXY="",
        http_proxy="",
    ).wait_until_ready()


def test_nothing_acknowledged_is_lost_when_everything_is_killed(
    tmp_path: Path, model: FakeOpenAI
) -> None:
    acknowledged: dict[str, tuple[str, int, Any]] = {}
    for number in range(BURSTS):
        # A slow model, so that the kill hits compactions between the model's answer and the write.
        model.script(Rule(seconds=0.4, times=10))
        stack = start(tmp_path, model)
        burst = Burst(number, int(stack.url.rpartition(":")[2]))
        try:
            burst.run(partial(kill_all, stack))
        finally:
            stack.stop(signal.SIGKILL)
        assert not burst.unexpected
        acknowledged |= burst.acknowledged
    model.clear()

    stack = start(tmp_path, model)
    try:
        call = Client(int(stack.url.rpartition(":")[2]), seconds=60)
        archived = records(tmp_path)
        for session in SESSIONS:
            items = transcript(call, session)
            check_chain(items, archived)
            check_coverage(call, session, len(items))
            texts = [item["messages"][0]["content"] for item in items]
            assert len(set(texts)) == len(texts), "a turn was committed twice"
            mine = {key: one for key, one in acknowledged.items() if one[0] == session}
            for key, (_, turn, body) in mine.items():
                assert items[turn - 1]["messages"] == body["messages"]
                status, headers, answer = call(
                    "POST", f"{path_of(session)}/turns", body, Idempotency_Key=key
                )
                assert (status, answer["turn"]) == (201, turn)
                assert headers["idempotency-replayed"] == "true"
            # The bell of a commit that was killed before it rang is rung by the next commit.
            call("POST", f"{path_of(session)}/turns", {"messages": said("last")})
            wait_for(partial(caught_up, call, session), seconds=30)
            check_coverage(call, session, len(items) + 1)
    finally:
        stack.stop()


def caught_up(call: Client, session: str) -> bool:
    status, _, found = call("GET", path_of(session))
    assert status == 200
    return bool(found["watermark"]["pending_turns"] == 0)
