"""What every `Doorbell` promises: each ring arrives, in order per session."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from contract.conftest import MINISTACK, MOTO
from turnfold.adapters.in_memory_doorbell import InMemoryDoorbell
from turnfold.adapters.sqs_doorbell import Ring, SqsDoorbell, parse_doorbell
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.aws import Services
    from turnfold.application.ports.bells import Doorbell

pytestmark = pytest.mark.parametrize("backend", ["in-memory", MOTO, MINISTACK])

_numbers = itertools.count(1)


@dataclass
class Bell:
    doorbell: Doorbell
    take: Callable[[], list[tuple[str, Ring]]]
    tenant: str

    def key(self, session_id: str = "s1") -> SessionKey:
        return SessionKey(self.tenant, session_id)


def take_all(services: Services) -> list[tuple[str, Ring]]:
    """Group and ring of all messages, each removed once it was read."""
    taken: list[tuple[str, Ring]] = []
    while True:
        answer = services.sqs.receive_message(
            QueueUrl=services.queue_url,
            MaxNumberOfMessages=10,
            MessageSystemAttributeNames=["MessageGroupId"],
        )
        messages = answer.get("Messages", [])
        for message in messages:
            taken.append((message["Attributes"]["MessageGroupId"], parse_doorbell(message["Body"])))
            services.sqs.delete_message(
                QueueUrl=services.queue_url, ReceiptHandle=message["ReceiptHandle"]
            )
        if not messages:
            return taken


@pytest.fixture
def bell(services_of_backend: Services | None) -> Iterator[Bell]:
    tenant = f"bell-{next(_numbers)}"
    if services_of_backend is None:
        memory = InMemoryDoorbell()
        yield Bell(
            memory, lambda: [(m.group, parse_doorbell(m.body)) for m in memory.messages], tenant
        )
        return
    services = services_of_backend
    take_all(services)
    yield Bell(SqsDoorbell(services.sqs, services.queue_url), lambda: take_all(services), tenant)
    take_all(services)


def test_a_ring_tells_its_session_and_turn(bell: Bell) -> None:
    bell.doorbell.ring(bell.key(), "r1", 12)
    assert [ring for _, ring in bell.take()] == [Ring(bell.key(), 12, forced=False)]


def test_a_forced_ring_says_so(bell: Bell) -> None:
    bell.doorbell.ring(bell.key(), "r1", 3, forced=True)
    assert [ring for _, ring in bell.take()] == [Ring(bell.key(), 3, forced=True)]


def test_rings_of_a_session_come_in_order_in_one_group(bell: Bell) -> None:
    for turn in range(1, 25):
        bell.doorbell.ring(bell.key(), f"r{turn}", turn)
    taken = bell.take()
    assert [ring.turn for _, ring in taken] == list(range(1, 25))
    assert len({group for group, _ in taken}) == 1


def test_sessions_and_tenants_have_groups_of_their_own(bell: Bell) -> None:
    keys = [
        bell.key(),
        bell.key("s2"),
        SessionKey(f"{bell.tenant}#s1", ""),
        SessionKey(bell.tenant + "x", "s1"),
        SessionKey(bell.tenant, "xs1"),
    ]
    for key in keys:
        bell.doorbell.ring(key, "the same ring id", 1)
    taken = bell.take()
    assert {ring.key for _, ring in taken} == set(keys)
    assert len({group for group, _ in taken}) == len(keys)


@pytest.mark.parametrize("odd", ["a/b #%", "漢" * 256, "👩" * 256, "e\u0301", "x\u2028y", '"\\'])
def test_odd_ids_can_be_rung(bell: Bell, odd: str) -> None:
    bell.doorbell.ring(bell.key(odd), odd, 1)
    assert [ring for _, ring in bell.take()] == [Ring(bell.key(odd), 1)]
