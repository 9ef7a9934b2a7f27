"""A change of one session as operations of one DynamoDB transaction."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from turnfold.adapters.change_rules import MAX_CLOSED_PIECES
from turnfold.adapters.dynamo_attributes import Attribute, Item, item_key, moment, number, text
from turnfold.adapters.dynamo_items import (
    idempotency_item,
    pin_item,
    summary_item,
    turn_item,
    usage_update,
)
from turnfold.adapters.dynamo_keys import (
    DRAFT,
    META,
    draft_sort_key,
    former_pin_sort_key,
    pin_sort_key,
    summary_sort_key,
    turn_sort_key,
)
from turnfold.adapters.dynamo_sessions import (
    SESSION_CODECS,
    profile_item,
    session_attributes,
    session_item,
)
from turnfold.application.ports.memory import Change
from turnfold.domain.open_turn import OpenTurnRef
from turnfold.domain.pins import PinStatus
from turnfold.domain.sessions import Profile, SessionKey, SessionStatus
from turnfold.domain.usage import Usage

ABSENT = "attribute_not_exists(PK)"


@dataclass(frozen=True, slots=True)
class Operation:
    """One write. `part` is what `GuardFailedError` calls it; `request` has the form of `kind`."""

    kind: str
    part: str
    request: dict[str, Any]


def operations_of(change: Change, table: str, now: datetime) -> list[Operation]:
    """The writes of a change, that of META first.

    DynamoDB refuses two operations on one item, so a put stands for itself and for a removal of the
    same item.
    """
    removals = {
        sort_key: Operation(
            "Delete", "items", {"TableName": table, "Key": item_key(change.key, sort_key)}
        )
        for sort_key in _removed(change)
    }
    puts = {
        item["SK"]["S"]: Operation("Put", part, {"TableName": table, "Item": item, **condition})
        for part, item, condition in _put(change, now)
    }
    meta = [] if change.creates else [_on_session(change, table)]
    closing = [] if change.closes is None else closing_operations(change.key, change.closes, table)
    costs = [] if change.usage is None else [_cost(change.key, change.usage, table)]
    return [*meta, *(removals | puts).values(), *closing, *costs]


def _cost(key: SessionKey, usage: Usage, table: str) -> Operation:
    return Operation("Update", "items", usage_update(key, usage, table))


def closing_operations(key: SessionKey, ref: OpenTurnRef, table: str) -> list[Operation]:
    """The removal of an open turn that is still in that state."""
    conditions = {
        "ConditionExpression": "draft_id = :draft AND pieces = :pieces",
        "ExpressionAttributeValues": {":draft": text(ref.draft_id), ":pieces": number(ref.pieces)},
    }
    head = {"TableName": table, "Key": item_key(key, DRAFT), **conditions}
    pieces = range(1, min(ref.pieces, MAX_CLOSED_PIECES) + 1)
    return [
        Operation("Delete", "open_turn", head),
        *(
            Operation(
                "Delete",
                "items",
                {"TableName": table, "Key": item_key(key, draft_sort_key(piece))},
            )
            for piece in pieces
        ),
    ]


def live_check(key: SessionKey, epoch: str, table: str) -> dict[str, Any]:
    """A condition of a transaction that the session has that epoch and is live, or will be."""
    return {
        "TableName": table,
        "Key": item_key(key, META),
        "ConditionExpression": "#status IN (:live, :rebuilding) AND epoch = :epoch",
        "ExpressionAttributeNames": {"#status": "status"},
        "ExpressionAttributeValues": {
            ":live": text(SessionStatus.LIVE),
            ":rebuilding": text(SessionStatus.REBUILDING),
            ":epoch": text(epoch),
        },
    }


def _put(change: Change, now: datetime) -> list[tuple[str, Item, Mapping[str, Any]]]:
    """Part, item and condition of all that is put."""
    absent = {"ConditionExpression": ABSENT}
    puts: list[tuple[str, Item, Mapping[str, Any]]] = []
    if change.creates is not None:
        # The profile is always there, so that a reader can tell that it did not see it yet.
        profile, rev = change.profile or Profile(), change.creates.profile_rev
        puts.append(("session", session_item(change.creates), absent))
        puts.append(("items", profile_item(change.key, profile, rev), {}))
    elif change.profile is not None:
        rev = change.sets["profile_rev"]
        puts.append(("items", profile_item(change.key, change.profile, rev), {}))
    if change.idempotency is not None:
        absent_or_expired = {
            # DynamoDB removes expired items late, up to days.
            "ConditionExpression": f"{ABSENT} OR expires_at <= :now",
            "ExpressionAttributeValues": {":now": moment(now)},
        }
        item = idempotency_item(change.key, change.idempotency)
        puts.append(("idempotency", item, absent_or_expired))
    if change.amends is not None:
        puts.append(("items", idempotency_item(change.key, change.amends), {}))
    turns = (change.turn, *change.more_turns) if change.turn is not None else change.more_turns
    puts.extend(("turn", turn_item(change.key, turn), absent) for turn in turns)
    puts.extend(("items", summary_item(change.key, one), {}) for one in change.summaries)
    puts.extend(("items", pin_item(change.key, one), {}) for one in change.pins)
    return puts


def _removed(change: Change) -> list[str]:
    """Sort keys of all that is removed."""
    sort_keys = [turn_sort_key(one) for one in change.removes_turns]
    sort_keys += [summary_sort_key(one) for one in change.removes_summaries]
    for pin_id in change.removes_pins:
        sort_keys += [pin_sort_key(pin_id), former_pin_sort_key(pin_id)]
    for pin in change.pins:
        active = pin.status is PinStatus.ACTIVE
        other = former_pin_sort_key if active else pin_sort_key
        sort_keys.append(other(pin.pin_id))
    return sort_keys


def _on_session(change: Change, table: str) -> Operation:
    """The update of META under the guards of the change; only a check if it sets nothing."""
    names = {"#status": "status", "#epoch": "epoch"}
    values: dict[str, Attribute] = {
        ":live": text(SessionStatus.LIVE),
        ":epoch": text(change.epoch),
    }
    conditions = ["#status = :live", "#epoch = :epoch"]
    for name, value in change.guards.items():
        names[f"#{name}"] = name
        if value is None:
            conditions.append(f"attribute_not_exists(#{name})")
        else:
            values[f":is_{name}"] = SESSION_CODECS[name].write(value)
            conditions.append(f"#{name} = :is_{name}")
    sets, removes = [], []
    for name, attribute in session_attributes(change.key, change.sets).items():
        names[f"#{name}"] = name
        if attribute is None:
            removes.append(f"#{name}")
        else:
            values[f":to_{name}"] = attribute
            sets.append(f"#{name} = :to_{name}")
    clauses = []
    if change.visible:
        names["#revision"] = "revision"
        values[":one"] = number(1)
        clauses.append("ADD #revision :one")
    if sets:
        clauses.append(f"SET {', '.join(sets)}")
    if removes:
        clauses.append(f"REMOVE {', '.join(removes)}")
    request: dict[str, Any] = {
        "TableName": table,
        "Key": item_key(change.key, META),
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }
    if not clauses:
        return Operation("ConditionCheck", "session", request)
    return Operation("Update", "session", request | {"UpdateExpression": " ".join(clauses)})
