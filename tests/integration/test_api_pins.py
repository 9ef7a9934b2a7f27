"""Pins over the handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.api import Api, Session

BAD_PINS: list[dict[str, Any]] = [
    {},
    {"text": ""},
    {"text": " \n"},
    {"text": 7},
    {"text": None},
    {"text": "x" * 2001},
    {"text": "a", "confidence": 2},
    {"text": "a", "confidence": True},
    {"text": "a", "sources": [{"turn": 0}]},
    {"text": "a", "sources": "1"},
    {"text": "a", "sources": [1]},
    {"text": "a", "replaces": 7},
    {"text": "a", "status": "folded"},
    {"text": "a", "status": ["active"]},
]


@pytest.fixture
def quiet(session: Session) -> Session:
    """A session in which only the test makes pins."""
    session("PUT", "", {"settings": {"pin_mode": "off"}}).ok(201)
    return session


def test_a_pin_is_added_read_changed_and_removed(quiet: Session) -> None:
    body = {"text": "Likes tea.", "confidence": 0.5, "sources": [{"turn": 1}]}
    pin = quiet("POST", "/pins", body).ok(201)
    path = f"/pins/{pin['pin_id']}"
    assert quiet("GET", path).ok() == pin
    assert (pin["confidence"], pin["sources"], pin["trust"]) == (0.5, [{"turn": 1}], "operator")
    changed = quiet("PATCH", path, {"text": "Likes coffee."}).ok()
    assert (changed["text"], changed["status"]) == ("Likes coffee.", "active")
    assert quiet("PATCH", path, {"status": "invalidated"}).ok()["status"] == "invalidated"
    assert quiet("GET", "/pins").ok()["items"] == []
    assert len(quiet("GET", "/pins?status=invalidated").ok()["items"]) == 1
    gone = quiet("DELETE", path)
    assert (gone.status, gone.text) == (204, "")
    assert gone.headers["x-request-id"]
    for method in ("GET", "PATCH", "DELETE"):
        quiet(method, path, {}).problem(404, "pin_not_found")


@pytest.mark.parametrize("body", BAD_PINS, ids=lambda body: str(body)[:40])
def test_wrong_pins_are_refused(quiet: Session, body: dict[str, Any]) -> None:
    quiet("POST", "/pins", body).problem(422, "invalid_pin")
    assert quiet("GET", "/pins").ok()["items"] == []


def test_a_pin_replaces_another(quiet: Session) -> None:
    old = quiet.pin("Lives in Bern.")
    new = quiet("POST", "/pins", {"text": "Lives in Rome.", "replaces": old["pin_id"]}).ok(201)
    assert [one["pin_id"] for one in quiet("GET", "/pins").ok()["items"]] == [new["pin_id"]]
    assert quiet("GET", f"/pins/{old['pin_id']}").ok()["status"] == "invalidated"
    body = {"text": "a", "replaces": "unknown"}
    quiet("POST", "/pins", body).problem(404, "pin_not_found")


def test_pins_are_listed_in_pages(quiet: Session) -> None:
    ids = [quiet.pin(f"Fact {number}.")["pin_id"] for number in range(5)]
    found: list[str] = []
    target = "/pins?limit=2"
    while target:
        page = quiet("GET", target).ok()
        found += [one["pin_id"] for one in page["items"]]
        cursor = page["next_cursor"]
        target = f"/pins?limit=2&cursor={cursor}" if cursor else ""
    assert found == ids


def test_a_pin_is_added_once_per_key(quiet: Session) -> None:
    answers = [
        quiet("POST", "/pins", {"text": "Likes tea."}, idempotency_key="k") for _ in range(2)
    ]
    assert answers[0].ok(201) == answers[1].ok(201)
    assert answers[1].headers["idempotency-replayed"] == "true"
    again = quiet("POST", "/pins", {"text": "Likes milk."}, idempotency_key="k")
    again.problem(422, "idempotency_mismatch")


def test_if_match_guards_a_pin(quiet: Session) -> None:
    path = f"/pins/{quiet.pin()['pin_id']}"
    old = quiet("GET", path).headers["etag"]
    assert quiet("GET", path, if_none_match=old).status == 304
    quiet.pin("Another one.")
    new = quiet("PATCH", path, {"text": "Likes milk."}, if_match=old).headers["etag"]
    quiet("PATCH", path, {"text": "Likes water."}, if_match=old).problem(412, "stale_etag")
    assert quiet("GET", path).headers["etag"] == new
    assert quiet("GET", path).ok()["text"] == "Likes milk."


def test_pins_of_another_tenant_are_not_found(api: Api, quiet: Session) -> None:
    pin = quiet.pin()
    api.key = "local-2"
    quiet("PUT", "", {"settings": {"pin_mode": "off"}}).ok(201)
    for method in ("GET", "PATCH", "DELETE"):
        quiet(method, f"/pins/{pin['pin_id']}", {}).problem(404, "pin_not_found")


def test_a_session_holds_so_many_pins_and_no_more(
    quiet: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from turnfold.domain import pin_rules

    monkeypatch.setattr(pin_rules, "MAX_PINS", 2)
    for number in (1, 2):
        quiet.pin(f"Fact {number}.")
    quiet("POST", "/pins", {"text": "One more."}).problem(422, "invalid_pin")
