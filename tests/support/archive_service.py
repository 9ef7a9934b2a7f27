"""The service of `support.service` with everything that looks after the archive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from support.service import KEY, ScriptedModel, Service
from turnfold.adapters.in_memory_exports import InMemoryExports
from turnfold.adapters.in_memory_shelf import InMemoryShelf
from turnfold.adapters.in_memory_snapshots import InMemorySnapshots
from turnfold.adapters.in_memory_store import InMemoryStore
from turnfold.adapters.sqs_archive_bell import parse_archive_message
from turnfold.application.delete import Delete
from turnfold.application.erase import EraseSession, EraseUser
from turnfold.application.export_session import ExportSession
from turnfold.application.fork_session import ForkSession
from turnfold.application.import_session import ImportSession
from turnfold.application.keep_by_hand import KeepByHand
from turnfold.application.put_away import PutAway
from turnfold.application.rebuild_session import RebuildSession
from turnfold.application.recover_session import RecoverSession
from turnfold.application.request_rebuild import RequestRebuild
from turnfold.application.restore import Restore, RestoringStore
from turnfold.application.roll_up import RollUp
from turnfold.application.tend_archive import ArchiveKnock, TendBatch, TendSession
from turnfold.application.verify_transcript import VerifyTranscript

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from support.fifo_queue import ReceivedMessage
    from turnfold.domain.erasures import Erasure
    from turnfold.domain.sessions import SessionKey

SETTLE_SECONDS = 35


class ArchiveService(Service):
    """All use cases, the archivist and its queue."""

    def __init__(
        self,
        *,
        model: ScriptedModel | None = None,
        wrap: Callable[[str, Any], Any] = lambda _name, port: port,
        **settings: Any,
    ) -> None:
        """`wrap` may put something between the use cases and a port, as in `Service`."""
        super().__init__(model=model, wrap=wrap, **settings)
        self.bucket = self.raw_archive.bucket
        self.raw_shelf = InMemoryShelf(self.raw_store)
        self.shelf = wrap("shelf", self.raw_shelf)
        self.snapshots = wrap("snapshots", InMemorySnapshots(self.bucket))
        self.restore = Restore(self.shelf, self.snapshots, self.clock)
        self.put_away = PutAway(self.store, self.shelf, self.snapshots, self.clock, self.new_id)
        self._serve(RestoringStore(self.store, self.restore))
        self.objects = wrap("objects", self.bucket)
        erase_user = EraseUser(
            store=self.store,
            erasures=self.erasures,
            bell=self.archive_bell,
            clock=self.clock,
            new_id=self.new_id,
            settle_seconds=SETTLE_SECONDS,
        )
        self.delete = Delete(
            store=self.store,
            erasures=self.erasures,
            bell=self.archive_bell,
            clock=self.clock,
            new_random_id=self.new_id,
            mark_user=erase_user,
        )
        erase = EraseSession(self.store, self.erasures, self.objects, self.clock, SETTLE_SECONDS)
        self.roll_up = RollUp(self.store, self.archive, self.transcript)
        self.tend = TendSession(
            self.store,
            erase,
            self.put_away,
            self.restore,
            self.roll_up,
            self.clock,
            self.new_id,
        )
        recover = RecoverSession(self.archive, self.transcript)
        self.rebuild = RebuildSession(
            store=self.store,
            transcript=self.transcript,
            shelf=self.shelf,
            snapshots=self.snapshots,
            restore=self.restore,
            recover=recover,
            scratch=lambda: InMemoryStore(self.clock),
            compactor=lambda scratch: replace(
                self.compact, store=scratch, archive_bell=None, rebuild=None
            ),
            clock=self.clock,
            new_id=self.new_id,
        )
        self.request_rebuild = RequestRebuild(
            store=self.store,
            shelf=self.shelf,
            recover=recover,
            doorbell=self.doorbell,
            clock=self.clock,
            new_id=self.new_id,
            defaults=self.defaults,
        )
        self.compact = replace(self.compact, archive_bell=self.archive_bell, rebuild=self.rebuild)
        self.drain_batch = replace(self.drain_batch, compact=self.compact)
        self.tend_batch = TendBatch(
            tend=self.tend, erase_user=erase_user, bell=self.archive_bell, new_id=self.new_id
        )

    def _serve(self, store: RestoringStore) -> None:
        """Let all that serves a user bring back what was put away, as the API does."""
        self.commit_turn = replace(self.commit_turn, store=store)
        keep = KeepByHand(store, self.snapshots)
        self.sessions = replace(self.sessions, store=store, keep=keep)
        self.pins = replace(self.pins, store=store, keep=keep)
        self.context = replace(self.context, store=store)
        self.turns = replace(self.turns, store=store)
        self.judge_now = replace(self.judge_now, store=store)
        self.search = replace(self.search, store=store)
        self.verify = VerifyTranscript(store, self.transcript)
        self.files = InMemoryExports(self.bucket, self.clock)
        self.export = ExportSession(
            store, self.transcript, self.files, self.archive_bell, self.new_id
        )
        self.import_session = ImportSession(
            store=store,
            archive=self.archive,
            doorbell=self.doorbell,
            archive_bell=self.archive_bell,
            counter=self.counter,
            clock=self.clock,
            new_id=self.new_id,
            defaults=self.defaults,
            keep=keep,
        )
        self.fork = ForkSession(
            store=store,
            archive=self.archive,
            transcript=self.transcript,
            shelf=self.shelf,
            snapshots=self.snapshots,
            doorbell=self.doorbell,
            clock=self.clock,
            new_id=self.new_id,
        )

    def receipt(self, erasure: Erasure) -> Erasure:
        """The erasure as it is now."""
        found = self.raw_erasures.get(erasure.tenant, erasure.erasure_id)
        assert found is not None
        return found

    def objects_of(self, key: SessionKey = KEY) -> list[str]:
        """The names of all versions and delete markers under a session's prefix."""
        return [one.name for one in self.bucket.list_versions(key, 10**6)]

    def deliver_archive(self, batch: Sequence[ReceivedMessage]) -> list[str]:
        """Hand a batch to the archivist as its function does; the ids that come again."""
        failed = self.tend_batch([_archive_knock(message) for message in batch])
        by_id = {message.message_id: message for message in batch}
        for one in failed:
            receipt = by_id[one.message_id].receipt
            self.archive_queue.change_visibility(receipt, one.back_off)
        back = {one.message_id for one in failed}
        for message in batch:
            if message.message_id not in back:
                self.archive_queue.delete(message.receipt)
        return sorted(back)

    def drain_archive(self, rounds: int = 1000) -> None:
        """Run the archivist until its queue is empty, letting time pass where it must."""
        for _ in range(rounds):
            batch = self.archive_queue.receive()
            if batch:
                self.deliver_archive(batch)
                continue
            waits_for = self.archive_queue.next_visible_at
            if waits_for is None:
                return
            self.clock.now = max(self.clock.now, waits_for)
        raise AssertionError("the archivist's queue does not get empty")


def _archive_knock(message: ReceivedMessage) -> ArchiveKnock:
    task = parse_archive_message(message.body)
    return ArchiveKnock(message.message_id, task, message.receive_count)
