"""Making, changing, reading and listing sessions."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from support.interference import Interference
from support.service import KEY, ScriptedModel, Service, plain_turn
from turnfold.application.sessions import SessionInput, session_input, system_messages
from turnfold.domain.errors import (
    InvalidIdError,
    InvalidInputError,
    InvalidMessagesError,
    InvalidSettingsError,
    SessionNotFoundError,
    StaleEtagError,
    UserMismatchError,
)
from turnfold.domain.sessions import SessionKey


def settings_of(service: Service, key: SessionKey = KEY) -> dict[str, Any]:
    return service.memory(key).session.settings.to_json()


def test_put_creates_and_then_replaces() -> None:
    service = Service(head_size=3)
    given = SessionInput(metadata={"a": 1}, settings={"tail_size": 4}, user_id="u1")
    memory, created = service.sessions.put(KEY, given)
    assert created
    assert memory.session.committed_through == 0
    assert settings_of(service)["tail_size"] == 4
    memory, created = service.sessions.put(KEY, SessionInput(metadata={"b": 2}))
    assert not created
    assert memory.profile.metadata == {"b": 2}
    assert settings_of(service)["tail_size"] == 2
    assert settings_of(service)["head_size"] == 3
    assert memory.session.user_id == "u1"


def test_patch_merges() -> None:
    service = Service()
    system = system_messages(["Be kind."])
    service.sessions.put(
        KEY, SessionInput(system=system, metadata={"a": 1}, settings={"tail_size": 4})
    )
    given = SessionInput(metadata={"b": 2}, settings={"head_size": 2})
    memory = service.sessions.patch(KEY, given)
    assert memory.profile.metadata == {"a": 1, "b": 2}
    assert memory.profile.system == system
    assert settings_of(service)["tail_size"] == 4
    assert settings_of(service)["head_size"] == 2


def test_a_session_that_was_put_takes_turns() -> None:
    service = Service()
    service.sessions.put(KEY, SessionInput(system=system_messages(["Be kind."])))
    assert service.commit(plain_turn(1)).body["turn"] == 1
    assert [one["content"] for one in service.memory().profile.system] == ["Be kind."]


def test_the_system_messages_of_put_are_known_to_the_next_commit() -> None:
    service = Service()
    service.sessions.put(KEY, SessionInput(system=system_messages(["Be kind."])))
    rev = service.memory().session.profile_rev
    service.commit([{"role": "system", "content": "Be kind."}, *plain_turn(1)])
    assert service.memory().session.profile_rev == rev


def test_unknown_sessions() -> None:
    service = Service()
    service.commit(plain_turn(1))
    for key in (SessionKey("tenant", "other"), SessionKey("other", KEY.session_id)):
        with pytest.raises(SessionNotFoundError):
            service.sessions.get(key)
        with pytest.raises(SessionNotFoundError):
            service.sessions.patch(key, SessionInput())
        with pytest.raises(SessionNotFoundError):
            service.sessions.ring(key)


def test_a_user_id_is_set_once() -> None:
    service = Service()
    service.sessions.put(KEY, SessionInput())
    service.sessions.patch(KEY, SessionInput(user_id="u1"))
    service.sessions.patch(KEY, SessionInput(user_id="u1"))
    for call in (service.sessions.patch, service.sessions.put):
        with pytest.raises(UserMismatchError):
            call(KEY, SessionInput(user_id="u2"))


def test_if_match_guards_a_change() -> None:
    service = Service()
    memory, _ = service.sessions.put(KEY, SessionInput())
    etag = memory.session.etag
    service.sessions.patch(KEY, SessionInput(metadata={"a": 1}), frozenset([etag]))
    for call in (service.sessions.patch, service.sessions.put):
        with pytest.raises(StaleEtagError):
            call(KEY, SessionInput(metadata={"a": 2}), frozenset([etag]))
    with pytest.raises(StaleEtagError):
        service.sessions.put(SessionKey("tenant", "new"), SessionInput(), frozenset([etag]))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("at", [1, 2])
def test_if_match_holds_until_the_write(at: int, late: bool) -> None:
    interference = Interference()
    service = Service(wrap=interference.wrap)
    memory, _ = service.sessions.put(KEY, SessionInput())
    interference.arm(at, lambda: service.commit(plain_turn(1)), late=late)
    try:
        service.sessions.patch(
            KEY, SessionInput(metadata={"a": 1}), frozenset([memory.session.etag])
        )
    except StaleEtagError:
        assert service.memory().profile.metadata == {}
    else:
        assert (at, late) == (2, True)


@pytest.mark.parametrize(("at", "late"), list(itertools.product([1, 2, 3], [False, True])))
def test_two_changes_at_once_are_both_there(at: int, late: bool) -> None:
    interference = Interference()
    service = Service(wrap=interference.wrap)
    service.commit(plain_turn(1))
    inner = SessionInput(metadata={"inner": 1}, settings={"tail_size": 4})
    interference.arm(at, lambda: service.sessions.patch(KEY, inner), late=late)
    service.sessions.patch(KEY, SessionInput(metadata={"outer": 1}, settings={"head_size": 2}))
    assert service.memory().profile.metadata == {"inner": 1, "outer": 1}
    assert settings_of(service)["tail_size"] == 4
    assert settings_of(service)["head_size"] == 2


@pytest.mark.parametrize(("at", "late"), list(itertools.product([1, 2], [False, True])))
def test_a_session_that_is_put_while_a_commit_creates_it(at: int, late: bool) -> None:
    interference = Interference()
    service = Service(wrap=interference.wrap)
    interference.arm(at, lambda: service.commit(plain_turn(1)), late=late)
    service.sessions.put(KEY, SessionInput(metadata={"a": 1}))
    if not interference.disarm():
        assert service.memory().session.committed_through == 1
    assert service.memory().profile.metadata == {"a": 1}


def test_new_limits_ring_for_what_they_leave_to_do() -> None:
    service = Service(model=ScriptedModel(), window_max_size=100)
    service.commit_plain(10)
    service.drain()
    assert service.memory().summaries == ()
    service.sessions.patch(KEY, SessionInput(settings={"window_max_size": 5}))
    service.drain()
    assert service.memory().summaries != ()


def test_a_forced_ring_knows_the_newest_turn() -> None:
    service = Service()
    service.commit_plain(3)
    service.queue._messages.clear()
    assert service.sessions.ring(KEY).committed_through == 3
    (message,) = service.queue._messages
    assert '"forced":true' in message.body
    assert '"turn":3' in message.body


def test_lists_show_the_newest_first_in_pages_and_by_user() -> None:
    service = Service()
    for number in range(5):
        key = SessionKey("tenant", f"s{number}")
        service.commit(plain_turn(1), key, user_id="even" if number % 2 == 0 else "odd")
        service.clock.advance(1)
    service.commit(plain_turn(1), SessionKey("other", "s9"))
    found: list[str] = []
    position = None
    while True:
        page = service.sessions.list("tenant", None, 2, position)
        found += [one.key.session_id for one in page.items]
        position = page.next_position
        if position is None:
            break
    assert found == ["s4", "s3", "s2", "s1", "s0"]
    even = service.sessions.list("tenant", "even", 100, None)
    assert [one.key.session_id for one in even.items] == ["s4", "s2", "s0"]


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"system": "Be kind."}, InvalidMessagesError),
        ({"system": [""]}, None),
        ({"system": [5]}, InvalidMessagesError),
        ({"system": [{"role": "user", "content": "x"}]}, InvalidMessagesError),
        ({"system": []}, None),
        ({"system": [{"role": "developer", "content": "x"}]}, None),
        ({"user_id": 5}, UserMismatchError),
        ({"user_id": ""}, InvalidIdError),
        ({"user_id": "a\nb"}, InvalidIdError),
        ({"metadata": [1]}, InvalidSettingsError),
        ({"metadata": {"a": "x" * 300_000}}, InvalidSettingsError),
        ({"settings": []}, InvalidSettingsError),
    ],
)
def test_the_input_is_checked(
    members: dict[str, Any], error: type[InvalidInputError] | None
) -> None:
    if error is None:
        session_input(**members)
    else:
        with pytest.raises(error):
            session_input(**members)


@pytest.mark.parametrize(
    "settings",
    [
        {"unknown": 1},
        {"head_size": 0},
        {"tail_size": 0},
        {"schedule": "weekly"},
        {"head_size": "1"},
    ],
)
def test_bad_settings_change_nothing(settings: dict[str, Any]) -> None:
    service = Service()
    service.commit(plain_turn(1))
    before = service.memory().session
    for call in (service.sessions.patch, service.sessions.put):
        with pytest.raises(InvalidSettingsError):
            call(KEY, SessionInput(settings=settings))
    assert service.memory().session == before
