"""The composition root: the only place that knows which adapter stands behind which port.

Everything is built when it is first needed, so a request pays only for what it uses: importing
`openai` or loading the tokenizer's vocabulary takes longer than a commit.
"""

import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from turnfold.adapters.aws_clients import AwsClients
from turnfold.adapters.dynamo_memory import DynamoMemoryStore
from turnfold.adapters.emf_metrics import EmfMetrics
from turnfold.adapters.json_logs import configure_logs
from turnfold.adapters.s3_archive import S3Archive
from turnfold.adapters.sqs_doorbell import SqsDoorbell, parse_doorbell
from turnfold.adapters.tiktoken_counter import TiktokenCounter
from turnfold.application.commit_turn import CommitTurn
from turnfold.application.default_settings import default_settings
from turnfold.application.metrics import NO_METRICS, Metrics
from turnfold.application.pins_by_hand import Pins
from turnfold.application.ports import (
    Archive,
    ArchiveBell,
    Doorbell,
    Embedder,
    Erasures,
    KeyRing,
    MemoryStore,
    RecallIndex,
    Shelf,
    Snapshots,
)
from turnfold.application.prompts import PromptLibrary
from turnfold.application.read_context import ReadContext
from turnfold.application.read_index import IndexCaches, ReadIndex
from turnfold.application.read_transcript import Transcript
from turnfold.application.read_turns import ReadTurns
from turnfold.application.recall import Recall
from turnfold.application.sessions import Sessions
from turnfold.domain.errors import InvalidDoorbellError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnfold.adapters.openai_completions import OpenAICompletions
    from turnfold.application.chat import Chat
    from turnfold.application.compact_session import CompactSession
    from turnfold.application.delete import Delete
    from turnfold.application.drain_batch import DrainBatch, Knock
    from turnfold.application.erase import EraseUser
    from turnfold.application.export_session import ExportSession
    from turnfold.application.fork_session import ForkSession
    from turnfold.application.import_session import ImportSession
    from turnfold.application.index_session import IndexSession
    from turnfold.application.judge_now import JudgeNow
    from turnfold.application.judge_pins import PinJudge
    from turnfold.application.open_turns import OpenTurns
    from turnfold.application.put_away import PutAway
    from turnfold.application.read_policy_context import ReadPolicyContext
    from turnfold.application.rebuild_session import RebuildSession, RequestRebuild
    from turnfold.application.recover_session import RecoverSession
    from turnfold.application.restore import Restore
    from turnfold.application.search_session import SearchSession
    from turnfold.application.search_tenant import SearchTenant
    from turnfold.application.summary_writer import PaidAnswers
    from turnfold.application.sweep import Sweep
    from turnfold.application.tend_archive import ArchiveKnock, TendBatch
    from turnfold.application.verify_transcript import VerifyTranscript
    from turnfold.domain.measure import Measure
    from turnfold.domain.memory import WorkingMemory
    from turnfold.domain.sessions import SessionKey
    from turnfold.domain.usage import Prices

TENANTS_KEPT = 64
"""Tenants whose clients a process keeps: making them takes 15 ms, keeping them less than a MB."""

DEFAULT_MODEL = "gpt-5.4-mini"
EMBEDS_FROM_TURN = 16
"""A shorter session is found by words, and mostly stands in the context anyway: most sessions are
short, and each would cost an embedding call a turn."""

DEFAULT_CHAT_MODEL = "gpt-5.4-mini"

ERASURE_SETTLE_SECONDS = 35
"""Longer than the API function may run (29 seconds): what it read before a tombstone was set, it
cannot write about any more."""


QUERY_SECONDS = 6.0
"""For the vector of a query. After that a search goes by words alone."""


def utc_now() -> datetime:
    """The time now."""
    return datetime.now(UTC)


def new_id() -> str:
    """An id that sorts by time: milliseconds and randomness, as of UUID version 7."""
    milliseconds = int(utc_now().timestamp() * 1000)
    return f"{milliseconds:012x}{uuid.uuid4().hex[:20]}"


class Turnfold:
    """The service on AWS (or an emulator of it), configured by environment variables."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Read the configuration; nothing is connected yet."""
        self._env = os.environ if environment is None else environment

    def for_tenant(self, tenant: str) -> "Turnfold":
        """The service with credentials that reach this tenant's data and no other's.

        It is this service itself where tenants are not isolated below the code, that is without
        `TURNFOLD_TENANT_ROLE_ARN`. Raises `InvalidIdError` if the name is too long for that.
        """
        return self._of_tenant(tenant) if self._env.get("TURNFOLD_TENANT_ROLE_ARN") else self

    @cached_property
    def _of_tenant(self) -> "Callable[[str], Turnfold]":
        return lru_cache(TENANTS_KEPT)(lambda tenant: _OneTenant(self, self._env, tenant))

    def configure_logs(self) -> None:
        """Write the log as JSON lines, from the level that `POWERTOOLS_LOG_LEVEL` names."""
        configure_logs(self._env.get("POWERTOOLS_LOG_LEVEL", "INFO").upper())

    def prepare(self) -> None:
        """Load what most requests need, before a snapshot of the process is taken.

        Nothing is connected, and nothing is drawn that has to differ from copy to copy.
        """
        _ = (self.commit, self.context)
        self.counter.count("")

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
    def store(self) -> MemoryStore:
        """Working memory, for those who serve a user: what was put away comes back."""
        from turnfold.application.restore import RestoringStore

        return RestoringStore(self.table, self._restore)

    @cached_property
    def table(self) -> MemoryStore:
        """Working memory as it is in DynamoDB, for what works in the background."""
        name = self._env["TURNFOLD_TABLE"]
        return DynamoMemoryStore(self._clients.dynamodb, name, self.archive, utc_now)

    @cached_property
    def snapshots(self) -> Snapshots:
        """Working memories that were put away."""
        from turnfold.adapters.s3_snapshots import S3Snapshots

        return S3Snapshots(self._clients.s3, self._env["TURNFOLD_BUCKET"])

    @cached_property
    def _peeking(self) -> MemoryStore:
        from turnfold.application.restore import PeekingStore

        return PeekingStore(self.table, self._restore)

    @cached_property
    def _shelf(self) -> Shelf:
        from turnfold.adapters.dynamo_shelf import DynamoShelf

        return DynamoShelf(self._clients.dynamodb, self._env["TURNFOLD_TABLE"])

    @cached_property
    def _restore(self) -> "Restore":
        from turnfold.application.restore import Restore

        return Restore(self._shelf, self.snapshots, utc_now)

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
    def commit(self) -> CommitTurn:
        """Committing a turn."""
        return CommitTurn(
            store=self.store,
            archive=self.archive,
            doorbell=self.doorbell,
            clock=utc_now,
            new_id=new_id,
            defaults=default_settings(self._env),
            metrics=self.metrics,
        )

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions by hand."""
        return Sessions(
            store=self.store,
            doorbell=self.doorbell,
            clock=utc_now,
            new_id=new_id,
            defaults=default_settings(self._env),
        )

    @cached_property
    def context(self) -> ReadContext:
        """Contexts."""
        return ReadContext(
            store=self.store,
            counter=self.counter,
            metrics=self.metrics,
            recall=self.recall,
            by_policy=lambda: self.policy_context,
        )

    @cached_property
    def policy_context(self) -> "ReadPolicyContext":
        """Contexts by windows and limits."""
        from turnfold.adapters.extractive import ExtractiveSummariser
        from turnfold.adapters.openai_completions import API_SECONDS
        from turnfold.application.condense import WriterCondenser
        from turnfold.application.read_policy_context import ReadPolicyContext
        from turnfold.application.summary_writer import SummaryWriter
        from turnfold.domain.estimators import ExactEstimator
        from turnfold.domain.policies.registry import SERVICE_DEFAULTS, PolicyKit

        # It may ask twice, and the request has 29 seconds.
        answers = self._answers(API_SECONDS / 2)
        writer = SummaryWriter(answers, self._prompts, ExtractiveSummariser(self.counter.count))

        def kit(memory: "WorkingMemory", measure: "Measure") -> PolicyKit:
            return PolicyKit(
                estimator=ExactEstimator(measure.count),
                condenser=WriterCondenser(
                    writer.of(memory.session), memory.session.key, measure.count
                ),
                memory_role=memory.session.settings.memory_role,
                defaults=SERVICE_DEFAULTS,
            )

        return ReadPolicyContext(self.transcript, utc_now, kit)

    @cached_property
    def open_turns(self) -> "OpenTurns":
        """Turns that are built over several requests."""
        from turnfold.adapters.dynamo_open_turns import DynamoOpenTurns
        from turnfold.application.open_turns import OpenTurns

        drafts = DynamoOpenTurns(self._clients.dynamodb, self._env["TURNFOLD_TABLE"], utc_now)
        return OpenTurns(drafts, self.commit, utc_now, new_id)

    @cached_property
    def pins(self) -> Pins:
        """Pins by hand."""
        return Pins(self.store, self.counter, utc_now, new_id)

    @cached_property
    def transcript(self) -> Transcript:
        """The archived turns."""
        return Transcript(self.archive)

    @cached_property
    def turns(self) -> ReadTurns:
        """Turns and pages of them."""
        return ReadTurns(self.store, self.transcript)

    @cached_property
    def verify(self) -> "VerifyTranscript":
        """Verifying transcripts."""
        from turnfold.application.verify_transcript import VerifyTranscript

        return VerifyTranscript(self.store, self.transcript)

    @cached_property
    def rebuild(self) -> "RequestRebuild":
        """Asking for working memory anew."""
        from turnfold.application.rebuild_session import RequestRebuild

        return RequestRebuild(
            store=self.table,
            shelf=self._shelf,
            recover=self._recover,
            doorbell=self.doorbell,
            clock=utc_now,
            new_id=new_id,
            defaults=default_settings(self._env),
        )

    @cached_property
    def fork(self) -> "ForkSession":
        """Copies."""
        from turnfold.application.fork_session import ForkSession

        return ForkSession(
            store=self.store,
            archive=self.archive,
            transcript=self.transcript,
            shelf=self._shelf,
            snapshots=self.snapshots,
            doorbell=self.doorbell,
            clock=utc_now,
            new_id=new_id,
        )

    @cached_property
    def import_session(self) -> "ImportSession":
        """Imports."""
        from turnfold.application.import_session import ImportSession

        return ImportSession(
            store=self.store,
            archive=self.archive,
            doorbell=self.doorbell,
            archive_bell=self.archive_bell,
            counter=self.counter,
            clock=utc_now,
            new_id=new_id,
            defaults=default_settings(self._env),
        )

    @cached_property
    def export(self) -> "ExportSession":
        """Exports."""
        from turnfold.adapters.s3_exports import S3Exports
        from turnfold.application.export_session import ExportSession

        files = S3Exports(self._clients.s3, self._env["TURNFOLD_BUCKET"], utc_now)
        return ExportSession(self.store, self.transcript, files, self.archive_bell, new_id)

    def archived_sessions(self) -> "Iterator[SessionKey | str]":
        """Every session that has a transcript, of every tenant; a folder's name if it hides it."""
        from turnfold.adapters.s3_sessions import archived_sessions

        return archived_sessions(self._clients.s3, self._env["TURNFOLD_BUCKET"])

    @cached_property
    def prices(self) -> "Prices":
        """What a million tokens of a model cost."""
        from turnfold.domain.usage import read_prices

        return read_prices(self._env.get("TURNFOLD_PRICES", ""))

    @cached_property
    def delete(self) -> "Delete":
        """Asking for erasures."""
        from turnfold.application.delete import Delete

        return Delete(
            store=self.table,
            erasures=self._erasures,
            bell=self.archive_bell,
            clock=utc_now,
            new_random_id=lambda: uuid.uuid4().hex,
            mark_user=self._erase_user,
        )

    @cached_property
    def tend(self) -> "TendBatch":
        """Looking after the archive of sessions, for a batch of the archivist's messages."""
        from turnfold.adapters.s3_objects import S3SessionObjects
        from turnfold.application.erase import EraseSession
        from turnfold.application.roll_up import RollUp
        from turnfold.application.tend_archive import TendBatch, TendSession

        objects = S3SessionObjects(
            self._clients.s3,
            self._env["TURNFOLD_BUCKET"],
            bypass_governance=bool(self._env.get("TURNFOLD_OBJECT_LOCK_DAYS")),
        )
        erase = EraseSession(self.table, self._erasures, objects, utc_now, self._settle_seconds)
        return TendBatch(
            tend=TendSession(
                store=self.table,
                erase=erase,
                put_away=self._put_away,
                restore=self._restore,
                roll_up=RollUp(self.table, self.archive, self.transcript),
                clock=utc_now,
                new_id=new_id,
            ),
            erase_user=self._erase_user,
            bell=self.archive_bell,
            new_id=new_id,
        )

    def read_archive_knock(self, message_id: str, body: str, receive_count: int) -> "ArchiveKnock":
        """A message of the archivist's queue; one that cannot be read has no task."""
        from turnfold.adapters.sqs_archive_bell import parse_archive_message
        from turnfold.application.tend_archive import ArchiveKnock

        try:
            return ArchiveKnock(message_id, parse_archive_message(body), receive_count)
        except InvalidDoorbellError:
            return ArchiveKnock(message_id, None, receive_count)

    @cached_property
    def _put_away(self) -> "PutAway":
        from turnfold.application.put_away import PutAway

        return PutAway(self.table, self._shelf, self.snapshots, utc_now, new_id)

    @cached_property
    def _erasures(self) -> Erasures:
        from turnfold.adapters.dynamo_erasures import DynamoErasures

        return DynamoErasures(self._clients.dynamodb, self._env["TURNFOLD_TABLE"], utc_now)

    @cached_property
    def _erase_user(self) -> "EraseUser":
        from turnfold.application.erase import EraseUser

        return EraseUser(
            store=self.table,
            erasures=self._erasures,
            bell=self.archive_bell,
            clock=utc_now,
            new_id=new_id,
            settle_seconds=self._settle_seconds,
        )

    @property
    def _settle_seconds(self) -> int:
        """How long a writer may be at work that read a session before its tombstone was set."""
        return int(self._env.get("TURNFOLD_ERASURE_SETTLE_SECONDS") or ERASURE_SETTLE_SECONDS)

    @cached_property
    def chat(self) -> "Chat":
        """Chat; without a key it says that no model is configured."""
        from turnfold.application.chat import Chat

        model = None
        if self._has_model:
            from turnfold.adapters.openai_completions import API_SECONDS
            from turnfold.adapters.openai_model import OpenAIChat
            from turnfold.application.measured_model import MeasuredChatModel

            name = self._env.get("TURNFOLD_CHAT_MODEL") or DEFAULT_CHAT_MODEL
            openai = OpenAIChat(self._completions(API_SECONDS), name)
            model = MeasuredChatModel(openai, self.metrics)
        return Chat(self.store, self.counter, model, self.commit, self.turns, self.context)

    @cached_property
    def judge_now(self) -> "JudgeNow":
        """Judging a turn in the request that committed it."""
        from turnfold.adapters.openai_completions import API_SECONDS
        from turnfold.application.judge_now import JudgeNow

        # It may ask twice, and the request has 29 seconds.
        answers = self._answers(API_SECONDS / 2)
        return JudgeNow(self.store, self._judge(answers), self.counter, utc_now)

    @cached_property
    def compact(self) -> "CompactSession":
        """Compacting one session."""
        from turnfold.adapters.extractive import ExtractiveSummariser
        from turnfold.adapters.openai_completions import COMPACTOR_SECONDS
        from turnfold.application.compact_session import CompactSession
        from turnfold.application.summary_writer import SummaryWriter

        answers = self._answers(COMPACTOR_SECONDS)
        return CompactSession(
            store=self.table,
            transcript=self.transcript,
            doorbell=self.doorbell,
            writer=SummaryWriter(answers, self._prompts, ExtractiveSummariser(self.counter.count)),
            judge=self._judge(answers),
            counter=self.counter,
            clock=utc_now,
            new_id=new_id,
            metrics=self.metrics,
            archive_bell=self.archive_bell,
            # Only when a session asks for it; and it needs this compactor itself.
            rebuild=lambda *given: self._rebuild(*given),  # noqa: PLW0108
        )

    @cached_property
    def _rebuild(self) -> "RebuildSession":
        from turnfold.adapters.in_memory_store import InMemoryStore
        from turnfold.application.rebuild_session import RebuildSession

        return RebuildSession(
            store=self.table,
            transcript=self.transcript,
            shelf=self._shelf,
            snapshots=self.snapshots,
            restore=self._restore,
            recover=self._recover,
            scratch=lambda: InMemoryStore(utc_now),
            compactor=lambda scratch: replace(
                self.compact, store=scratch, archive_bell=None, rebuild=None
            ),
            clock=utc_now,
            new_id=new_id,
        )

    @cached_property
    def _recover(self) -> "RecoverSession":
        from turnfold.application.recover_session import RecoverSession

        return RecoverSession(self.archive, self.transcript)

    @cached_property
    def drain(self) -> "DrainBatch":
        """Draining a batch of doorbell messages."""
        from turnfold.application.drain_batch import DrainBatch

        return DrainBatch(self.compact, self.index)

    @cached_property
    def index(self) -> "IndexSession":
        """Indexing a session for searches."""
        from turnfold.adapters.openai_completions import COMPACTOR_SECONDS
        from turnfold.application.index_session import IndexSession

        embedder = self._embedder(COMPACTOR_SECONDS)
        return IndexSession(
            self.table, self.transcript, self._recall_index, embedder, embeds_from=EMBEDS_FROM_TURN
        )

    @cached_property
    def recall(self) -> Recall:
        """Finding turns that answer a query."""
        reader = ReadIndex(self.transcript, self._recall_index, self.index_caches)
        return Recall(reader, self._embedder(QUERY_SECONDS))

    @cached_property
    def search(self) -> "SearchSession":
        """Searching a session."""
        from turnfold.application.search_session import SearchSession

        return SearchSession(self.store, self.recall)

    @cached_property
    def search_tenant(self) -> "SearchTenant":
        """Searching a tenant's sessions."""
        from turnfold.application.search_tenant import SearchTenant

        return SearchTenant(self._peeking, self.recall)

    @cached_property
    def index_caches(self) -> IndexCaches:
        """What was read of indexes, of all tenants."""
        return IndexCaches()

    @cached_property
    def _recall_index(self) -> RecallIndex:
        from turnfold.adapters.s3_recall_index import S3RecallIndex

        return S3RecallIndex(self._clients.s3, self._env["TURNFOLD_BUCKET"])

    def read_knock(self, message_id: str, body: str, receive_count: int) -> "Knock":
        """A doorbell message as the drain takes it; one that cannot be read has no session."""
        from turnfold.application.compact_session import Ring
        from turnfold.application.drain_batch import Knock

        try:
            ring = parse_doorbell(body)
        except InvalidDoorbellError:
            return Knock(message_id, None, None, receive_count)
        return Knock(message_id, ring.key, Ring(ring.turn, ring.forced), receive_count)

    @cached_property
    def sweep(self) -> "Sweep":
        """The sweep."""
        from turnfold.application.sweep import Sweep

        return Sweep(
            store=self.table,
            doorbell=self.doorbell,
            clock=utc_now,
            new_id=new_id,
            erasures=self._erasures,
            archive_bell=self.archive_bell,
            metrics=self.metrics,
        )

    @cached_property
    def _prompts(self) -> PromptLibrary:
        folder = self._env.get("TURNFOLD_PROMPTS")
        return PromptLibrary(Path(folder) if folder else None)

    @property
    def _has_model(self) -> bool:
        return bool(self._env.get("OPENAI_API_KEY") or self._env.get("TURNFOLD_MODEL_SECRET"))

    def _answers(self, seconds: float) -> "PaidAnswers | None":
        """The model that summarises and judges; None in the mode without a key."""
        if not self._has_model:
            return None
        from turnfold.adapters.openai_model import OpenAIModel
        from turnfold.application.measured_model import MeasuredModel
        from turnfold.application.summary_writer import PaidAnswers

        name = self._env.get("TURNFOLD_MODEL") or DEFAULT_MODEL
        model = MeasuredModel(OpenAIModel(self._completions(seconds), name), self.metrics)
        return PaidAnswers(self.table, model, utc_now)

    def _judge(self, answers: "PaidAnswers | None") -> "PinJudge":
        from turnfold.adapters.rule_judge import RuleJudge
        from turnfold.application.judge_pins import PinJudge

        return PinJudge(answers, self._prompts, RuleJudge(), utc_now, new_id)

    def _embedder(self, seconds: float) -> Embedder | None:
        """The model that makes vectors; None in the mode without a key."""
        if not self._has_model:
            return None
        from turnfold.adapters.openai_embedder import OpenAIEmbedder

        return OpenAIEmbedder(
            self._model_key,
            model=self._env.get("TURNFOLD_EMBEDDING_MODEL"),
            base_url=self._base_url,
            seconds=seconds,
        )

    def _completions(self, seconds: float) -> "OpenAICompletions":
        from turnfold.adapters.openai_completions import OpenAICompletions

        return OpenAICompletions(self._model_key, base_url=self._base_url, seconds=seconds)

    @property
    def _base_url(self) -> str | None:
        return self._env.get("OPENAI_BASE_URL") or None

    @cached_property
    def _model_key(self) -> Callable[[], str]:
        key = self._env.get("OPENAI_API_KEY")
        if key:
            return lambda: key
        from turnfold.adapters.model_secret import ModelSecret

        return ModelSecret(self._env["TURNFOLD_MODEL_SECRET"], lambda: self._clients.secretsmanager)


class _OneTenant(Turnfold):
    """The service for one tenant. It shares what holds no data with the service it was made by."""

    def __init__(self, service: Turnfold, environment: Mapping[str, str], tenant: str) -> None:
        """Narrow the service. Raises `InvalidIdError` if the tenant's name is too long."""
        from turnfold.adapters.tenant_clients import TenantClients

        super().__init__(environment)
        self._service = service
        self._tenants_clients = TenantClients(
            service._clients,  # noqa: SLF001 - of its own kind
            tenant,
            environment["TURNFOLD_TENANT_ROLE_ARN"],
            environment["TURNFOLD_TABLE_ARN"],
            environment["TURNFOLD_BUCKET_ARN"],
        )

    @property
    def _clients(self) -> AwsClients:
        return self._tenants_clients

    @property
    def index_caches(self) -> IndexCaches:
        """Of all tenants together, so that they are bounded."""
        return self._service.index_caches

    @property
    def counter(self) -> TiktokenCounter:
        """The tokenizer, whose vocabulary is loaded once."""
        return self._service.counter

    @property
    def metrics(self) -> Metrics:
        """Figures of the whole service."""
        return self._service.metrics
