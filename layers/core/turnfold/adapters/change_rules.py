"""What a change must be before a store takes it: the same for every store.

A violation is a mistake of the calling code and no bad luck, hence `ValueError`.
"""

from dataclasses import fields

from turnfold.application.ports.memory import Change
from turnfold.domain.sessions import Session

MAX_OPERATIONS = 100
"""Items of one DynamoDB transaction."""

MAX_CLOSED_PIECES = 50
"""Pieces of an open turn that its commit removes with it; more of them expire by themselves."""

FIXED_FIELDS = frozenset({"key", "epoch", "created_at", "revision"})
"""Fields of a session that a change does not set: the key and the epoch name the session, its age
is part of an index's key, and the revision counts by itself."""

_SESSION_FIELDS = frozenset(one.name for one in fields(Session))


def count_operations(change: Change) -> int:
    """Items that a change writes or deletes, at most.

    The session counts 1 (with its profile 2 when it is created), and a pin counts 2, since it is
    removed where pins of the other kind (active, former) are kept.
    """
    return (
        1
        + (change.profile is not None or change.creates is not None)
        + (change.turn is not None)
        + len(change.more_turns)
        + (change.idempotency is not None)
        + (change.amends is not None)
        + (change.usage is not None)
        + len(change.summaries)
        + len(change.removes_turns)
        + len(change.removes_summaries)
        + 2 * (len(change.pins) + len(change.removes_pins))
        + (1 + min(change.closes.pieces, MAX_CLOSED_PIECES) if change.closes else 0)
    )


def check_change(change: Change) -> None:
    """Raise `ValueError` for a change that no store can take."""
    if count_operations(change) > MAX_OPERATIONS:
        raise ValueError(f"a change may write {MAX_OPERATIONS} items")
    if change.idempotency and change.amends:
        raise ValueError("a change adds or amends an idempotency record, not both")
    if change.creates is not None:
        if change.creates.key != change.key:
            raise ValueError("a change creates the session that it names")
        if change.sets or change.guards:
            raise ValueError("a change that creates a session takes no guards and no sets")
        return
    if not (change.sets.keys() | change.guards.keys()) <= _SESSION_FIELDS:
        raise ValueError("guards and sets of a change name fields of a session")
    if FIXED_FIELDS & change.sets.keys():
        raise ValueError(f"a change does not set {', '.join(sorted(FIXED_FIELDS))}")
    if (change.profile is not None) != ("profile_rev" in change.sets):
        raise ValueError("a change has a new profile and a new profile_rev, or neither")
