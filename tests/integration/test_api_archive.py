"""Export, import, fork, rebuild, verify, expiry and erasure: the real handlers on MiniStack."""

from __future__ import annotations

import gzip
import json
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from support import fake_openai
from support.api import Api, Session, question, reply, turn
from support.aws import make_services
from support.handlers import Handlers, let_expire, running_handlers
from support.ministack import running_ministack
from turnfold.adapters.dynamo_keys import partition_key
from turnfold.adapters.s3_archive import record_key, session_prefix
from turnfold.domain.segments import BASE_TURNS, KEPT_RECORDS
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.aws import Services

pytestmark = pytest.mark.ministack

ROLLED_UP = BASE_TURNS + KEPT_RECORDS
HOSTILE = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\rh\ti\u202ej\u200dk\ufeff"
CALLS = [{"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"}]


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with running_ministack(tmp_path_factory.mktemp("ministack")) as endpoint:
        yield make_services(endpoint)


@pytest.fixture
def handlers(services: Services, tmp_path: Path) -> Iterator[Handlers]:
    with running_handlers(services, tmp_path) as running:
        yield running


@pytest.fixture
def session(handlers: Handlers, request: pytest.FixtureRequest) -> Session:
    """A session of the test's own, in a name that has to be escaped everywhere."""
    return handlers.api.session(f"ü/{request.node.name}"[:200])


def copy_of(session: Session) -> Session:
    return session.api.session(f"copy of {session.id}"[:250])


def key_of(session: Session) -> SessionKey:
    return SessionKey("local", session.id)


def objects_of(services: Services, session: Session) -> list[str]:
    """All versions and delete markers under a session's prefix."""
    answer = services.s3.list_object_versions(
        Bucket=services.bucket, Prefix=session_prefix(key_of(session))
    )
    return [one["Key"] for one in (*answer.get("Versions", []), *answer.get("DeleteMarkers", []))]


def items_of(services: Services, session: Session) -> list[str]:
    """The sort keys of a session's items."""
    answer = services.dynamodb.query(
        TableName=services.table,
        KeyConditionExpression="PK = :pk",
        ExpressionAttributeValues={":pk": {"S": partition_key(key_of(session))}},
    )
    return [one["SK"]["S"] for one in answer["Items"]]


def filled(session: Session, turns: int = 6) -> Session:
    session("PUT", "", {"system": ["Be kind."], "user_id": f"u-{session.id}"}).ok(201)
    session.commit(1, f"I am allergic to walnuts. {HOSTILE}")
    for number in range(2, turns + 1):
        session.commit(number)
    session.pin("Lives in Nîmes.")
    return session


def transcript(session: Session) -> list[Any]:
    return [one["messages"] for one in session("GET", "/transcript?limit=100").ok()["items"]]


def lines_of(text: str) -> list[Any]:
    return [json.loads(line) for line in text.split("\n") if line]


def fetched(link: str) -> str:
    """What stands behind a link, without credentials."""
    with urllib.request.urlopen(link, timeout=10) as answer:  # noqa: S310 - the emulator's
        content: bytes = answer.read()
    return content.decode()


def import_raw(session: Session, raw: bytes | str, **headers: str) -> Any:
    data = raw.encode() if isinstance(raw, str) else raw
    return session("POST", "/import", raw=data, **headers)


# Export and import --------------------------------------------------------------------------------


def test_an_export_comes_in_again_word_for_word(handlers: Handlers, session: Session) -> None:
    filled(session)
    handlers.drain()
    answer = session("GET", "/export")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-ndjson")
    kinds = [line["type"] for line in lines_of(answer.text)]
    assert (kinds[0], kinds.count("turn"), kinds.count("pin")) == ("session", 6, 2)
    copy = copy_of(session)
    done = import_raw(copy, answer.text, Idempotency_Key="once").ok(201)
    assert (done["turns_imported"], done["pins_imported"], done["errors"]) == (6, 2, [])
    again = import_raw(copy, answer.text, Idempotency_Key="once")
    assert again.ok(201) == done
    assert again.headers["idempotency-replayed"] == "true"
    import_raw(copy, turn_lines(9), Idempotency_Key="once").problem(422, "idempotency_mismatch")
    handlers.drain()
    assert transcript(copy) == transcript(session)
    assert transcript(copy)[0] == turn(1, f"I am allergic to walnuts. {HOSTILE}")
    pins = [sorted(one["text"] for one in s("GET", "/pins").ok()["items"]) for s in (session, copy)]
    assert pins[0] == pins[1]
    assert copy("GET").ok()["system"] == session("GET").ok()["system"]
    assert copy("GET", "/transcript/verify").ok()["ok"]
    assert copy.commit(7)["turn"] == 7


def test_a_large_export_is_a_link(handlers: Handlers, session: Session) -> None:
    for number in range(1, 7):
        session.commit(number, "x" * 480_000)
    answer = session("GET", "/export")
    assert answer.status == 303
    assert answer.body["url"] == answer.headers["location"]
    assert (answer.body["expires_at"] is None, answer.body["next_cursor"]) == (False, None)
    turns = [line for line in lines_of(fetched(answer.body["url"])) if line["type"] == "turn"]
    assert [one["messages"] for one in turns] == [turn(n, "x" * 480_000) for n in range(1, 7)]


def test_an_export_that_takes_long_leads_from_request_to_request(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(session)
    whole = session("GET", "/export").text
    monkeypatch.setattr("api.routes_copies.EXPORT_SECONDS", 0.0)
    answer = session("GET", "/export")
    requests, cursor = 1, ""
    while answer.headers["location"].startswith("?cursor="):
        assert (answer.status, answer.body["url"]) == (303, None)
        assert answer.headers["location"] == f"?cursor={answer.body['next_cursor']}"
        cursor = answer.headers["location"]
        session.commit(100)
        answer = session("GET", f"/export{cursor}")
        requests += 1
    assert requests == 6
    assert fetched(answer.headers["location"]) == whole
    copy = filled(copy_of(session))
    copy("GET", f"/export{cursor}").problem(422, "invalid_cursor")
    session("GET", "/export?cursor=abc").problem(422, "invalid_cursor")
    stranger = Api(session.api.handler, "local-2").session(session.id)
    stranger("GET", f"/export{cursor}").problem(422, "invalid_cursor")


def turn_lines(*numbers: int) -> str:
    said = [{"type": "turn", "turn": number, "messages": turn(number)} for number in numbers]
    return "".join(f"{json.dumps(one)}\n" for one in said)


LANGCHAIN = [
    {"type": "human", "data": {"content": "1 + 1?", "type": "human"}},
    {"type": "ai", "data": {"content": "", "tool_calls": CALLS}},
    {"type": "tool", "data": {"content": "2", "tool_call_id": "c1"}},
    {"lc": 1, "id": ["langchain", "AIMessage"], "kwargs": {"content": "It is 2."}},
]
MM_MEMORY = [
    {
        "storageKey": "a:b",
        "messagePair": {
            "userMessage": {"role": "USER", "content": [{"type": "text", "text": "1 + 1?"}]},
            "intermediateMessages": [
                {"role": "ASSISTANT", "content": [{"type": "tool_use", "id": "c1", "name": "add"}]},
                {"role": "TOOL", "content": [{"type": "tool_result", "id": "c1", "output": "2"}]},
            ],
            "assistantMessage": {
                "role": "ASSISTANT",
                "content": [{"type": "text", "text": "It is 2."}],
            },
        },
    }
]


@pytest.mark.parametrize("dump", [LANGCHAIN, MM_MEMORY], ids=["LangChain", "mm-memory"])
@pytest.mark.parametrize("layout", ["list", "lines"])
def test_dumps_of_other_software_come_in(session: Session, dump: list[Any], layout: str) -> None:
    raw = json.dumps(dump) if layout == "list" else "\n".join(map(json.dumps, dump))
    done = import_raw(session, raw).ok(201)
    assert (done["turns_imported"], done["error_count"]) == (1, 0)
    (messages,) = transcript(session)
    assert [one["role"] for one in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[1]["tool_calls"][0]["function"]["name"] == "add"
    assert messages[3]["content"] == "It is 2."


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_list_of_openai_messages_comes_in(session: Session, wrapped: bool) -> None:
    messages = [*turn(1), *turn(2), {"role": "nobody"}, *turn(3), question("open")]
    done = import_raw(session, json.dumps({"messages": messages} if wrapped else messages)).ok(201)
    assert transcript(session) == [turn(1), turn(2), turn(3)]
    assert [one["line"] for one in done["errors"]] == [5, 8]


def test_wrong_lines_are_reported_by_number_and_the_rest_goes_in(session: Session) -> None:
    large = {"type": "turn", "messages": [question("x" * 1_100_000), reply()]}
    deep = '{"type":"turn","messages":' + "[" * 50 + "]" * 50 + "}"
    wrong = [
        turn_lines(1).strip(),
        "{half of a li",
        json.dumps({"type": "turn", "turn": 1, "messages": turn(1)}),
        json.dumps({"type": "turn", "messages": [question("unanswered")]}),
        "",
        deep,
        "\x00",
        json.dumps({"type": "turn", "turn": 2, "messages": turn(2), "sha256": "0" * 64}),
        json.dumps(large),
        '{"type":"pin","pin_id":"#"}',
        "5",
        json.dumps({"type": "turn", "messages": turn(3, HOSTILE)}, ensure_ascii=False),
        json.dumps({"type": "turn", "messages": [question("\ud800\x00?"), reply("!")]}),
    ]
    done = import_raw(session, "\n".join(wrong)).ok(201)
    assert [one["line"] for one in done["errors"]] == [2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert done["turns_imported"] == 3
    assert all(one["msg"] for one in done["errors"])
    assert transcript(session) == [
        turn(1),
        turn(3, HOSTILE),
        [question("\ufffd\ufffd?"), reply("!")],
    ]
    assert session("GET", "/transcript/verify").ok()["ok"]


SESSION_LINE = '{"type":"session","session_id":"a"}\n'
REFUSED = {
    "empty": (b"", 400),
    "blank lines": (b"\n \r\n\n", 400),
    "gzip": (gzip.compress(turn_lines(1).encode()), 400),
    "csv": (b"role,content\nuser,hello\nassistant,hi\n", 400),
    "utf-16": (turn_lines(1).encode("utf-16"), 400),
    "not utf-8": (turn_lines(1).encode() + b'{"type":"turn","x":"\xff"}', 400),
    "surrogates": (turn_lines(1).encode().replace(b"Question", b"\xed\xa0\x80"), 400),
    "deep": (b"[" * 100_000, 400),
    "deep and closed": (b'{"messages":' + b"[" * 5000 + b"]" * 5000 + b"}", 400),
    "NaN": (b'{"messages": NaN}', 400),
    "half a line": (turn_lines(1)[:30].encode(), 400),
    "no messages": (b'{"messages": []}', 422),
    "a text": (b'"hello"', 422),
    "no turn is whole": (json.dumps([question(), question()]).encode(), 422),
    "two sessions": ((SESSION_LINE + turn_lines(1) + SESSION_LINE + turn_lines(1)).encode(), 422),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_leaves_nothing(session: Session, services: Services, name: str) -> None:
    raw, status = REFUSED[name]
    answer = import_raw(session, raw)
    answer.problem(status, "bad_json" if status == 400 else "invalid_import")
    session("GET").problem(404, "session_not_found")
    assert objects_of(services, session) == []
    assert items_of(services, session) == []


# Fork, rebuild, verify ----------------------------------------------------------------------------


def test_a_fork_is_a_session_of_its_own(handlers: Handlers, session: Session) -> None:
    filled(session)
    handlers.drain()
    copy = copy_of(session)
    body = {"session_id": copy.id, "at_turn": 4}
    done = session("POST", "/fork", body, Idempotency_Key="f").ok(201)
    assert (done["turns"], done["session_id"]) == (4, copy.id)
    assert session("POST", "/fork", body, Idempotency_Key="f").ok(201) == done
    session("POST", "/fork", body).problem(409, "session_exists")
    assert transcript(copy) == transcript(session)[:4]
    assert copy.commit(99)["turn"] == 5
    handlers.drain()
    assert copy("GET", "/transcript/verify").ok()["ok"]
    assert session("GET").ok()["turns"] == 6
    for at, status in ((7, 404), (0, 422), ("x", 422)):
        wrong = {"session_id": "new", "at_turn": at}
        assert session("POST", "/fork", wrong).status == status


def test_a_rebuild_makes_a_damaged_memory_whole(
    handlers: Handlers, session: Session, services: Services
) -> None:
    filled(session)("PATCH", "", {"settings": {"round_token_threshold": 1}}).ok()
    handlers.drain()
    before = session("GET", "/working-memory").ok()
    assert any(one["kind"] == "round_summary" for one in before["window"])
    for sort_key in items_of(services, session):
        if sort_key.startswith(("SUM#", "TURN#")):
            key = {"PK": {"S": partition_key(key_of(session))}, "SK": {"S": sort_key}}
            services.dynamodb.delete_item(TableName=services.table, Key=key)
    assert session("GET", "/context").status == 503
    session("POST", "/rebuild").ok(202)
    handlers.drain()
    after = session("GET", "/working-memory").ok()
    for part in ("head", "tail"):
        assert after[part] == before[part]
    # What was judged is judged again: the fact is the same, the pin another.
    assert [one["text"] for one in after["pins"]] == [one["text"] for one in before["pins"]]
    folded = [
        [(one["kind"], one["from_turn"], one["to_turn"]) for one in memory["window"]]
        for memory in (before, after)
    ]
    assert folded[0] == folded[1]
    session.api.session("nobody")("POST", "/rebuild").problem(404, "session_not_found")


@pytest.mark.parametrize("rolled_up", [False, True])
def test_a_tampered_object_is_named(
    handlers: Handlers, session: Session, services: Services, rolled_up: bool
) -> None:
    body = turn_lines(*range(1, ROLLED_UP + 1))
    import_raw(session, body).ok(201)
    if rolled_up:
        handlers.drain()
    assert session("GET", "/transcript/verify").ok()["ok"]
    (name,) = [
        one
        for one in objects_of(services, session)
        if ("/segments/" if rolled_up else f"/turns/{5:012d}-") in one and _exists(services, one)
    ]
    stored = services.s3.get_object(Bucket=services.bucket, Key=name)["Body"].read()
    plain = gzip.decompress(stored) if rolled_up else stored
    changed = plain.replace(b"Answer 5.", b"Answer 6.")
    assert changed != plain
    data = gzip.compress(changed) if rolled_up else changed
    services.s3.put_object(Bucket=services.bucket, Key=name, Body=data)
    found = session("GET", "/transcript/verify").ok()
    assert (found["ok"], found["first_bad_turn"], found["turns"]) == (False, 5, ROLLED_UP)


def test_a_missing_object_is_named(session: Session, services: Services) -> None:
    filled(session)
    turn_id = session("GET", "/turns/3").ok()["turn_id"]
    services.s3.delete_object(Bucket=services.bucket, Key=record_key(key_of(session), 3, turn_id))
    found = session("GET", "/transcript/verify").ok()
    assert (found["ok"], found["first_bad_turn"]) == (False, 3)


def _exists(services: Services, name: str) -> bool:
    listed = services.s3.list_objects_v2(Bucket=services.bucket, Prefix=name)
    return bool(listed.get("Contents"))


# Expiry and erasure -------------------------------------------------------------------------------


@pytest.mark.parametrize("comes_back", ["read", "commit"])
def test_a_session_that_rested_comes_back(
    handlers: Handlers, session: Session, services: Services, comes_back: str
) -> None:
    filled(session)
    handlers.drain()
    before = session("GET", "/working-memory").ok()
    let_expire(services, key_of(session))
    handlers.sweep()
    handlers.drain()
    left = items_of(services, session)
    assert not [one for one in left if one.startswith(("TURN#", "SUM#", "PIN#"))], left
    listed = session.api("GET", f"/v1/sessions?user_id={quote(f'u-{session.id}')}").ok()
    assert [one["status"] for one in listed["items"]] == ["expired"]
    if comes_back == "read":
        after = session("GET", "/working-memory").ok()
        assert {part: after[part] for part in ("head", "window", "tail", "pins")} == {
            part: before[part] for part in ("head", "window", "tail", "pins")
        }
    assert session.commit(7)["turn"] == 7
    after = session("GET", "/working-memory").ok()
    assert after["head"] == before["head"]
    assert after["pins"] == before["pins"]
    assert [one["turn"] for one in after["tail"]] == [6, 7]
    assert session("GET", "/transcript/verify").ok()["ok"]


def test_an_erasure_leaves_a_receipt_and_nothing_else(
    handlers: Handlers, session: Session, services: Services
) -> None:
    filled(session)
    handlers.drain()
    asked = session("DELETE").ok(202)
    session("GET").problem(404, "session_not_found")
    session("POST", "/turns", {"messages": turn(1)}).problem(409, "session_erasing")
    import_raw(session, turn_lines(1)).problem(409, "session_erasing")
    assert session("DELETE").ok(202)["erasure_id"] == asked["erasure_id"]
    handlers.drain()
    receipt = session.api("GET", f"/v1/erasures/{asked['erasure_id']}").ok()
    assert (receipt["status"], receipt["finished_at"] is None) == ("erased", False)
    assert receipt["removed"]["items"] > 6
    assert receipt["removed"]["versions"] >= receipt["removed"]["objects"] >= 6
    assert objects_of(services, session) == []
    assert not [one for one in items_of(services, session) if not one.startswith("ERA")]
    for path in ("", "/context", "/export", "/transcript", "/transcript/verify", "/usage"):
        session("GET", path).problem(404, "session_not_found")
    other = Api(session.api.handler, "local-2")
    other("GET", f"/v1/erasures/{asked['erasure_id']}").problem(404, "erasure_not_found")
    assert session.commit(1)["turn"] == 1


def test_a_user_is_erased_with_all_sessions_but_not_under_a_hold(
    handlers: Handlers, session: Session, services: Services
) -> None:
    api, user = session.api, "user of the erasure"
    path = f"/v1/users/{quote(user)}"
    own = [api.session(f"{session.id} {number}") for number in range(3)]
    for one in own:
        one("POST", "/turns", {"messages": turn(1), "user_id": user}).ok(201)
    other = filled(session)
    own[1]("PATCH", "", {"legal_hold": True}).ok()
    api("DELETE", path).problem(409, "legal_hold")
    own[1]("DELETE").problem(409, "legal_hold")
    handlers.drain()
    assert all(one("GET").ok()["turns"] == 1 for one in own)
    own[1]("PATCH", "", {"legal_hold": False}).ok()
    asked = api("DELETE", path).ok(202)
    handlers.drain()
    receipt = api("GET", f"/v1/erasures/{asked['erasure_id']}").ok()
    assert receipt["status"] == "erased"
    assert receipt["removed"]["objects"] >= 3
    for one in own:
        one("GET").problem(404, "session_not_found")
        assert objects_of(services, one) == []
    assert other("GET").ok()["turns"] == 6
    api("DELETE", "/v1/users/nobody").problem(404, "user_not_found")


def test_usage_tells_what_models_were_asked(
    services: Services, tmp_path: Path, session: Session, handlers: Handlers
) -> None:
    filled(session)
    assert session("GET", "/usage").ok()["total"]["calls"] == 0
    with fake_openai.start() as fake:
        model = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": fake.url}
        with running_handlers(services, tmp_path, **model) as running:
            running.drain()
            asked = len(fake.requests())
    assert asked
    usage = session("GET", "/usage").ok()
    assert usage["total"]["calls"] == asked
    assert handlers.api.session("nobody")("GET", "/usage").status == 404
