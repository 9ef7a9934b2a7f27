"""The composition root: the only place that knows which adapter stands behind which port.

Everything is built when it is first needed, so a request pays only for what it uses: importing
`openai` or loading the tokenizer's vocabulary takes longer than a commit.
"""

import uuid
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from turnfold.adapters.aws_clients import AwsClients
from turnfold.adapters.tiktoken_counter import TiktokenCounter
from turnfold.application.commit_turn import CommitTurn
from turnfold.application.default_settings import default_settings
from turnfold.application.metrics import Metrics
from turnfold.application.read_context import ReadContext
from turnfold.application.read_turns import ReadTurns
from turnfold.application.sessions import Sessions
from turnfold.bootstrap.background import Background
from turnfold.bootstrap.resources import new_id

if TYPE_CHECKING:
    from turnfold.application.chat import Chat
    from turnfold.application.delete import Delete
    from turnfold.application.export_session import ExportSession
    from turnfold.application.fork_session import ForkSession
    from turnfold.application.import_session import ImportSession
    from turnfold.application.judge_now import JudgeNow
    from turnfold.application.open_turns import OpenTurns
    from turnfold.application.pins_by_hand import Pins
    from turnfold.application.read_index import IndexCaches
    from turnfold.application.read_policy_context import ReadPolicyContext
    from turnfold.application.recall import Recall
    from turnfold.application.remember_completions import RememberCompletions
    from turnfold.application.request_rebuild import RequestRebuild
    from turnfold.application.search_session import SearchSession
    from turnfold.application.search_tenant import SearchTenant
    from turnfold.application.verify_transcript import VerifyTranscript
    from turnfold.domain.measure import Measure
    from turnfold.domain.memory import WorkingMemory

TENANTS_KEPT = 64
"""Tenants whose clients a process keeps: making them takes 15 ms, keeping them less than a MB."""

QUERY_SECONDS = 6.0
"""For the vector of a query. After that a search goes by words alone."""


class Turnfold(Background):
    """The service on AWS (or an emulator of it), configured by environment variables."""

    def for_tenant(self, tenant: str) -> "Turnfold":
        """The service with credentials that reach this tenant's data and no other's.

        It is this service itself where tenants are not isolated below the code, that is without
        `TURNFOLD_TENANT_ROLE_ARN`. Raises `InvalidIdError` if the name is too long for that.
        """
        return self._of_tenant(tenant) if self._env.get("TURNFOLD_TENANT_ROLE_ARN") else self

    @cached_property
    def _of_tenant(self) -> "Callable[[str], Turnfold]":
        return lru_cache(TENANTS_KEPT)(lambda tenant: _OneTenant(self, self._env, tenant))

    def prepare(self) -> None:
        """Load what most requests need, before a snapshot of the process is taken.

        Nothing is connected, and nothing is drawn that has to differ from copy to copy.
        """
        _ = (self.commit, self.context)
        self.counter.count("")

    @cached_property
    def commit(self) -> CommitTurn:
        """Committing a turn."""
        return CommitTurn(
            store=self.store,
            archive=self.archive,
            doorbell=self.doorbell,
            clock=self.clock,
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
            clock=self.clock,
            new_id=new_id,
            defaults=default_settings(self._env),
            keep=self._keep,
        )

    @cached_property
    def context(self) -> ReadContext:
        """Contexts."""
        return ReadContext(
            store=self.store,
            counter=self.counter,
            metrics=self.metrics,
            recall=lambda *given: self.recall(*given),  # noqa: PLW0108 - loaded when there is a query
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

        return ReadPolicyContext(self.transcript, self.clock, kit)

    @cached_property
    def open_turns(self) -> "OpenTurns":
        """Turns that are built over several requests."""
        from turnfold.adapters.dynamo_open_turns import DynamoOpenTurns
        from turnfold.application.open_turns import OpenTurns

        drafts = DynamoOpenTurns(self._clients.dynamodb, self._env["TURNFOLD_TABLE"], self.clock)
        return OpenTurns(drafts, self.commit, self.clock, new_id)

    @cached_property
    def pins(self) -> "Pins":
        """Pins by hand."""
        from turnfold.application.pins_by_hand import Pins

        return Pins(self.store, self.counter, self.clock, new_id, self._keep)

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
        from turnfold.application.request_rebuild import RequestRebuild

        return RequestRebuild(
            store=self.table,
            shelf=self._shelf,
            recover=self._recover,
            doorbell=self.doorbell,
            clock=self.clock,
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
            clock=self.clock,
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
            clock=self.clock,
            new_id=new_id,
            defaults=default_settings(self._env),
            keep=self._keep,
        )

    @cached_property
    def export(self) -> "ExportSession":
        """Exports."""
        from turnfold.adapters.s3_exports import S3Exports
        from turnfold.application.export_session import ExportSession

        files = S3Exports(self._clients.s3, self._env["TURNFOLD_BUCKET"], self.clock)
        return ExportSession(self.store, self.transcript, files, self.archive_bell, new_id)

    @cached_property
    def delete(self) -> "Delete":
        """Asking for erasures."""
        from turnfold.application.delete import Delete

        return Delete(
            store=self.table,
            erasures=self._erasures,
            bell=self.archive_bell,
            clock=self.clock,
            new_random_id=lambda: uuid.uuid4().hex,
            mark_user=self._erase_user,
        )

    @cached_property
    def chat(self) -> "Chat":
        """Chat; without a key it says that no model is configured."""
        from turnfold.application.chat import Chat

        return Chat(
            self.store, self.counter, self._chat_model(), self.commit, self.turns, self.context
        )

    @cached_property
    def remember_completions(self) -> "RememberCompletions":
        """Chat completions with memory; without a key they say that no model is configured."""
        from turnfold.application.remember_completions import RememberCompletions
        from turnfold.application.take_history import TakeHistory

        return RememberCompletions(
            store=self.store,
            drafts=self.open_turns.drafts,
            model=self.completions,
            commit=self.commit,
            turns=self.turns,
            context=self.context,
            take_history=TakeHistory(self.import_session),
        )

    @cached_property
    def judge_now(self) -> "JudgeNow":
        """Judging a turn in the request that committed it."""
        from turnfold.adapters.openai_completions import API_SECONDS
        from turnfold.application.judge_now import JudgeNow

        # It may ask twice, and the request has 29 seconds.
        answers = self._answers(API_SECONDS / 2)
        return JudgeNow(self.store, self._judge(answers), self.counter, self.clock)

    @cached_property
    def recall(self) -> "Recall":
        """Finding turns that answer a query."""
        from turnfold.application.read_index import ReadIndex
        from turnfold.application.recall import Recall

        reader = ReadIndex(self.transcript, self._recall_index, self.index_caches)
        return Recall(reader, self._vectors, self._embedder(QUERY_SECONDS))

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
    def index_caches(self) -> "IndexCaches":
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
