"""The day when the table is lost: everything comes back from the bucket, by one command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.definitions import Definitions
from infra.local.settings import LOCAL_PARAMETERS
from support.api import Api, Session, turn
from support.aws import ENVIRONMENT, TEMPLATE, create_table, make_services
from support.handlers import Handlers, let_expire, running_handlers
from support.ministack import running_ministack
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.aws import Services

pytestmark = pytest.mark.ministack

CORE = Path(__file__).resolve().parents[2] / "layers" / "core"
ODD = "日誌 #3/ä%2F..?\N{LINE SEPARATOR}"
SETTINGS = {"tail_size": 3, "round_token_threshold": 1}
TURNS = 45
"""More than are kept as single records, so that there is a segment."""


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    with running_ministack(tmp_path) as endpoint:
        yield make_services(endpoint)


@pytest.fixture
def handlers(services: Services, tmp_path: Path) -> Iterator[Handlers]:
    with running_handlers(services, tmp_path) as running:
        yield running


def lose_table(services: Services) -> None:
    """Delete the table with all there is in it, and create it anew."""
    services.dynamodb.delete_table(TableName=services.table)
    create_table(services.dynamodb, Definitions.load(TEMPLATE, LOCAL_PARAMETERS))


def command(services: Services, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as an operator does."""
    return subprocess.run(
        [sys.executable, "-m", "turnfold.cli", *arguments],
        env=os.environ
        | ENVIRONMENT
        | {"PYTHONPATH": str(CORE), "AWS_ENDPOINT_URL": services.dynamodb.meta.endpoint_url},
        capture_output=True,
        text=True,
        check=False,
    )


def rebuild_all(services: Services) -> subprocess.CompletedProcess[str]:
    resources = ("--table", services.table, "--bucket", services.bucket)
    return command(services, "rebuild", "--all", *resources, "--queue-url", services.queue_url)


def fill(session: Session, turns: int) -> None:
    """Settings, turns (one of them says a fact) and a pin by hand."""
    session("PUT", "", {"settings": SETTINGS, "system": ["Be kind."], "user_id": "ann"}).ok(201)
    session.commit(1, "I am allergic to walnuts.")
    for number in range(2, turns + 1):
        session.commit(number, "Words. " * 8)
    session.pin(f"The code of {session.id[:9]} is 4711.")


def seen(session: Session) -> dict[str, Any]:
    """What a user sees of a session, and what must be the same afterwards."""
    state = session("GET").ok()
    pins = session("GET", "/pins").ok()["items"]
    working = session("GET", "/working-memory").ok()
    pages = session("GET", "/transcript?limit=100").ok()
    return {
        "said": {name: state[name] for name in ("settings", "user_id", "system", "turns")},
        "pins": sorted((pin["text"], pin["status"]) for pin in pins),
        "head": working["head"],
        "tail": working["tail"],
        "transcript": pages["items"],
    }


def test_everything_comes_back_from_the_bucket(services: Services, handlers: Handlers) -> None:
    api = handlers.api
    other = Api(api.handler, "local-2")
    names = ("long", "rested", "held", ODD)
    kept = [api.session(name) for name in names] + [other.session("long")]
    for session, turns in zip(kept, (TURNS, 6, 4, 5, 3), strict=True):
        fill(session, turns)
    _, rested, held, _, _ = kept
    held("PATCH", "", {"legal_hold": True}).ok()
    gone = api.session("gone")
    fill(gone, 4)
    handlers.drain()
    before = [seen(session) for session in kept]
    assert all(len(one["pins"]) == 2 for one in before), "one of them was said, one is by hand"
    context = kept[0]("GET", "/context").ok()
    assert any(one["kind"] != "raw" for one in context["regions"]["window"])

    let_expire(services, SessionKey("local", rested.id))
    erasure = gone("DELETE").ok(202)
    handlers.sweep()
    handlers.drain()
    assert api("GET", f"/v1/erasures/{erasure['erasure_id']}").ok()["status"] == "erased"
    listed = {one["session_id"]: one["status"] for one in api("GET", "/v1/sessions").ok()["items"]}
    assert listed["rested"] == "expired"

    lose_table(services)
    kept[0]("GET").problem(404, "session_not_found")
    done = rebuild_all(services)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "5 sessions in" in done.stderr
    handlers.drain()

    for session, was in zip(kept, before, strict=True):
        is_now = seen(session)
        for part, value in was.items():
            assert is_now[part] == value, (session.id, part)
        verified = session("GET", "/transcript/verify").ok()
        assert (verified["ok"], verified["turns"]) == (True, was["said"]["turns"])
        assert session("GET").ok()["watermark"]["pending_turns"] == 0
    after = kept[0]("GET", "/context").ok()
    assert after["messages"][0] == context["messages"][0]
    assert any(one["kind"] != "raw" for one in after["regions"]["window"])

    gone("GET").problem(404, "session_not_found")
    gone("POST", "/rebuild").problem(404, "session_not_found")
    held("DELETE").problem(409, "legal_hold")
    users = api("GET", "/v1/sessions?user_id=ann").ok()["items"]
    assert {one["session_id"] for one in users} == set(names)
    for session, was in zip(kept, before, strict=True):
        assert session.commit(99)["turn"] == was["said"]["turns"] + 1
    handlers.drain()
    assert all(session("GET", "/transcript/verify").ok()["ok"] for session in kept)

    # Nothing is made twice, and nothing is lost, by whoever runs it once more.
    again = [seen(session) for session in kept]
    assert rebuild_all(services).returncode == 0
    handlers.drain()
    assert [seen(session) for session in kept] == again


def test_what_cannot_be_rebuilt_is_named_and_the_rest_is(
    services: Services, handlers: Handlers
) -> None:
    good, long_id = handlers.api.session("good"), handlers.api.session("ü" * 250)
    good.commit(1)
    long_id.commit(1)
    lose_table(services)
    done = rebuild_all(services)
    assert done.returncode == 1
    assert "cannot be told" in done.stderr
    assert "1 sessions are not being rebuilt" in done.stderr
    handlers.drain()
    assert good("GET", "/turns/1").ok()["messages"] == turn(1)
    # Whoever knows the id asks by it.
    long_id("POST", "/rebuild").ok(202)
    handlers.drain()
    assert long_id("GET").ok()["turns"] == 1
