"""Peppers in a secret: kept, and read anew when one is missing."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from turnfold.adapters.secret_peppers import SecretPeppers
from turnfold.domain.api_keys import Peppers
from turnfold.domain.errors import GuardFailedError, StoreError

P1, P2 = "1" * 64, "2" * 64


class Secrets:
    """A Secrets Manager with one secret."""

    def __init__(self, **members: str) -> None:
        self.text = json.dumps(members)
        self.reads = 0
        self.fails = False

    def get_secret_value(self, **_: Any) -> dict[str, str]:
        self.reads += 1
        if self.fails:
            raise ClientError({"Error": {"Code": "InternalServiceError"}}, "GetSecretValue")
        return {"SecretString": self.text}

    def put_secret_value(self, **request: Any) -> None:
        assert request["SecretId"] == "the secret"
        self.text = request["SecretString"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def peppers(secrets: Secrets, clock: Clock) -> SecretPeppers:
    return SecretPeppers(lambda: secrets, "the secret", clock)  # type: ignore[arg-type, return-value]  # a client that only counts


def test_a_secret_as_the_template_makes_it() -> None:
    found = peppers(Secrets(current="p1", p1=P1), Clock()).read()
    assert found == Peppers("p1", {"p1": P1.encode()})


def test_it_is_read_every_five_minutes() -> None:
    secrets, clock = Secrets(current="p1", p1=P1), Clock()
    store = peppers(secrets, clock)
    store.read()
    clock.now += 299
    store.read()
    assert secrets.reads == 1
    clock.now += 2
    store.read()
    assert secrets.reads == 2


def test_a_missing_pepper_is_looked_for_but_not_in_a_flood() -> None:
    secrets, clock = Secrets(current="p1", p1=P1), Clock()
    store = peppers(secrets, clock)
    store.read()
    secrets.text = json.dumps({"current": "p2", "p1": P1, "p2": P2})
    clock.now += 11
    assert store.read("p2").current == "p2"
    for _ in range(100):
        store.read("made up")
    assert secrets.reads == 2


def test_what_was_read_stays_valid_while_nobody_answers() -> None:
    secrets, clock = Secrets(current="p1", p1=P1), Clock()
    store = peppers(secrets, clock)
    store.read()
    secrets.fails = True
    clock.now += 1000
    assert store.read().current == "p1"
    with pytest.raises(StoreError):
        peppers(secrets, clock).read()


def test_a_rotation_is_written_and_read_back() -> None:
    secrets, clock = Secrets(current="p1", p1=P1), Clock()
    store = peppers(secrets, clock)
    rotated = Peppers("p2", {"p1": P1.encode(), "p2": P2.encode()})
    store.write(rotated, "p1")
    assert store.read() == rotated
    with pytest.raises(GuardFailedError):
        store.write(rotated, "p1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "secret",
        "{}",
        '{"current": "p1"}',
        f'{{"p1": "{P1}"}}',
        '{"current": "p1", "p1": "short"}',
        f'{{"current": "p2", "p1": "{P1}"}}',
        f'{{"current": "current", "p1": "{P1}"}}',
        f'{{"current": 1, "1": "{P1}"}}',
    ],
)
def test_a_secret_of_another_form_is_refused_untold(text: str) -> None:
    secrets = Secrets()
    secrets.text = text
    with pytest.raises(StoreError) as caught:
        peppers(secrets, Clock()).read()
    assert P1 not in str(caught.value)
