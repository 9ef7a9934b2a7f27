"""The one write that changes pins, guarded by the session's pin revision."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from turnfold.application.ports.memory import Change, IdempotencyRecord
from turnfold.domain.pin_rules import PinEdit
from turnfold.domain.sessions import Session, TurnRange
from turnfold.domain.turns import Turn

MAX_PIN_CHANGES = 45
"""Pins that one write changes: each is two operations, and a transaction has 100."""


def pin_change(
    session: Session,
    edit: PinEdit,
    *,
    sets: Mapping[str, Any] | None = None,
    guards: Mapping[str, Any] | None = None,
) -> Change:
    """Write an edit's pins, count the active ones, and move the pin revision."""
    return Change(
        key=session.key,
        epoch=session.epoch,
        guards={"pin_rev": session.pin_rev, **(guards or {})},
        sets={"pin_rev": session.pin_rev + 1, "pin_count": edit.active, **(sets or {})},
        pins=edit.changed,
    )


def judgement_change(
    session: Session,
    turns: Sequence[Turn],
    edit: PinEdit,
    *,
    rejudge: TurnRange | None = None,
    amends: IdempotencyRecord | None = None,
) -> Change:
    """Write what a judgement of turns changed, and move the watermark past them.

    With `rejudge` these turns are noted to be judged again by a model, besides those noted already.
    """
    sets: dict[str, Any] = {"judged_through": turns[-1].number}
    if rejudge:
        first = min(rejudge.from_turn, session.rejudge.from_turn if session.rejudge else 1 << 62)
        sets["rejudge"] = TurnRange(first, rejudge.to_turn)
    change = pin_change(session, edit, sets=sets, guards={"judged_through": session.judged_through})
    return replace(change, amends=amends)
