"""The doorbell's message: what SQS takes, whatever the ids."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.adapters.sqs_doorbell import Ring, doorbell_message, parse_doorbell
from turnfold.domain.errors import InvalidDoorbellError
from turnfold.domain.sessions import SessionKey

ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=256)
rings = st.builds(
    Ring, key=st.builds(SessionKey, ids, ids), turn=st.integers(0, 10**9), forced=st.booleans()
)
ALLOWED = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")


@given(rings, st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_a_message_is_one_that_sqs_takes(ring: Ring, ring_id: str) -> None:
    message = doorbell_message(ring, ring_id)
    assert ALLOWED.fullmatch(message.group)
    assert ALLOWED.fullmatch(message.deduplication_id)
    assert len(message.body.encode()) < 10_000
    assert parse_doorbell(message.body) == ring


def test_groups_of_two_sessions_differ() -> None:
    keys = [SessionKey("a", "bc"), SessionKey("ab", "c"), SessionKey('a","b', "c")]
    assert len({doorbell_message(Ring(key, 1), "r").group for key in keys}) == 3


def test_a_ring_id_is_kept_where_it_can_be() -> None:
    ring = Ring(SessionKey("a", "b"), 1)
    assert doorbell_message(ring, "01J-x_!").deduplication_id == "01J-x_!"
    long = {doorbell_message(ring, "x" * length).deduplication_id for length in (129, 130)}
    assert len(long) == 2


@pytest.mark.parametrize(
    "body",
    [
        "",
        "x",
        "[]",
        "{}",
        "1",
        "null",
        '{"v":2,"tenant":"t","session":"s","turn":1}',
        '{"v":1,"tenant":1,"session":"s","turn":1}',
        '{"v":1,"tenant":"t","session":null,"turn":1}',
        '{"v":1,"tenant":"t","session":"s","turn":"1"}',
        '{"v":1,"tenant":"t","session":"s","turn":true}',
        '{"v":1,"tenant":"t","session":"s"}',
        "[" * 100_000,
    ],
)
def test_another_body_is_refused(body: str) -> None:
    with pytest.raises(InvalidDoorbellError):
        parse_doorbell(body)
