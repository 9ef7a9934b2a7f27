"""When a session is due: when the sweeper looks whether its background work was done."""

from dataclasses import replace
from datetime import datetime, timedelta

from turnfold.domain.limits import SWEEP_GRACE_SECONDS
from turnfold.domain.sessions import Session


def due_time(now: datetime) -> datetime:
    """When the sweeper looks whether a doorbell was heard."""
    return now + timedelta(seconds=SWEEP_GRACE_SECONDS)


def with_due_time(before: Session, after: Session, now: datetime) -> Session:
    """The session after turns were added, due when their work is, else when it expires."""
    # Not to the new `expires_at` each time: that would move the session in the index with every
    # commit. The sweeper, which comes at the older one, sees that it is too early.
    due_at = due_time(now) if is_due(after) else after.expires_at
    if before.is_due_later_than(due_at):
        return replace(after, due_at=due_at, sweeps=0)
    return after


def is_due(session: Session) -> bool:
    """Whether a commit may have left work, as far as the session's own counters tell."""
    return pending_bound(session) > 0


def pending_bound(session: Session) -> int:
    """An upper bound of the turns that background work has to look at, without reading the window.

    Turns that were not judged yet; without judgement, the turn that has just left the tail.
    """
    if session.settings.judges_pins:
        return session.committed_through - max(session.judged_through, session.compacted_through)
    looked_at = max(session.head_end, session.compacted_through)
    return int(session.settings.auto_compression and session.tail_start > looked_at + 1)
