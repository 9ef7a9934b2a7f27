"""The issuer's keys: kept, fetched anew when they rotate, and not at a stranger's command."""

import json

import pytest

from turnfold.adapters.jwks import KeySet
from turnfold.domain.errors import StoreUnavailableError

URL = "https://issuer.example/jwks.json"


class Issuer:
    """Serves its keys, unless it is down, and counts how often it was asked."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked = 0
        self.answer: bytes | OSError | None = None

    def __call__(self, url: str) -> bytes:
        assert url == URL
        self.asked += 1
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer or json.dumps({"keys": [{"kid": name} for name in self.names]}).encode()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_keys_are_fetched_once_an_hour() -> None:
    issuer, clock = Issuer("a"), Clock()
    keys = KeySet(URL, issuer, clock)
    assert issuer.asked == 0
    for _ in range(3):
        assert keys.find("a") == {"kid": "a"}
    clock.now += 3599
    keys.find("a")
    assert issuer.asked == 1
    clock.now += 2
    issuer.names = ("b",)
    assert keys.find("a") is None
    assert issuer.asked == 2


def test_a_new_key_is_found_at_once() -> None:
    issuer, clock = Issuer("a"), Clock()
    keys = KeySet(URL, issuer, clock)
    keys.find("a")
    issuer.names = ("a", "b")
    clock.now += 31
    assert keys.find("b") == {"kid": "b"}


def test_unknown_ids_do_not_make_a_flood() -> None:
    issuer, clock = Issuer("a"), Clock()
    keys = KeySet(URL, issuer, clock)
    for number in range(1000):
        assert keys.find(f"made up {number}") is None
        clock.now += 0.1  # 100 seconds in all
    assert issuer.asked <= 4


def test_an_issuer_that_is_down_is_remembered() -> None:
    issuer, clock = Issuer("a"), Clock()
    keys = KeySet(URL, issuer, clock)
    keys.find("a")
    for answer in (OSError("down"), b"<html>", b'{"keys": "none"}', b"[" * 100_000, b"[]"):
        issuer.answer = answer
        clock.now += 3601
        assert keys.find("a") == {"kid": "a"}
    asked = issuer.asked
    keys.find("a")
    assert issuer.asked == asked


def test_an_issuer_that_never_answered_is_no_refusal() -> None:
    issuer = Issuer()
    issuer.answer = OSError("down")
    with pytest.raises(StoreUnavailableError):
        KeySet(URL, issuer).find("a")


@pytest.mark.parametrize("url", ["http://issuer.example/", "file:///etc/passwd", "ftp://x", ""])
def test_keys_come_by_tls_only(url: str) -> None:
    with pytest.raises(ValueError, match="https"):
        KeySet(url)
