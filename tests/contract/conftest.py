"""Every contract runs on each of its implementations: in memory, on moto, and on MiniStack."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from moto import mock_aws

from contract.known_faults import FAULTS
from support.aws import Services, aws_environment, make_services
from support.fifo_queue import ManualClock
from support.ministack import running_ministack
from support.sessions import START, Writer
from turnfold.adapters.dynamo_erasures import DynamoErasures
from turnfold.adapters.dynamo_memory import DynamoMemoryStore
from turnfold.adapters.dynamo_shelf import DynamoShelf
from turnfold.adapters.in_memory_archive import InMemoryArchive
from turnfold.adapters.in_memory_bucket import InMemoryBucket
from turnfold.adapters.in_memory_erasures import InMemoryErasures
from turnfold.adapters.in_memory_shelf import InMemoryShelf
from turnfold.adapters.in_memory_snapshots import InMemorySnapshots
from turnfold.adapters.in_memory_store import InMemoryStore
from turnfold.adapters.s3_archive import S3Archive
from turnfold.adapters.s3_objects import S3SessionObjects
from turnfold.adapters.s3_snapshots import S3Snapshots
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnfold.application.ports.archive import Archive
    from turnfold.application.ports.erasures import Erasures, SessionObjects
    from turnfold.application.ports.memory import MemoryStore
    from turnfold.application.ports.shelf import Shelf, Snapshots

MOTO = "moto"
MINISTACK = pytest.param("ministack", marks=pytest.mark.ministack)

DIMENSIONS = 8
"""Of the vectors that the emulated table's index takes."""

_tenants = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what an emulator is known to get wrong."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            backend = item.callspec.params.get("backend")
            fault = FAULTS.get((str(backend), item.originalname))
            if fault is not None:
                item.add_marker(fault)


@contextlib.contextmanager
def moto_reached() -> Iterator[None]:
    """Let moto answer the clients meanwhile; what it holds stays for the next time."""
    patch = mock_aws()
    patch.start(reset=False)
    try:
        yield
    finally:
        patch.stop(remove_data=False)


@pytest.fixture(scope="session")
def moto_services() -> Services:
    """Moto's services; they are reached only while moto patches the clients."""
    with aws_environment(None), moto_reached():
        return make_services(None)


@pytest.fixture(scope="session")
def ministack_services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """The services of one MiniStack process, whose table has its vector index."""
    with running_ministack(tmp_path_factory.mktemp("ministack")) as endpoint:
        parameters = {"VectorIndex": "true", "EmbeddingDimensions": str(DIMENSIONS)}
        yield make_services(endpoint, parameters)


@pytest.fixture
def services_of_backend(request: pytest.FixtureRequest, backend: str) -> Iterator[Services | None]:
    """The AWS services of a backend; none in memory."""
    if backend == MOTO:
        services = request.getfixturevalue("moto_services")
        with moto_reached():
            yield services
    elif backend == "ministack":
        yield request.getfixturevalue("ministack_services")
    else:
        yield None


@pytest.fixture
def services(services_of_backend: Services | None) -> Services:
    """The AWS services of a backend that has them."""
    assert services_of_backend is not None
    return services_of_backend


@dataclass
class Stores:
    """A memory store and an archive, a tenant of the test's own, and a clock to move."""

    store: MemoryStore
    archive: Archive
    clock: ManualClock
    tenant: str
    services: Services | None
    erasures: Erasures
    objects: SessionObjects
    shelf: Shelf
    snapshots: Snapshots

    def key(self, session_id: str = "s1") -> SessionKey:
        """A session's key."""
        return SessionKey(self.tenant, session_id)

    def writer(self, session_id: str = "s1") -> Writer:
        """Commits to a session."""
        return Writer(self.store, self.archive, self.key(session_id))


@pytest.fixture
def stores(services_of_backend: Services | None) -> Stores:
    """The stores of a backend."""
    services, clock = services_of_backend, ManualClock(START)
    tenant = f"tenant-{next(_tenants)}"
    if services is None:
        memory, bucket = InMemoryStore(clock), InMemoryBucket()
        erasures = InMemoryErasures(memory, clock)
        shelf = InMemoryShelf(memory)
        snapshots = InMemorySnapshots(bucket)
        return Stores(
            memory, InMemoryArchive(bucket), clock, tenant, None, erasures, bucket, shelf, snapshots
        )
    archive = S3Archive(services.s3, services.bucket)
    store = DynamoMemoryStore(services.dynamodb, services.table, archive, clock)
    objects = S3SessionObjects(services.s3, services.bucket)
    in_table = DynamoErasures(services.dynamodb, services.table, clock)
    return Stores(
        store,
        archive,
        clock,
        tenant,
        services,
        in_table,
        objects,
        DynamoShelf(services.dynamodb, services.table),
        S3Snapshots(services.s3, services.bucket),
    )
