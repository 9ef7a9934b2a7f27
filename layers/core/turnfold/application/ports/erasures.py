"""What an erasure needs: its records, and all that is stored of a session."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from turnfold.domain.erasures import Erasure, Removed
from turnfold.domain.sessions import Session, SessionKey


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One version of an object, or a delete marker, by the object's name.

    With `is_upload` it is an upload in parts that nobody has finished, and `version` is its id.
    """

    name: str
    version: str
    is_upload: bool = False


class SessionObjects(Protocol):
    """All objects of a session, whatever they hold, with every version of them."""

    def list_versions(self, key: SessionKey, limit: int) -> Sequence[ObjectVersion]:
        """Some of the session's versions, delete markers and unfinished uploads.

        At most `limit` (1 to 1,000); none means that nothing is left.
        """
        ...

    def remove_versions(self, versions: Sequence[ObjectVersion]) -> None:
        """Remove exactly these versions for good (at most 1,000); absent ones count as removed.

        Raises `StoreError` if one is left, as under a retention that may not be passed over.
        """
        ...


class Erasures(Protocol):
    """Erasures under way, their receipts, and the table's part of the work.

    Every write that removes something happens only if the session is still being erased by the
    same erasure; otherwise `GuardFailedError`. So an eraser that wakes up late harms no session
    that has begun anew under the same id.
    """

    def begin(self, erasure: Erasure, session: Session) -> None:
        """Mark a session as erasing and keep its erasure, in one write.

        With an erasure of a user, whose receipt is there already, one more session is counted.
        Raises `GuardFailedError` unless the session has that epoch still, is not being erased yet
        and is under no legal hold.
        """
        ...

    def begin_user(self, erasure: Erasure) -> None:
        """Keep the erasure of a user. Raises `GuardFailedError` if one of that user is at work."""
        ...

    def get(self, tenant: str, erasure_id: str) -> Erasure | None:
        """An erasure of that tenant."""
        ...

    def of_session(self, key: SessionKey) -> str | None:
        """The erasure that removed a session of that id within the last two days."""
        ...

    def of_user(self, tenant: str, user_id: str) -> str | None:
        """The erasure that was asked for that user within the last two days."""
        ...

    def remove_items(self, session: Session) -> int:
        """Remove some items of the session, but not the session itself; how many it were.

        They are counted on the receipt. 0 means that none is left.
        """
        ...

    def note_objects(self, session: Session, removed: Removed) -> None:
        """Count removed objects and versions on the receipt."""
        ...

    def finish(self, session: Session, erasure: Erasure, now: datetime) -> None:
        """Remove the session itself. This also ends an erasure of one session."""
        ...

    def mark_listed(self, erasure: Erasure, due_at: datetime | None, *, listed: bool) -> None:
        """Say whether all sessions of the user are marked, and when the sweeper looks again."""
        ...

    def close_user(self, erasure: Erasure, now: datetime) -> bool:
        """End the erasure of a user if all its sessions are marked and gone; whether it ended."""
        ...

    def due_users(self, now: datetime, limit: int) -> Sequence[tuple[str, str]]:
        """(tenant, erasure id) of users' erasures whose time to be looked at has come."""
        ...
