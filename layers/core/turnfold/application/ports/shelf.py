"""Putting working memory away and taking it back."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from turnfold.domain.sessions import Session, SessionKey
from turnfold.domain.snapshots import Snapshot


class Snapshots(Protocol):
    """Snapshots of working memories (`domain.snapshots`), beside the transcript."""

    def put(self, key: SessionKey, name: str, data: bytes) -> None:
        """Store a snapshot under a name of letters, digits and `-`."""
        ...

    def get(self, key: SessionKey, name: str) -> bytes | None:
        """One snapshot."""
        ...

    def names(self, key: SessionKey) -> Sequence[str]:
        """The names of all snapshots of a session, ascending."""
        ...

    def remove(self, key: SessionKey, names: Sequence[str]) -> None:
        """Remove snapshots of no more use; absent ones are fine."""
        ...

    def discard(self, key: SessionKey, name: str) -> None:
        """Remove a snapshot for good, that was made of a session which is gone meanwhile."""
        ...


class Shelf(Protocol):
    """Takes the working memory of a session out of the table, and puts it back, step by step.

    live → `put_away` → expired → `begin_restore` → restoring → `finish_restore` → live. Every step
    happens only in its state, with the session's epoch and snapshot as given; else it raises
    `GuardFailedError`. So a step that comes late harms nothing, and any step may be repeated.
    """

    def put_away(
        self,
        session: Session,
        snapshot: str,
        due_at: datetime,
        sets: Mapping[str, Any] | None = None,
    ) -> None:
        """Say that the memory stands in that snapshot, if the session has that `revision` still.

        `sets` are further fields of the session that the snapshot goes with.
        """
        ...

    def open(
        self, session: Session, snapshot: str, due_at: datetime, sets: Mapping[str, Any]
    ) -> None:
        """Say that the memory of a session that is being made stands in that snapshot: expired.

        The session must have the status that it has here.
        """
        ...

    def give_up(self, session: Session, due_at: datetime) -> None:
        """Say that the snapshot of a session that is away is to be replaced: rebuilding."""
        ...

    def clear(self, session: Session, keep: Snapshot | None = None) -> int:
        """Remove some items of working memory, but not the session; how many it were.

        Of an expired session all; of one that is being restored those that are not of the snapshot.
        """
        ...

    def rest(self, session: Session) -> None:
        """Say that nothing is to be done about an expired session."""
        ...

    def begin_restore(self, session: Session) -> None:
        """From now on nothing is cleared that the snapshot holds."""
        ...

    def fill(self, session: Session, part: Snapshot) -> None:
        """Put items of the snapshot back, at most 90 of them, with the profile."""
        ...

    def finish_restore(self, session: Session, now: datetime, due_at: datetime) -> None:
        """All items are back: the session is live again."""
        ...
