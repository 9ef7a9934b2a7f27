"""What works in the background: compaction, the archive, the sweep."""

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from turnfold.adapters.sqs_doorbell import parse_doorbell
from turnfold.bootstrap.models import Models
from turnfold.bootstrap.resources import new_id
from turnfold.domain.errors import InvalidDoorbellError

if TYPE_CHECKING:
    from turnfold.application.compact_session import CompactSession
    from turnfold.application.drain_batch import DrainBatch, Knock
    from turnfold.application.erase import EraseUser
    from turnfold.application.index_session import IndexSession
    from turnfold.application.put_away import PutAway
    from turnfold.application.rebuild_session import RebuildSession
    from turnfold.application.recover_session import RecoverSession
    from turnfold.application.sweep import Sweep
    from turnfold.application.tend_archive import ArchiveKnock, TendBatch

EMBEDS_FROM_TURN = 16
"""A shorter session is found by words, and mostly stands in the context anyway: most sessions are
short, and each would cost an embedding call a turn."""

ERASURE_SETTLE_SECONDS = 35
"""Longer than the API function may run (29 seconds): what it read before a tombstone was set, it
cannot write about any more."""


class Background(Models):
    """The use cases of the compactor, the archivist and the sweeper."""

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
            clock=self.clock,
            new_id=new_id,
            metrics=self.metrics,
            archive_bell=self.archive_bell,
            # Only when a session asks for it; and it needs this compactor itself.
            rebuild=lambda *given: self._rebuild(*given),  # noqa: PLW0108 - see above
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
            scratch=lambda: InMemoryStore(self.clock),
            compactor=lambda scratch: replace(
                self.compact, store=scratch, archive_bell=None, rebuild=None
            ),
            clock=self.clock,
            new_id=new_id,
        )

    @cached_property
    def _recover(self) -> "RecoverSession":
        from turnfold.application.recover_session import RecoverSession

        return RecoverSession(self.archive, self.transcript)

    @cached_property
    def index(self) -> "IndexSession":
        """Indexing a session for searches."""
        from turnfold.adapters.openai_completions import COMPACTOR_SECONDS
        from turnfold.application.index_session import IndexSession

        return IndexSession(
            self._pieces,
            self.transcript,
            self._vectors,
            self._embedder(COMPACTOR_SECONDS),
            embeds_from=EMBEDS_FROM_TURN,
        )

    @cached_property
    def drain(self) -> "DrainBatch":
        """Draining a batch of doorbell messages."""
        from turnfold.application.drain_batch import DrainBatch

        return DrainBatch(self.compact, self.index)

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
        erase = EraseSession(self.table, self._erasures, objects, self.clock, self._settle_seconds)
        return TendBatch(
            tend=TendSession(
                store=self.table,
                erase=erase,
                put_away=self._put_away,
                restore=self._restore,
                roll_up=RollUp(self.table, self.archive, self.transcript),
                clock=self.clock,
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

        return PutAway(self.table, self._shelf, self.snapshots, self.clock, new_id)

    @cached_property
    def _erase_user(self) -> "EraseUser":
        from turnfold.application.erase import EraseUser

        return EraseUser(
            store=self.table,
            erasures=self._erasures,
            bell=self.archive_bell,
            clock=self.clock,
            new_id=new_id,
            settle_seconds=self._settle_seconds,
        )

    @property
    def _settle_seconds(self) -> int:
        """How long a writer may be at work that read a session before its tombstone was set."""
        return int(self._env.get("TURNFOLD_ERASURE_SETTLE_SECONDS") or ERASURE_SETTLE_SECONDS)

    @cached_property
    def sweep(self) -> "Sweep":
        """The sweep."""
        from turnfold.application.sweep import Sweep

        return Sweep(
            store=self.table,
            doorbell=self.doorbell,
            clock=self.clock,
            new_id=new_id,
            erasures=self._erasures,
            archive_bell=self.archive_bell,
            metrics=self.metrics,
        )
