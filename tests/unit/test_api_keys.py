"""API keys: their form, their verifiers, their life."""

import hashlib
import hmac
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from turnfold.domain.api_keys import (
    ApiKey,
    KeyState,
    Peppers,
    SentKey,
    check_expiry,
    check_name,
    check_scopes,
    check_tenant,
    is_good,
    read_key,
    write_key,
)
from turnfold.domain.errors import InvalidInputError

NOW = datetime(2026, 5, 1, tzinfo=UTC)
SENT = SentKey("abcdefghijklmnop", "S" * 43)
PEPPERS = Peppers("p2", {"p1": b"1" * 64, "p2": b"2" * 64})


def record(pepper_id: str = "p2", **changes: object) -> ApiKey:
    key = ApiKey(
        SENT.key_id,
        "acme",
        frozenset({"read"}),
        PEPPERS.verifier(SENT, pepper_id),
        pepper_id,
        "usage",
        NOW - timedelta(days=1),
    )
    return replace(key, **changes)  # type: ignore[arg-type]  # any member, by name


def test_a_written_key_is_read() -> None:
    assert write_key(SENT) == "tf_abcdefghijklmnop_" + "S" * 43
    assert read_key(write_key(SENT)) == SENT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "local",
        "tf_",
        "tf_abcdefghijklmnop_" + "S" * 42,
        "tf_abcdefghijklmnop_" + "S" * 44,
        "tf_abcdefghijklmno1_" + "S" * 43,
        "TF_abcdefghijklmnop_" + "S" * 43,
        "tf_abcdefghijklmnop_" + "S" * 42 + "_",
        "tf_abcdefghijklmnop_" + "S" * 43 + "\n",
        " tf_abcdefghijklmnop_" + "S" * 43,
        "tf_abcdefghijklmnop_" + "é" * 43,
        "tf_abcdefghijklmnop_" + "٣" * 43,
        "x" * 100_000,
    ],
)
def test_anything_else_is_no_key(text: str) -> None:
    assert read_key(text) is None


def test_a_verifier_is_an_hmac_of_id_and_secret() -> None:
    expected = hmac.new(b"1" * 64, f"{SENT.key_id}:{SENT.secret}".encode(), hashlib.sha256)
    assert PEPPERS.verifier(SENT, "p1") == expected.digest()
    other = SentKey("ponmlkjihgfedcba", SENT.secret)
    assert PEPPERS.verifier(other, "p1") != expected.digest()


@pytest.mark.parametrize("pepper_id", ["p1", "p2"])
def test_a_good_key_of_either_pepper(pepper_id: str) -> None:
    assert is_good(SENT, record(pepper_id), PEPPERS, NOW)


@pytest.mark.parametrize(
    "key",
    [
        None,
        record(verifier=bytes(32)),
        record(verifier=b""),
        replace(record(), pepper_id="p0"),
        record(revoked_at=NOW),
        record(revoked_at=NOW + timedelta(days=1)),
        record(expires_at=NOW),
        record(expires_at=NOW - timedelta(seconds=1)),
    ],
)
def test_keys_that_open_nothing(key: ApiKey | None) -> None:
    assert not is_good(SENT, key, PEPPERS, NOW)


def test_a_wrong_secret_opens_nothing() -> None:
    assert not is_good(SentKey(SENT.key_id, "s" * 43), record(), PEPPERS, NOW)


def test_every_refusal_takes_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """One HMAC and one comparison of 32 bytes, whatever is wrong."""
    work: list[object] = []
    digest, compare = hmac.digest, hmac.compare_digest

    def counted_digest(key: bytes, msg: bytes, name: str) -> bytes:
        work.append((len(key), len(msg)))
        return digest(key, msg, name)

    def counted_compare(first: bytes, second: bytes) -> bool:
        work.append((len(first), len(second)))
        return compare(first, second)

    monkeypatch.setattr("turnfold.domain.api_keys.hmac.digest", counted_digest)
    monkeypatch.setattr("turnfold.domain.api_keys.hmac.compare_digest", counted_compare)
    kept = record()
    seen = set()
    for key in (None, kept, replace(kept, revoked_at=NOW), replace(kept, expires_at=NOW)):
        work.clear()
        is_good(SentKey(SENT.key_id, "x" * 43), key, PEPPERS, NOW)
        seen.add(tuple(work))
    assert seen == {((64, 60), (32, 32))}


def test_state() -> None:
    assert record().state(NOW) is KeyState.ACTIVE
    later = record(expires_at=NOW + timedelta(seconds=1))
    assert later.state(NOW) is KeyState.ACTIVE
    assert later.state(NOW + timedelta(seconds=1)) is KeyState.EXPIRED
    assert replace(later, revoked_at=NOW).state(NOW + timedelta(days=1)) is KeyState.REVOKED


def test_use_is_news_once_an_hour() -> None:
    assert record().use_is_news(NOW)
    used = record(last_used_at=NOW)
    assert not used.use_is_news(NOW + timedelta(minutes=59))
    assert used.use_is_news(NOW + timedelta(hours=1))


def test_checks_of_a_new_key() -> None:
    assert check_scopes(["read", "read", "admin"]) == {"read", "admin"}
    assert check_tenant("acme #1/漢") == "acme #1/漢"
    assert check_name("CI, nightly") == "CI, nightly"
    assert check_expiry(None, NOW) is None
    for wrong in ([], ["reed"], ["read", "root"], [""]):
        with pytest.raises(InvalidInputError):
            check_scopes(wrong)
    for tenant in ("", " ", "a\nb", "x" * 257):
        with pytest.raises(InvalidInputError):
            check_tenant(tenant)
    for name in ("x" * 101, "a\x1b[31m"):
        with pytest.raises(InvalidInputError):
            check_name(name)
    with pytest.raises(InvalidInputError):
        check_expiry(NOW, NOW)
