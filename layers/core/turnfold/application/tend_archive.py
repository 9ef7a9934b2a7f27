"""Looking after the archive of sessions: one place that decides what a ring is answered with.

The bell's message carries no work. What there is to do is read from the session each time, so a
lost, repeated or late message does no harm.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from turnfold.application.drain_batch import FailedKnock, back_off
from turnfold.application.erase import Again, EraseSession, EraseUser
from turnfold.application.fork_session import ABANDONED_SECONDS
from turnfold.application.ports.bells import ArchiveBell
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.put_away import PutAway
from turnfold.application.restore import Restore
from turnfold.application.roll_up import RollUp
from turnfold.domain.erasures import ArchiveTask, Erasure, UserErasure
from turnfold.domain.errors import GuardFailedError, StoreError
from turnfold.domain.sessions import Session, SessionKey, SessionStatus

ABANDONED = timedelta(seconds=ABANDONED_SECONDS)

logger = logging.getLogger("turnfold")


@dataclass(frozen=True, slots=True)
class TendSession:
    """Does what the archive of one session needs now."""

    store: MemoryStore
    erase: EraseSession
    put_away: PutAway
    restore: Restore
    roll_up: RollUp
    clock: Clock
    new_id: NewId

    def __call__(
        self, key: SessionKey, seconds_left: Callable[[], float] = lambda: 1e9
    ) -> Again | None:
        """Erase, put away, roll up: what the session needs; None if nothing is left to do.

        Raises `StoreError`.
        """
        session, _ = self.store.read_session(key, None)
        match session.status if session else None:
            case SessionStatus.ERASING:
                return self.erase(key, seconds_left)
            case SessionStatus.RESTORING if session:
                # A reader died on the way.
                self.restore(session)
            case SessionStatus.LIVE if session:
                again = self.roll_up(session, seconds_left)
                if again is not None:
                    return again
                self.put_away(key)
            case SessionStatus.EXPIRED:
                self.put_away(key)
            case SessionStatus.FORKING if session:
                return self._clear_away(session)
        return None

    def _clear_away(self, session: Session) -> Again | None:
        """Erase a copy that nobody finished."""
        if session.due_at is None or session.created_at > self.clock() - ABANDONED:
            return None
        erasure = Erasure(session.key.tenant, self.new_id(), self.clock())
        self.erase.erasures.begin(erasure, session)
        return Again(0)


@dataclass(frozen=True, slots=True)
class ArchiveKnock:
    """One message of the archive's bell. `task` is None where the body could not be read."""

    message_id: str
    task: ArchiveTask | None
    receive_count: int = 1


@dataclass(frozen=True, slots=True)
class TendBatch:
    """Tends every session that a batch rings for."""

    tend: TendSession
    erase_user: EraseUser
    bell: ArchiveBell
    new_id: NewId

    def __call__(
        self, knocks: Sequence[ArchiveKnock], seconds_left: Callable[[], float] = lambda: 1e9
    ) -> tuple[FailedKnock, ...]:
        """The messages that have to come again, in order; all others are done.

        A session is looked at once for all its messages, and one that fails does not touch others.
        """
        pauses: dict[ArchiveTask, int | None] = {}
        failed: list[FailedKnock] = []
        for knock in knocks:
            if knock.task is None:
                logger.error("unreadable message", extra={"code": "DOORBELL_UNREADABLE"})
                failed.append(FailedKnock(knock.message_id, back_off(knock.receive_count)))
                continue
            if knock.task not in pauses:
                pauses[knock.task] = self._tend(knock.task, knock.receive_count, seconds_left)
            pause = pauses[knock.task]
            if pause is not None:
                failed.append(FailedKnock(knock.message_id, pause))
        return tuple(failed)

    def _tend(
        self, task: ArchiveTask, receive_count: int, seconds_left: Callable[[], float]
    ) -> int | None:
        """Seconds until the messages of a task have to come again; None if they are done."""
        try:
            again = self._do(task, seconds_left)
            if again is not None and again.seconds <= 0:
                # There is only more of the same: a new message, since this one has been obeyed.
                self._ring(task)
                again = None
        except GuardFailedError:
            # The session has changed under the work; what is left to do is seen the next time.
            return 1
        except StoreError as error:
            logger.warning(
                "archive not tended", extra={"code": "ARCHIVE_RETRIED", "error": str(error)}
            )
            return back_off(receive_count)
        except Exception:
            logger.exception("archive not tended", extra={"code": "ARCHIVE_FAILED"})
            return back_off(receive_count)
        return None if again is None else again.seconds

    def _do(self, task: ArchiveTask, seconds_left: Callable[[], float]) -> Again | None:
        if isinstance(task, UserErasure):
            return self.erase_user(task.tenant, task.erasure_id, seconds_left)
        return self.tend(task, seconds_left)

    def _ring(self, task: ArchiveTask) -> None:
        if isinstance(task, UserErasure):
            self.bell.ring_user(task.tenant, task.erasure_id, self.new_id())
        else:
            self.bell.ring(task, self.new_id())
