"""Sessions over the handler."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from support.api import Api, Session, turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnfold.bootstrap import Turnfold

from turnfold.application.ports.memory import Change
from turnfold.domain.errors import GuardFailedError
from turnfold.domain.sessions import SessionKey, SessionStatus

BAD_INPUTS: list[tuple[dict[str, Any], str]] = [
    ({"settings": {"head_sise": 1}}, "invalid_settings"),
    ({"settings": {"head_size": 0}}, "invalid_settings"),
    ({"settings": {"tail_size": "two"}}, "invalid_settings"),
    ({"settings": {"head_size": 1.5}}, "invalid_settings"),
    ({"settings": {"auto_compression": 1}}, "invalid_settings"),
    ({"settings": {"pin_mode": "sometimes"}}, "invalid_settings"),
    ({"settings": {"schedule": ["tiered"]}}, "invalid_settings"),
    ({"settings": {"strategies": ["PIN"]}}, "invalid_settings"),
    ({"settings": {"strategies": [{}]}}, "invalid_settings"),
    ({"settings": "none"}, "invalid_settings"),
    ({"settings": {"policy": {"name": "random"}}}, "invalid_policy"),
    ({"settings": {"policy": {"name": "progressive", "x": 1}}}, "invalid_policy"),
    ({"system": "Be brief."}, "invalid_messages"),
    ({"system": [7]}, "invalid_messages"),
    ({"system": [{"role": "user", "content": "a"}]}, "invalid_messages"),
    ({"user_id": 7}, "invalid_user_id"),
    ({"user_id": ""}, "invalid_user_id"),
    ({"metadata": []}, "invalid_metadata"),
    ({"metadata": {"a": "x" * 300_000}}, "invalid_settings"),
]


def test_put_creates_then_replaces(session: Session) -> None:
    made = session("PUT", "", {"settings": {"head_size": 2}, "metadata": {"a": 1}}).ok(201)
    assert (made["status"], made["turns"], made["settings"]["head_size"]) == ("live", 0, 2)
    replaced = session("PUT", "", {"settings": {"tail_size": 3}}).ok()
    assert (replaced["settings"]["head_size"], replaced["settings"]["tail_size"]) == (1, 3)
    assert replaced["metadata"] == {}


def test_patch_merges(session: Session) -> None:
    session("PUT", "", {"settings": {"head_size": 2}, "metadata": {"a": 1}}).ok(201)
    merged = session("PATCH", "", {"settings": {"tail_size": 3}, "metadata": {"b": 2}}).ok()
    assert (merged["settings"]["head_size"], merged["settings"]["tail_size"]) == (2, 3)
    assert merged["metadata"] == {"a": 1, "b": 2}


def test_unknown_members_of_a_body_are_ignored(session: Session) -> None:
    assert "tenant" not in session("PUT", "", {"tenant": "local-2"}).ok(201)


@pytest.mark.parametrize(("body", "code"), BAD_INPUTS, ids=str)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_wrong_inputs_are_refused(
    session: Session, method: str, body: dict[str, Any], code: str
) -> None:
    session("PUT", "", {}).ok(201)
    session(method, "", body).problem(422, code)


def test_a_policy_is_a_setting_and_may_be_named_alone(session: Session) -> None:
    policy = {"name": "message_window", "max_messages": 5}
    made = session("PUT", "", {"settings": {"policy": policy}}).ok(201)
    assert made["settings"]["policy"] == policy
    changed = session("PATCH", "", {"settings": {"policy": "progressive"}}).ok()
    assert changed["settings"]["policy"] == {"name": "progressive"}


def test_a_user_is_set_once(session: Session) -> None:
    session("PUT", "", {"user_id": "u-1"}).ok(201)
    session("PATCH", "", {"user_id": "u-2"}).problem(422, "user_mismatch")
    body = {"messages": turn(), "user_id": "u-2"}
    session("POST", "/turns", body).problem(422, "user_mismatch")


@pytest.mark.parametrize(
    "path", ["", "/context", "/working-memory", "/turns/1", "/pins", "/pins/p"]
)
def test_unknown_sessions_are_not_found(session: Session, path: str) -> None:
    session("GET", path).problem(404, "session_not_found")


@pytest.mark.parametrize(
    ("method", "path"), [("PATCH", ""), ("POST", "/compact"), ("GET", "/transcript")]
)
def test_unknown_sessions_are_not_changed(session: Session, method: str, path: str) -> None:
    session(method, path).problem(404, "session_not_found")


def test_etags_tell_states_apart(session: Session) -> None:
    first = session("PUT", "", {}).headers["etag"]
    assert first.startswith('"')
    assert session("GET").headers["etag"] == first
    for wanted in (first, f"W/{first}", f'"other", {first}', "*"):
        known = session("GET", if_none_match=wanted)
        assert (known.status, known.text, known.headers["etag"]) == (304, "", first)
        assert "content-type" not in known.headers
    second = session("PATCH", "", {"metadata": {"a": 1}}, if_match=first).headers["etag"]
    assert second != first
    assert session("GET", if_none_match=first).status == 200


def test_if_match_guards_changes(session: Session) -> None:
    session("PUT", "", {}, if_match='"x"').problem(412, "stale_etag")
    session("PUT", "", {}, if_match="*").problem(412, "stale_etag")
    old = session("PUT", "", {}).headers["etag"]
    new = session("PATCH", "", {"metadata": {"a": 1}}, if_match=old).headers["etag"]
    for method in ("PUT", "PATCH"):
        session(method, "", {}, if_match=old).problem(412, "stale_etag")
        session(method, "", {}, if_match=f"W/{new}").problem(412, "stale_etag")
    assert session("PATCH", "", {}, if_match=f'"x", {new}').status == 200
    assert session("PATCH", "", {}, if_match="*").status == 200


def test_lists_are_of_the_tenant_or_of_a_user(api: Api) -> None:
    user = f"user/{uuid.uuid4().hex}"
    names = [f"{number}-{uuid.uuid4().hex}" for number in range(5)]
    for name in names:
        api.session(name)("PUT", "", {"user_id": user}).ok(201)
    api.session(uuid.uuid4().hex)("PUT", "", {"user_id": "another"}).ok(201)
    found: list[str] = []
    target = f"/v1/sessions?limit=2&user_id={user.replace('/', '%2F')}"
    cursor = ""
    while True:
        page = api("GET", target + cursor).ok()
        assert len(page["items"]) <= 2
        found += [one["session_id"] for one in page["items"]]
        if not page["next_cursor"]:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert found == names[::-1]
    everyone = api("GET", "/v1/sessions?limit=100").ok()["items"]
    assert set(names) < {one["session_id"] for one in everyone}
    api.key = "local-2"
    assert api("GET", target).ok()["items"] == []


def erasing(turnfold: Turnfold, session: Session) -> None:
    """Put a session into the state of one that is being erased."""
    key = SessionKey("local", session.id)
    live, _ = turnfold.store.read_session(key, None)
    assert live
    turnfold.store.write(Change(key, epoch=live.epoch, sets={"status": SessionStatus.ERASING}))


def test_a_session_that_is_being_erased_takes_no_writes(
    turnfold: Turnfold, session: Session
) -> None:
    session.commit()
    erasing(turnfold, session)
    answer = session("POST", "/turns", {"messages": turn()})
    answer.problem(409, "session_erasing")
    assert answer.headers["retry-after"].isdigit()
    session("POST", "/pins", {"text": "a"}).problem(409, "session_erasing")
    session("PUT", "", {}).problem(409, "session_erasing")
    for method, path in (("GET", ""), ("GET", "/context"), ("PATCH", ""), ("POST", "/compact")):
        session(method, path).problem(404, "session_not_found")


def test_lost_races_are_a_conflict_to_try_again(
    turnfold: Turnfold, session: Session, broken: Callable[..., Any]
) -> None:
    session.commit()
    session.pin()
    store = broken(turnfold.store, write=GuardFailedError("session"))
    for name in ("commit", "sessions", "pins"):
        turnfold.__dict__.pop(name, None)
    turnfold.__dict__["store"] = store
    turnfold.__dict__["commit"] = replace(turnfold.commit, pause=lambda _seconds: None)
    for method, path, body in (
        ("POST", "/turns", {"messages": turn()}),
        ("POST", "/pins", {"text": "a"}),
        ("PUT", "", {}),
        ("PATCH", "", {}),
    ):
        answer = session(method, path, body)
        answer.problem(409, "commit_conflict")
        assert answer.headers["retry-after"] == "1"
