"""Asking for working memory to be made anew from the transcript (`rebuild_session`)."""

from dataclasses import dataclass

from turnfold.application.due_work import due_time
from turnfold.application.ports.bells import Doorbell
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.memory import Change, MemoryStore
from turnfold.application.ports.shelf import Shelf
from turnfold.application.recover_session import RecoverSession
from turnfold.domain.errors import CommitConflictError, GuardFailedError, SessionNotFoundError
from turnfold.domain.sessions import Profile, Session, SessionKey, SessionStatus
from turnfold.domain.settings import Settings

ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class RequestRebuild:
    """Asks for a rebuild; the compactor does it."""

    store: MemoryStore
    shelf: Shelf
    recover: RecoverSession
    doorbell: Doorbell
    clock: Clock
    new_id: NewId
    defaults: Settings

    def __call__(self, key: SessionKey) -> Session:
        """Note the request and ring; the session as it is now.

        Also a session that the table knows nothing about, if it has a transcript. Raises
        `SessionNotFoundError`.
        """
        for _ in range(ATTEMPTS):
            session, _ = self.store.read_session(key, None)
            try:
                noted = self._note(key, session)
            except GuardFailedError:
                continue
            self.doorbell.ring(key, self.new_id(), noted.committed_through)
            return noted
        raise CommitConflictError("other requests were faster; try again")

    def _note(self, key: SessionKey, session: Session | None) -> Session:
        now = self.clock()
        if session is None:
            return self._begin(key)
        if session.status is SessionStatus.REBUILDING:
            return session
        if session.is_away:
            self.shelf.give_up(session, due_time(now))
            return session
        if session.status is not SessionStatus.LIVE:
            raise SessionNotFoundError("no such session")
        self.store.write(
            Change(
                key=key,
                epoch=session.epoch,
                sets={"rebuild": True, "due_at": due_time(now), "sweeps": 0},
                visible=False,
            )
        )
        return session

    def _begin(self, key: SessionKey) -> Session:
        """A session for records that have none."""
        if not self.recover.has_transcript(key):
            raise SessionNotFoundError("no such session")
        now = self.clock()
        session = Session(
            key=key,
            epoch=self.new_id(),
            created_at=now,
            updated_at=now,
            settings=self.defaults,
            status=SessionStatus.REBUILDING,
            due_at=due_time(now),
            rebuild=True,
        )
        self.store.write(Change(key=key, creates=session, profile=Profile()))
        return session
