"""What holds for every route: credentials, ids, methods, bodies, cursors, headers."""

from __future__ import annotations

import base64
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from api.app import ROUTES
from support.api import Api, Json, Session, turn

if TYPE_CHECKING:
    from api.routes import Route
    from turnfold.bootstrap import Turnfold

CREDENTIALS = {
    "none": {},
    "wrong key": {"Authorization": "Bearer wrong"},
    "empty": {"Authorization": ""},
    "no key": {"Authorization": "Bearer"},
    "no scheme": {"Authorization": "local"},
    "other scheme": {"Authorization": "Basic local"},
    "two keys": {"Authorization": "Bearer local local"},
}
ODD_IDS = [
    "a b",
    "a+b",
    "a/b",
    "a%2Fb",
    "a%252Fb",
    "user:1/x?y#z",
    "T#local#S#1",
    'quote"back\\tick`',
    "..",
    ".",
    "../../local-2/s1",
    "a//b",
    "/",
    "//",
    " x",
    "会话-1",
    "é",
    "😀",
    "%",
    "%41",
    "<session_id>",
    "{session_id}",
    "[a]|^",
    "bXl0==",
    "a;b,c&d=e",
]
NOT_JSON = {
    "empty": b"",
    "cut": b'{"messages": [',
    "not utf-8": b'{"a": "\xff\xfe"}',
    "too deep": b"[" * 100_000 + b"]" * 100_000,
    "just too deep": b'{"a": ' * 40 + b"1" + b"}" * 40,
    "nan": b'{"a": NaN}',
    "infinity": b'{"a": -Infinity}',
    "too large a number": b'{"a": 1e999}',
    "too many digits": b'{"a": ' + b"1" * 5000 + b"}",
    "two documents": b"{}{}",
}


def path_of(template: str) -> str:
    """A path of a template."""
    return template.replace("{turn}", "1").replace("{", "").replace("}", "")


@pytest.mark.parametrize("headers", CREDENTIALS.values(), ids=CREDENTIALS)
@pytest.mark.parametrize("route", [one for one in ROUTES if one.scope], ids=lambda one: one.name)
def test_no_route_answers_without_a_good_key(
    api: Api, route: Route, headers: dict[str, str]
) -> None:
    api.key = None
    lower: dict[str, Json] = {name.lower(): value for name, value in headers.items()}
    answer = api(route.method, path_of(route.template), **lower)
    answer.refusal(401, "unauthorized", route.template)
    assert answer.headers["www-authenticate"] == "Bearer"


def test_the_scheme_may_be_written_in_any_case(api: Api) -> None:
    assert api("GET", "/v1/sessions", authorization="bEARER local").status == 200


def test_two_authorization_headers_are_none(api: Api) -> None:
    api.changes = {"multiValueHeaders": {"authorization": ["Bearer local", "Bearer local-2"]}}
    api("GET", "/v1/sessions").problem(401, "unauthorized")


@pytest.mark.parametrize("route", [one for one in ROUTES if one.scope], ids=lambda one: one.name)
def test_a_key_needs_the_scope(api: Api, route: Route) -> None:
    api.key = "writer" if route.scope == "read" else "reader"
    answer = api(route.method, path_of(route.template))
    answer.refusal(403, "forbidden", route.template)


def test_reading_by_post_needs_no_scope_to_write(api: Api, session: Session) -> None:
    session.commit()
    api.key = "reader"
    session("POST", "/context", {}).ok()


def test_an_authorizer_in_front_names_the_tenant(
    api: Api, session: Session, turnfold: Turnfold
) -> None:
    session.commit()
    turnfold.__dict__["keys"] = None
    api.key = None
    session("GET").problem(401, "unauthorized")
    context = {"requestId": "r-1", "stage": "live", "path": "/live/x"}
    api.changes = {
        "requestContext": context | {"authorizer": {"tenant_id": "local", "scopes": "read"}}
    }
    assert session("GET").ok()["turns"] == 1
    session("PATCH", "", {}).problem(403, "forbidden")
    api.changes = {
        "requestContext": context | {"authorizer": {"tenant_id": "other", "scopes": "read write"}}
    }
    answer = session("GET")
    answer.problem(404, "session_not_found")
    assert answer.headers["x-request-id"] == "r-1"


def test_a_key_in_the_query_is_no_key(api: Api) -> None:
    api.key = None
    api("GET", "/v1/sessions?api_key=local&key=local").problem(401, "unauthorized")


@pytest.mark.parametrize("name", ODD_IDS)
def test_odd_ids_work_on_every_route(api: Api, name: str) -> None:
    session = api.session(f"{name}{uuid.uuid4().hex}{name}")
    assert session("PUT", "", {}).ok(201)["session_id"] == session.id
    assert session.commit()["session_id"] == session.id
    assert session("PATCH", "", {"metadata": {"n": 1}}).ok()["session_id"] == session.id
    assert session("GET", "/context").ok()["session_id"] == session.id
    assert session("GET", "/working-memory").ok()["session_id"] == session.id
    assert session("GET", "/turns/1").ok()["messages"] == turn(1)
    pin = session.pin()
    assert session("GET", f"/pins/{pin['pin_id']}").ok() == pin
    assert len(session("GET", "/transcript").ok()["items"]) == 1
    assert session("POST", "/compact").ok(202)["session_id"] == session.id


@pytest.mark.parametrize("name", ["..", ".", "%"])
def test_an_id_may_be_nothing_but_odd(api: Api, name: str) -> None:
    session = api.session(name)
    session("PUT", "", {"metadata": {"name": name}})
    assert session("GET").ok()["metadata"] == {"name": name}


def test_ids_are_decoded_exactly_once(api: Api) -> None:
    unique = uuid.uuid4().hex
    for target, name in (("a%2Fb", "a/b"), ("a%252Fb", "a%2Fb"), ("a%25252Fb", "a%252Fb")):
        made = api("PUT", f"/v1/sessions/{unique}{target}", {"metadata": {"is": name}}).ok(201)
        assert made["session_id"] == f"{unique}{name}"
    assert api("GET", f"/v1/sessions/{unique}a%2fb").ok()["metadata"] == {"is": "a/b"}
    assert api("GET", f"/v1/sessions/{unique}%61%2Fb").ok()["metadata"] == {"is": "a/b"}


def test_raw_characters_and_encoded_ones_are_the_same_id(api: Api) -> None:
    unique = uuid.uuid4().hex
    api("PUT", f"/v1/sessions/{unique}(a)\\\"`'é".encode().decode("latin-1"), {}).ok(201)
    assert api("GET", f"/v1/sessions/{unique}%28a%29%5C%22%60%27%C3%A9").ok()["turns"] == 0


@pytest.mark.parametrize("letter", ["x", "漢", "😀"])
def test_ids_have_at_most_256_characters(api: Api, letter: str) -> None:
    longest = uuid.uuid4().hex.ljust(256, letter)
    assert api.session(longest)("PUT", "", {}).ok(201)["session_id"] == longest
    api.session(longest + letter)("PUT", "", {}).problem(422, "invalid_session_id")


@pytest.mark.parametrize("name", ["a\x00b", "a\nb", "\x1f", "\x7f", "\x85", " ", "　"], ids=repr)
def test_ids_with_controls_or_nothing_else_but_blanks_are_refused(api: Api, name: str) -> None:
    for method, path, body in (("PUT", "", {}), ("GET", "", None), ("GET", "/context", None)):
        api.session(name)(method, path, body).problem(422, "invalid_session_id")


@pytest.mark.parametrize("target", ["%ff", "%C3%28", "%ED%A0%80"])
def test_ids_that_are_not_utf_8_are_refused(api: Api, target: str) -> None:
    api("GET", f"/v1/sessions/{target}").problem(422, "invalid_session_id")


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/nothing", "/v1/sessions/a/nothing", "/v1/sessions//turns", "/nix"]
)
def test_unknown_routes_are_not_found(api: Api, path: str) -> None:
    api("GET", path).problem(404, "not_found")
    api.key = None
    api("GET", path).problem(401, "unauthorized")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v1/sessions", "GET"),
        ("OPTIONS", "/v1/sessions/a", "DELETE, GET, PATCH, PUT"),
        ("PUT", "/v1/sessions/a/turns", "POST"),
        ("GET", "/v1/sessions/a/chat", "POST"),
        ("DELETE", "/healthz", "GET"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    api: Api, method: str, path: str, allowed: str
) -> None:
    answer = api(method, path)
    answer.problem(405, "method_not_allowed")
    assert answer.headers["allow"] == allowed


def test_a_head_request_is_a_get_without_its_body(api: Api, session: Session) -> None:
    session.commit()
    got, headed = session("GET"), session("HEAD")
    assert (headed.status, headed.text) == (200, "")
    assert headed.headers["etag"] == got.headers["etag"]


@pytest.mark.parametrize("raw", NOT_JSON.values(), ids=NOT_JSON)
@pytest.mark.parametrize("path", ["/turns", "/pins", "/chat"])
def test_bodies_that_are_not_json_are_refused(session: Session, path: str, raw: bytes) -> None:
    session("POST", path, raw=raw).problem(400, "bad_json")


@pytest.mark.parametrize("body", [[], None, "text", 7, True], ids=repr)
@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", ""), ("POST", "/turns"), ("POST", "/context"), ("POST", "/pins"), ("POST", "/chat")],
)
def test_bodies_that_are_no_objects_are_refused(
    session: Session, method: str, path: str, body: object
) -> None:
    session(method, path, raw=json.dumps(body).encode()).problem(422, "invalid_body")


def test_a_body_may_come_as_base64(api: Api, session: Session) -> None:
    body = json.dumps({"messages": turn(1, "é")}, ensure_ascii=False).encode()
    api.changes = {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
    session("POST", "/turns").ok(201)
    api.changes = {"body": "not base64 ☃", "isBase64Encoded": True}
    session("POST", "/turns").problem(400, "bad_json")


def test_a_body_of_none_needs_none(session: Session) -> None:
    session("PUT").ok(201)
    session("PATCH").ok()
    session("POST", "/context").ok()
    session("POST", "/compact").ok(202)


def test_texts_are_cleaned_of_what_cannot_be_stored(session: Session) -> None:
    raw = (
        b'{"messages": [{"role": "user", "content": "a\\ud800b\\u0000c"},'
        b' {"role": "assistant", "content": "d", "x\\udfff": 1}]}'
    )
    session("POST", "/turns", raw=raw).ok(201)
    asked, answered = session("GET", "/turns/1").ok()["messages"]
    assert asked["content"] == "a\ufffdb\ufffdc"
    assert answered["x\ufffd"] == 1


@pytest.mark.parametrize(
    "target",
    [
        "/v1/sessions?limit=0",
        "/v1/sessions?limit=101",
        "/v1/sessions?limit=-1",
        "/v1/sessions?limit=ten",
        "/v1/sessions?limit=1.5",
        "/v1/sessions?limit=%D9%A3",
        "/v1/sessions?limit=",
        "/v1/sessions/{id}/pins?limit=1000",
        "/v1/sessions/{id}/pins?status=forgotten",
        "/v1/sessions/{id}/transcript?from=0",
        "/v1/sessions/{id}/transcript?to=x",
        "/v1/sessions/{id}/transcript?to=9999999999999",
        "/v1/sessions/{id}/context?max_tokens=0",
        "/v1/sessions/{id}/context?max_tokens=-5",
        "/v1/sessions/{id}/context?max_tokens=many",
        "/v1/sessions/{id}/context?max_tokens=10000001",
        "/v1/sessions/{id}/context?recall=-1",
        "/v1/sessions/{id}/context?format=xml",
        "/v1/sessions/{id}/context?query=",
        "/v1/sessions/{id}/context?model=" + "m" * 201,
    ],
)
def test_parameters_out_of_range_are_refused(api: Api, session: Session, target: str) -> None:
    session.commit()
    api("GET", target.replace("{id}", session.id)).problem(422, "invalid_parameter")


@pytest.mark.parametrize("user", ["", " ", "x" * 257, "a%00b"])
def test_a_user_id_that_is_none_is_refused(api: Api, user: str) -> None:
    api("GET", f"/v1/sessions?user_id={user}").problem(422, "invalid_user_id")


def cursor(*content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    ["nonsense", "%C3%A9%E2%98%83", "e30=", "W10", "", "!!!!", cursor("a", "b"), cursor("x", 1)],
)
@pytest.mark.parametrize("path", ["", "/{id}/pins", "/{id}/transcript", "/{id}/pins?status=folded"])
def test_cursors_that_were_not_handed_out_are_refused(
    api: Api, session: Session, path: str, text: str
) -> None:
    session.commit()
    mark = "&" if "?" in path else "?"
    target = f"/v1/sessions{path.replace('{id}', session.id)}{mark}cursor={text}"
    api("GET", target).problem(422, "invalid_cursor")


def test_a_cursor_serves_its_own_list_only(api: Api, session: Session) -> None:
    for number in (1, 2, 3):
        session.commit(number)
        session.pin(f"Fact {number}.")
    of_turns = session("GET", "/transcript?limit=1").ok()["next_cursor"]
    of_pins = session("GET", "/pins?limit=1").ok()["next_cursor"]
    assert session("GET", f"/transcript?cursor={of_turns}").ok()["items"][0]["turn"] == 2
    assert session("GET", f"/pins?cursor={of_pins}").ok()["items"][0]["text"] == "Fact 2."
    session("GET", f"/transcript?cursor={of_pins}").problem(422, "invalid_cursor")
    session("GET", f"/pins?cursor={of_turns}").problem(422, "invalid_cursor")
    session("GET", f"/pins?status=folded&cursor={of_pins}").problem(422, "invalid_cursor")
    other = api.session(f"{session.id}-2")
    other.commit()
    other("GET", f"/transcript?cursor={of_turns}").problem(422, "invalid_cursor")
    api.key = "local-2"
    session.commit()
    session("GET", f"/transcript?cursor={of_turns}").problem(422, "invalid_cursor")


def test_open_routes_need_no_key(api: Api) -> None:
    api.key = None
    assert api("GET", "/healthz").ok() == {"status": "ok", "version": "0.1.0"}
    assert "/v1/sessions" in api("GET", "/openapi.json").ok()["paths"]
    page = api("GET", "/docs")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "http://" not in page.text
    assert "https://" not in page.text


@pytest.mark.parametrize(
    "key", ["", "x" * 256, "a\tb", "é", "\x7f"], ids=["empty", "long", "tab", "accent", "control"]
)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/turns", {"messages": turn()}),
        ("/pins", {"text": "a"}),
        ("/compact", {}),
    ],
)
def test_idempotency_keys_are_checked(
    session: Session, path: str, body: dict[str, Any], key: str
) -> None:
    session("PUT", "", {}).ok(201)
    refused = session("POST", path, body, idempotency_key=key)
    refused.problem(422, "invalid_idempotency_key")


def test_an_answer_that_no_lambda_can_carry_is_refused(session: Session) -> None:
    session("PUT", "", {"settings": {"pin_mode": "off", "auto_compression": False}}).ok(201)
    for number in range(4):
        session.commit(number, '"' * 250_000)
    session("GET", "/working-memory").problem(413, "context_too_large")
    session("GET", "/context?max_tokens=2000").ok()
