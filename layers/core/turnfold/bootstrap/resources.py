"""What the service stands on: clients of AWS, and the stores, queues and counters made of them."""

import os
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from turnfold.adapters.aws_clients import AwsClients
from turnfold.adapters.dynamo_memory import DynamoMemoryStore
from turnfold.adapters.emf_metrics import EmfMetrics
from turnfold.adapters.json_logs import configure_logs
from turnfold.adapters.s3_archive import S3Archive
from turnfold.adapters.sqs_doorbell import SqsDoorbell
from turnfold.adapters.tiktoken_counter import TiktokenCounter
from turnfold.application.metrics import NO_METRICS, Metrics
from turnfold.application.ports.archive import Archive
from turnfold.application.ports.bells import ArchiveBell, Doorbell
from turnfold.application.ports.callers import KeyRing
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.erasures import Erasures
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.recall import RecallIndex, VectorIndex
from turnfold.application.ports.shelf import Shelf, Snapshots
from turnfold.application.read_transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnfold.application.keep_by_hand import KeepByHand
    from turnfold.application.live_pieces import LivePieces
    from turnfold.application.read_index import IndexCaches
    from turnfold.application.restore import Restore
    from turnfold.domain.sessions import SessionKey

DEFAULT_DIMENSIONS = 512
"""OpenAI's third generation is trained to be cut: a third of the numbers finds nearly as much, and
the vectors of 5,000 turns are 10 MB to read rather than 30."""


def utc_now() -> datetime:
    """The time now."""
    return datetime.now(UTC)


def new_id() -> str:
    """An id that sorts by time: milliseconds and randomness, as of UUID version 7."""
    milliseconds = int(utc_now().timestamp() * 1000)
    return f"{milliseconds:012x}{uuid.uuid4().hex[:20]}"


class Resources:
    """Adapters to AWS (or an emulator of it), configured by environment variables."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Read the configuration; nothing is connected yet."""
        self._env = os.environ if environment is None else environment

    @property
    def clock(self) -> Clock:
        """The time now, for everything that asks for it."""
        return utc_now

    def configure_logs(self) -> None:
        """Write the log as JSON lines, from the level that `POWERTOOLS_LOG_LEVEL` names."""
        configure_logs(self._env.get("POWERTOOLS_LOG_LEVEL", "INFO").upper())

    @cached_property
    def version(self) -> str:
        """The running version."""
        return self._env.get("TURNFOLD_VERSION", "0.1.0")

    @cached_property
    def _clients(self) -> AwsClients:
        return AwsClients()

    @cached_property
    def metrics(self) -> Metrics:
        """Measurements; where no stack is named, as on a developer's machine, they are not made."""
        stack = self._env.get("TURNFOLD_STACK")
        if not stack:
            return NO_METRICS
        return EmfMetrics(self._env.get("POWERTOOLS_METRICS_NAMESPACE") or "Turnfold", stack)

    @cached_property
    def archive(self) -> Archive:
        """The transcript in S3."""
        return S3Archive(self._clients.s3, self._env["TURNFOLD_BUCKET"])

    @cached_property
    def table(self) -> MemoryStore:
        """Working memory as it is in DynamoDB, for what works in the background."""
        name = self._env["TURNFOLD_TABLE"]
        return DynamoMemoryStore(self._clients.dynamodb, name, self.archive, self.clock)

    @cached_property
    def store(self) -> MemoryStore:
        """Working memory, for those who serve a user: what was put away comes back."""
        from turnfold.application.restore import RestoringStore

        return RestoringStore(self.table, self._restore)

    @cached_property
    def _peeking(self) -> MemoryStore:
        from turnfold.application.restore import PeekingStore

        return PeekingStore(self.table, self._restore)

    @cached_property
    def snapshots(self) -> Snapshots:
        """Working memories that were put away."""
        from turnfold.adapters.s3_snapshots import S3Snapshots

        return S3Snapshots(self._clients.s3, self._env["TURNFOLD_BUCKET"])

    @cached_property
    def _keep(self) -> "KeepByHand":
        from turnfold.application.keep_by_hand import KeepByHand

        return KeepByHand(self.store, self.snapshots)

    @cached_property
    def _shelf(self) -> Shelf:
        from turnfold.adapters.dynamo_shelf import DynamoShelf

        return DynamoShelf(self._clients.dynamodb, self._env["TURNFOLD_TABLE"])

    @cached_property
    def _restore(self) -> "Restore":
        from turnfold.application.restore import Restore

        return Restore(self._shelf, self.snapshots, self.clock)

    @cached_property
    def doorbell(self) -> Doorbell:
        """The FIFO queue."""
        return SqsDoorbell(self._clients.sqs, self._env["TURNFOLD_QUEUE_URL"])

    @cached_property
    def archive_bell(self) -> ArchiveBell:
        """The FIFO queue of the archivist."""
        from turnfold.adapters.sqs_archive_bell import SqsArchiveBell

        return SqsArchiveBell(self._clients.sqs, self._env["TURNFOLD_ARCHIVE_QUEUE_URL"])

    @cached_property
    def keys(self) -> KeyRing | None:
        """The API keys of a key file; None where an authorizer in front checks them."""
        path = self._env.get("TURNFOLD_KEY_FILE")
        if not path:
            return None
        from turnfold.adapters.key_file import KeyFile

        return KeyFile(Path(path))

    @cached_property
    def counter(self) -> TiktokenCounter:
        """The tokenizer, which loads its vocabulary at the first count."""
        folder = self._env.get("TIKTOKEN_CACHE_DIR")
        return TiktokenCounter(Path(folder) if folder and Path(folder).is_dir() else None)

    @cached_property
    def _erasures(self) -> Erasures:
        from turnfold.adapters.dynamo_erasures import DynamoErasures

        return DynamoErasures(self._clients.dynamodb, self._env["TURNFOLD_TABLE"], self.clock)

    @cached_property
    def _recall_index(self) -> RecallIndex:
        from turnfold.adapters.s3_recall_index import S3RecallIndex

        return S3RecallIndex(self._clients.s3, self._env["TURNFOLD_BUCKET"])

    @cached_property
    def _pieces(self) -> "LivePieces":
        from turnfold.application.live_pieces import LivePieces

        return LivePieces(self.table, self._recall_index)

    @cached_property
    def _vectors(self) -> VectorIndex:
        """In the table with its vector index if `TURNFOLD_VECTOR_INDEX` is true, else in S3."""
        if self._env.get("TURNFOLD_VECTOR_INDEX") == "true":
            from turnfold.adapters.dynamo_vectors import DynamoVectors

            return DynamoVectors(
                self._clients.dynamodb, self._env["TURNFOLD_TABLE"], self._dimensions
            )
        from turnfold.application.piece_vectors import PieceVectors

        return PieceVectors(self._pieces, self.index_caches.vectors)

    @property
    def _dimensions(self) -> int:
        """Of vectors: what a model that can is asked for, and what the vector index takes."""
        return int(self._env.get("TURNFOLD_EMBEDDING_DIMENSIONS") or DEFAULT_DIMENSIONS)

    @cached_property
    def index_caches(self) -> "IndexCaches":
        """What was read of indexes, of all tenants."""
        from turnfold.application.read_index import IndexCaches

        return IndexCaches()

    @cached_property
    def transcript(self) -> Transcript:
        """The archived turns."""
        return Transcript(self.archive)

    def archived_sessions(self) -> "Iterator[SessionKey | str]":
        """Every session that has a transcript, of every tenant; a folder's name if it hides it."""
        from turnfold.adapters.s3_sessions import archived_sessions

        return archived_sessions(self._clients.s3, self._env["TURNFOLD_BUCKET"])
