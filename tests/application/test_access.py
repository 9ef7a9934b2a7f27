"""Keys by hand, and telling who calls, on in-memory adapters."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from turnfold.adapters.in_memory_api_keys import InMemoryKeyStore, InMemoryMeter, InMemoryPeppers
from turnfold.application.api_keys import ApiKeys, KeyRequest, public_view
from turnfold.application.identify_caller import ClaimNames, IdentifyCaller
from turnfold.application.ports.access import Identity
from turnfold.domain.api_keys import KeyState, read_key
from turnfold.domain.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    StoreUnavailableError,
)

READ = frozenset({"read"})


@dataclass
class Desk:
    """Keys, and a clock to move."""

    now: datetime = datetime(2026, 5, 1, 12, tzinfo=UTC)
    store: InMemoryKeyStore = field(default_factory=InMemoryKeyStore)
    peppers: InMemoryPeppers = field(
        default_factory=lambda: InMemoryPeppers("p1", {"p1": b"first" * 10})
    )
    meter: InMemoryMeter = field(default_factory=InMemoryMeter)

    @property
    def keys(self) -> ApiKeys:
        return ApiKeys(self.store, self.peppers, lambda: self.now, self.meter)

    @property
    def identify(self) -> IdentifyCaller:
        return IdentifyCaller(self.store, self.peppers, lambda: self.now)

    def create(self, tenant: str = "acme", **options: object) -> str:
        request = KeyRequest(tenant, READ, **options)  # type: ignore[arg-type]  # any option, by name
        return self.keys.create(request)[0]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def id_of(key: str) -> str:
    sent = read_key(key)
    assert sent is not None
    return sent.key_id


def test_a_new_key_opens_its_tenant(desk: Desk) -> None:
    key = desk.create()
    usage_key = desk.meter.admitted[id_of(key)]
    assert desk.identify(key) == Identity("acme", READ, id_of(key), usage_key)


def test_keys_differ(desk: Desk) -> None:
    keys = {desk.create() for _ in range(50)}
    assert len(keys) == len({id_of(key) for key in keys}) == 50


def test_nothing_that_is_kept_or_shown_holds_the_secret(desk: Desk) -> None:
    key = desk.create()
    secret = key.rpartition("_")[2]
    (kept,) = desk.keys.list_keys()
    assert secret not in repr(kept)
    assert "verifier" not in public_view(kept, desk.now)
    assert kept.verifier.hex() not in str(public_view(kept, desk.now))
    assert kept.usage_key not in str(public_view(kept, desk.now))


def test_keys_of_a_time_without_a_plan_can_be_admitted_later(desk: Desk) -> None:
    unmetered = ApiKeys(desk.store, desk.peppers, lambda: desk.now)
    first, closed = (unmetered.create(KeyRequest("acme", READ))[0] for _ in range(2))
    unmetered.revoke(id_of(closed))
    assert unmetered.admit_all() == 0
    assert desk.keys.admit_all() == 1
    assert set(desk.meter.admitted) == {id_of(first)}


def test_a_revoked_key_opens_nothing_and_stays_listed(desk: Desk) -> None:
    key = desk.create()
    revoked = desk.keys.revoke(id_of(key))
    assert revoked.revoked_at == desk.now
    assert desk.identify(key) is None
    assert desk.meter.admitted == {}
    assert [one.state(desk.now) for one in desk.keys.list_keys("acme")] == [KeyState.REVOKED]
    desk.now += timedelta(days=1)
    assert desk.keys.revoke(id_of(key)).revoked_at == revoked.revoked_at


def test_a_key_that_is_not_there_cannot_be_revoked(desk: Desk) -> None:
    with pytest.raises(NotFoundError):
        desk.keys.revoke("abcdefghijklmnop")


def test_a_key_expires(desk: Desk) -> None:
    key = desk.create(expires_at=desk.now + timedelta(days=30))
    desk.now += timedelta(days=30) - timedelta(seconds=1)
    assert desk.identify(key) is not None
    desk.now += timedelta(seconds=1)
    assert desk.identify(key) is None


@pytest.mark.parametrize("change", ["id", "secret", "both", "shape"])
def test_a_forged_key_opens_nothing(desk: Desk, change: str) -> None:
    key, other = desk.create(), desk.create("other")
    prefix, key_id, secret = key.split("_")
    forged = {
        "id": f"{prefix}_{id_of(other)}_{secret}",
        "secret": f"{prefix}_{key_id}_{'A' * 43}",
        "both": f"{prefix}_{'a' * 16}_{'A' * 43}",
        "shape": f"{prefix}_{key_id}_{secret}x",
    }[change]
    assert desk.identify(forged) is None


def test_lists_are_of_a_tenant_or_of_all(desk: Desk) -> None:
    desk.create(name="first")
    desk.now += timedelta(seconds=1)
    desk.create("other", name="second")
    assert [key.name for key in desk.keys.list_keys()] == ["first", "second"]
    assert [key.name for key in desk.keys.list_keys("other")] == ["second"]
    assert desk.keys.list_keys("nobody") == ()


@pytest.mark.parametrize(
    "request_",
    [
        KeyRequest("", READ),
        KeyRequest("acme", frozenset()),
        KeyRequest("acme", frozenset({"root"})),
        KeyRequest("acme", READ, "\x07"),
        KeyRequest("acme", READ, expires_at=datetime(2020, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_wrong_request_makes_nothing(desk: Desk, request_: KeyRequest) -> None:
    with pytest.raises(InvalidInputError):
        desk.keys.create(request_)
    assert desk.keys.list_keys() == ()
    assert desk.meter.admitted == {}


def test_a_use_is_noted_at_most_once_an_hour(desk: Desk) -> None:
    key = desk.create()
    first = desk.now
    desk.identify(key)
    desk.now += timedelta(minutes=30)
    desk.identify(key)
    assert desk.keys.list_keys()[0].last_used_at == first
    desk.now += timedelta(minutes=30)
    desk.identify(key)
    assert desk.keys.list_keys()[0].last_used_at == desk.now


def test_a_note_that_fails_turns_nobody_away(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StoreUnavailableError("down")

    key = desk.create()
    monkeypatch.setattr(desk.store, "note_use", fail)
    assert desk.identify(key) is not None


def test_peppers_rotate_while_keys_are_in_use(desk: Desk) -> None:
    busy, lazy = desk.create(name="busy"), desk.create(name="lazy")
    first = desk.keys.rotate_pepper()
    assert first.kept == ("p1",)
    # Both peppers are valid; a key that is used moves to the new one.
    assert desk.identify(busy) is not None
    assert {key.name: key.pepper_id for key in desk.keys.list_keys()} == {
        "busy": first.current,
        "lazy": "p1",
    }
    assert desk.identify(busy) is not None
    made_after = desk.create(name="new")
    assert desk.identify(made_after) is not None
    # A second rotation would forget the pepper that the unused key hangs on.
    with pytest.raises(ConflictError, match=id_of(lazy)):
        desk.keys.rotate_pepper()
    assert desk.identify(lazy) is not None
    second = desk.keys.rotate_pepper()
    assert second.dropped == ("p1",)
    for key in (busy, lazy, made_after):
        assert desk.identify(key) is not None


def test_keys_that_are_closed_do_not_hold_up_a_rotation(desk: Desk) -> None:
    closed, lost = desk.create(), desk.create()
    desk.keys.rotate_pepper()
    desk.keys.revoke(id_of(closed))
    with pytest.raises(ConflictError):
        desk.keys.rotate_pepper()
    desk.keys.rotate_pepper(force=True)
    assert desk.identify(lost) is None


class Tokens:
    """Takes one token."""

    def __init__(self, claims: dict[str, object]) -> None:
        self._claims = claims

    def read(self, token: str) -> dict[str, object] | None:
        return self._claims if token == "a.good.token" else None


def by_token(desk: Desk, claims: dict[str, object], names: ClaimNames | None = None) -> object:
    identify = IdentifyCaller(
        desk.store, desk.peppers, lambda: desk.now, Tokens(claims), names, "usage of tokens"
    )
    assert identify("a.bad.token") is None
    return identify("a.good.token")


def test_a_token_names_tenant_and_scopes(desk: Desk) -> None:
    expected = Identity("acme", frozenset({"read", "write"}), "token", "usage of tokens")
    claims: dict[str, object]
    for scopes in ("read write openid", ["write", "read"]):
        assert by_token(desk, {"tenant": "acme", "scope": scopes}) == expected
    names = ClaimNames("custom:org", "scp", "turnfold/")
    claims = {"custom:org": "acme", "scp": "turnfold/read turnfold/write admin other/admin"}
    assert by_token(desk, claims, names) == expected


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"tenant": "acme"},
        {"scope": "read"},
        {"tenant": "acme", "scope": ""},
        {"tenant": "acme", "scope": "root"},
        {"tenant": "acme", "scope": {"read": True}},
        {"tenant": "", "scope": "read"},
        {"tenant": "a\nb", "scope": "read"},
        {"tenant": ["acme"], "scope": "read"},
        {"tenant": 1, "scope": "read"},
    ],
)
def test_a_token_without_tenant_or_scope_opens_nothing(
    desk: Desk, claims: dict[str, object]
) -> None:
    assert by_token(desk, claims) is None


def test_without_an_issuer_no_token_is_read(desk: Desk) -> None:
    assert desk.identify("a.good.token") is None
