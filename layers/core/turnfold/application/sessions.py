"""Making, changing, reading and listing sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from turnfold.application.commit_turn import system_hash
from turnfold.application.due_work import due_time
from turnfold.application.keep_by_hand import KeepByHand
from turnfold.application.ports.bells import Doorbell
from turnfold.application.ports.clock import Clock, NewId
from turnfold.application.ports.memory import Change, MemoryStore, Page
from turnfold.application.read_memory import require_memory
from turnfold.application.ringing import ring_gently
from turnfold.domain.errors import (
    CommitConflictError,
    GuardFailedError,
    InvalidMessagesError,
    InvalidSettingsError,
    SessionErasingError,
    SessionNotFoundError,
    UserMismatchError,
)
from turnfold.domain.etags import require_match
from turnfold.domain.limits import MAX_PROFILE_BYTES
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.message_rules import check_messages
from turnfold.domain.messages import LEADING_ROLES, Message
from turnfold.domain.sessions import Profile, Session, SessionKey, SessionStatus, check_id
from turnfold.domain.settings import Settings, merge_settings
from turnfold.domain.transcript import canonical

ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class SessionInput:
    """What a client says about a session; None where it says nothing."""

    system: tuple[Message, ...] | None = None
    user_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] | None = None
    legal_hold: bool | None = None


def session_input(
    system: object = None,
    user_id: object = None,
    metadata: object = None,
    settings: object = None,
    legal_hold: object = None,
) -> SessionInput:
    """The checked input. Raises `InvalidInputError`s that name the member."""
    if user_id is not None and not isinstance(user_id, str):
        raise UserMismatchError("user_id must be a text")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidSettingsError("metadata must be an object")
    if settings is not None and not isinstance(settings, Mapping):
        raise InvalidSettingsError("settings must be an object")
    if legal_hold is not None and not isinstance(legal_hold, bool):
        raise InvalidSettingsError("legal_hold must be true or false")
    given = SessionInput(
        system=None if system is None else system_messages(system),
        user_id=None if user_id is None else check_id(user_id, "user_id"),
        metadata=metadata,
        settings=settings,
        legal_hold=legal_hold,
    )
    size = len(canonical([list(given.system or ()), given.metadata]))
    if size > MAX_PROFILE_BYTES:
        raise InvalidSettingsError(
            f"system messages and metadata may have {MAX_PROFILE_BYTES} bytes together, not {size}"
        )
    return given


def system_messages(value: object) -> tuple[Message, ...]:
    """System messages given as texts or as messages of role system or developer."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidMessagesError([("system", "must be a list of texts or messages")])
    if not value:
        return ()
    messages = check_messages(
        [{"role": "system", "content": one} if isinstance(one, str) else one for one in value],
        path="system",
    )
    for at, message in enumerate(messages):
        if message["role"] not in LEADING_ROLES:
            raise InvalidMessagesError([(f"system[{at}].role", "must be system or developer")])
    return messages


def new_session(
    key: SessionKey, given: SessionInput, settings: Settings, epoch: str, now: datetime
) -> tuple[Session, Profile]:
    """A session without turns, and its profile, as the input says."""
    profile = Profile(given.system or (), given.metadata or {})
    session = Session(
        key=key,
        epoch=epoch,
        created_at=now,
        updated_at=now,
        settings=settings,
        user_id=given.user_id,
        system_sha256=system_hash(profile.system),
        legal_hold=bool(given.legal_hold),
    )
    return replace(session, due_at=session.expires_at), profile


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions by hand. `if_match` names the ETags (`Session.etag`) that may be changed."""

    store: MemoryStore
    doorbell: Doorbell
    clock: Clock
    new_id: NewId
    defaults: Settings
    keep: KeepByHand | None = None

    def get(self, key: SessionKey) -> WorkingMemory:
        """Everything live of a session. Raises `SessionNotFoundError`."""
        return require_memory(self.store, key)

    def require(self, key: SessionKey) -> Session:
        """The session's own counters, without its memory. Raises `SessionNotFoundError`."""
        session, _ = self.store.read_session(key, None)
        if session is None or session.status is not SessionStatus.LIVE:
            raise SessionNotFoundError("no such session")
        return session

    def put(
        self, key: SessionKey, given: SessionInput, if_match: frozenset[str] | None = None
    ) -> tuple[WorkingMemory, bool]:
        """Create the session or replace what is said about it; whether it was created.

        Settings that are not named get their defaults. The user id is set once. A legal hold stays
        until it is ended by name.
        """
        for _ in range(ATTEMPTS):
            memory = self.store.load(key)
            settings = merge_settings(self.defaults, given.settings or {})
            try:
                if memory is None:
                    require_match(None, if_match)
                    self._create(key, given, settings)
                    return require_memory(self.store, key), True
                profile = Profile(given.system or (), given.metadata or {})
                return self._change(memory, given, settings, profile, if_match), False
            except GuardFailedError:
                continue
        raise CommitConflictError("other writers were faster; try again")

    def patch(
        self, key: SessionKey, given: SessionInput, if_match: frozenset[str] | None = None
    ) -> WorkingMemory:
        """Merge into what is said about the session. Raises `SessionNotFoundError`."""
        for _ in range(ATTEMPTS):
            memory = require_memory(self.store, key)
            settings = merge_settings(memory.session.settings, given.settings or {})
            profile = Profile(
                memory.profile.system if given.system is None else given.system,
                {**memory.profile.metadata, **(given.metadata or {})},
            )
            session_input(list(profile.system), None, profile.metadata)
            try:
                return self._change(memory, given, settings, profile, if_match)
            except GuardFailedError:
                continue
        raise CommitConflictError("other writers were faster; try again")

    def list(
        self, tenant: str, user_id: str | None, limit: int, position: str | None
    ) -> Page[Session]:
        """Sessions of a tenant, or of one of its users, newest first."""
        return self.store.list_sessions(tenant, user_id, limit, position)

    def ring(self, key: SessionKey) -> Session:
        """Ask the compactor to look at a session, even if it does not compact by itself.

        Raises `SessionNotFoundError`.
        """
        session = self.require(key)
        self.doorbell.ring(key, self.new_id(), session.committed_through, forced=True)
        return session

    def _create(self, key: SessionKey, given: SessionInput, settings: Settings) -> None:
        session, profile = new_session(key, given, settings, self.new_id(), self.clock())
        self.store.write(Change(key=key, creates=session, profile=profile))
        if self.keep is not None and (
            given.legal_hold or given.system or given.metadata or settings != self.defaults
        ):
            self.keep(key)

    def _change(
        self,
        memory: WorkingMemory,
        given: SessionInput,
        settings: Settings,
        profile: Profile,
        if_match: frozenset[str] | None,
    ) -> WorkingMemory:
        session = memory.session
        if session.status is not SessionStatus.LIVE:
            raise SessionErasingError
        require_match(session.etag, if_match)
        if session.user_id is not None and given.user_id not in (None, session.user_id):
            raise UserMismatchError("the session belongs to another user_id, which is set once")
        guards: dict[str, Any] = {"profile_rev": session.profile_rev, "user_id": session.user_id}
        if if_match is not None:
            guards["revision"] = session.revision
        sets: dict[str, Any] = {
            "settings": settings,
            "user_id": session.user_id or given.user_id,
            "system_sha256": system_hash(profile.system),
            "profile_rev": session.profile_rev + 1,
        }
        if given.legal_hold is not None:
            sets["legal_hold"] = given.legal_hold
        if settings != session.settings:
            sets["due_at"] = due_time(self.clock())
        self.store.write(
            Change(key=session.key, epoch=session.epoch, guards=guards, sets=sets, profile=profile)
        )
        # Metadata alone may change with every turn, and is not worth an object each time.
        said = (session.settings, session.legal_hold, session.system_sha256)
        if self.keep is not None and said != (
            settings,
            sets.get("legal_hold", session.legal_hold),
            sets["system_sha256"],
        ):
            self.keep(session.key)
        if settings != session.settings and session.committed_through:
            # Other limits may leave work to do that no commit will ring for.
            ring_gently(self.doorbell, session.key, self.new_id(), session.committed_through)
        return require_memory(self.store, session.key)
