"""Domain objects as items of the table, and back.

Whatever a user can shape (messages, metadata, settings, a stored answer) is one JSON string, never
a native map: numbers keep their type (DynamoDB has only decimals), member order stays, nesting does
not count, and a text is byte-equal. Times are RFC 3339 in UTC with microseconds, so they sort as
texts.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from turnfold.adapters.dynamo_keys import (
    META,
    PIN,
    PROFILE,
    SUMMARY,
    TURN,
    answer_sort_key,
    created_key,
    due_shard,
    former_pin_sort_key,
    idempotency_sort_key,
    partition_key,
    pin_sort_key,
    session_of,
    shard_of,
    summary_sort_key,
    tenant_key,
    turn_sort_key,
    usage_sort_key,
    user_key,
)
from turnfold.application.ports.memory import IdempotencyRecord
from turnfold.application.ports.models import ModelAnswer
from turnfold.domain.limits import MAX_INLINE_TURN_BYTES
from turnfold.domain.pins import Pin, PinStatus, Trust
from turnfold.domain.sessions import (
    Profile,
    Session,
    SessionKey,
    SessionStatus,
    SummaryRef,
    TurnRange,
)
from turnfold.domain.settings import Settings
from turnfold.domain.summaries import Summary
from turnfold.domain.transcript import format_time, parse_time
from turnfold.domain.turns import Turn
from turnfold.domain.usage import Usage

type Attribute = dict[str, Any]
"""A value as DynamoDB's protocol has it: `{"S": "text"}`."""

type Item = dict[str, Attribute]

UNSTORED_SETTINGS: Mapping[str, Any] = {
    "policy": {"name": "progressive"},
    "head_size": 1,
    "tail_size": 2,
    "window_max_size": 5,
    "window_token_threshold": 3000,
    "round_token_threshold": 1000,
    "max_pin_count": 10,
    "max_pin_tokens": 300,
    "expire_days": 7,
    "schedule": "tiered",
    "pin_mode": "async",
    "auto_compression": True,
    "strategies": (
        "PIN_JUDGMENT",
        "CURRENT_ROUND_SUMMARIZATION",
        "HISTORY_SUMMARIZATION",
        "PIN_AGGREGATION",
    ),
    "memory_role": "system",
    "model": None,
}
"""A setting of this value is left out of META, which each commit rewrites and pays for by started
kilobyte. This is part of the stored form and never changes, whatever defaults the domain has."""

_SETTING_NAMES = frozenset(one.name for one in fields(Settings))


def text(value: str) -> Attribute:
    """A text."""
    return {"S": str(value)}


def number(value: int) -> Attribute:
    """A whole number."""
    return {"N": str(value)}


def flag(value: bool) -> Attribute:  # noqa: FBT001 - it is the value
    """True or false."""
    return {"BOOL": value}


def moment(value: datetime) -> Attribute:
    """A time."""
    return {"S": format_time(value)}


def document(value: object) -> Attribute:
    """Any JSON value as a string. Raises `ValueError` for NaN and infinities."""
    return {
        "S": json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")),
    }


def read_text(attribute: Mapping[str, Any]) -> str:
    """What `text` wrote."""
    return str(attribute["S"])


def read_number(attribute: Mapping[str, Any]) -> int:
    """What `number` wrote."""
    return int(attribute["N"])


def read_flag(attribute: Mapping[str, Any]) -> bool:
    """What `flag` wrote."""
    return bool(attribute["BOOL"])


def read_moment(attribute: Mapping[str, Any]) -> datetime:
    """What `moment` wrote."""
    return parse_time(attribute["S"])


def read_document(attribute: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON can be anything
    """What `document` wrote."""
    return json.loads(attribute["S"])


def item_key(key: SessionKey, sort_key: str) -> Item:
    """The primary key of one item of a session."""
    return {"PK": text(partition_key(key)), "SK": text(sort_key)}


# ----------------------------------------------------------------------------------- the session


@dataclass(frozen=True, slots=True)
class _Codec:
    write: Callable[[Any], Attribute]
    read: Callable[[Mapping[str, Any]], Any]


def _write_settings(settings: Settings) -> Attribute:
    stored = settings.to_json()
    for name, value in UNSTORED_SETTINGS.items():
        if getattr(settings, name) == value:
            del stored[name]
    return document(stored)


def _read_settings(attribute: Mapping[str, Any]) -> Settings:
    stored = {**UNSTORED_SETTINGS, **read_document(attribute)}
    # A later version may have stored a setting that this one does not know.
    known = {name: value for name, value in stored.items() if name in _SETTING_NAMES}
    known |= {"strategies": tuple(known["strategies"]), "policy": dict(known["policy"])}
    return Settings(**known)


def _write_manifest(manifest: tuple[SummaryRef, ...]) -> Attribute:
    return document([[ref.from_turn, ref.to_turn, ref.level] for ref in manifest])


def _read_manifest(attribute: Mapping[str, Any]) -> tuple[SummaryRef, ...]:
    return tuple(SummaryRef(*ref) for ref in read_document(attribute))


def _write_range(turns: TurnRange) -> Attribute:
    return document([turns.from_turn, turns.to_turn])


def _read_range(attribute: Mapping[str, Any]) -> TurnRange:
    return TurnRange(*read_document(attribute))


def _read_status(attribute: Mapping[str, Any]) -> SessionStatus:
    return SessionStatus(attribute["S"])


_TEXT = _Codec(text, read_text)
_NUMBER = _Codec(number, read_number)
_MOMENT = _Codec(moment, read_moment)
_FLAG = _Codec(flag, read_flag)

SESSION_CODECS: Mapping[str, _Codec] = {
    "epoch": _TEXT,
    "created_at": _MOMENT,
    "updated_at": _MOMENT,
    "settings": _Codec(_write_settings, _read_settings),
    "status": _Codec(text, _read_status),
    "user_id": _TEXT,
    "next_turn": _NUMBER,
    "judged_through": _NUMBER,
    "compacted_through": _NUMBER,
    "manifest": _Codec(_write_manifest, _read_manifest),
    "degraded": _FLAG,
    "rejudge": _Codec(_write_range, _read_range),
    "pins_settled_rev": _NUMBER,
    "revision": _NUMBER,
    "summary_rev": _NUMBER,
    "pin_rev": _NUMBER,
    "pin_count": _NUMBER,
    "profile_rev": _NUMBER,
    "system_sha256": _TEXT,
    "last_sha256": _TEXT,
    "due_at": _MOMENT,
    "sweeps": _NUMBER,
    "archived_through": _NUMBER,
    "snapshot": _TEXT,
    "restored_at": _MOMENT,
    "legal_hold": _FLAG,
    "erasure_id": _TEXT,
    "erasing_since": _MOMENT,
    "rebuild": _FLAG,
}
"""Every field of a `Session` but its key, each as an attribute of the same name. None is written by
leaving the attribute out."""


def session_attributes(key: SessionKey, values: Mapping[str, Any]) -> dict[str, Attribute | None]:
    """The attributes of META for some fields of a session; None for those to remove.

    With the fields come the attributes of the sparse indexes that depend on them: `due_shard` is
    there as long as `due_at` is, `user_key` as long as there is a user.
    """
    attributes: dict[str, Attribute | None] = {
        name: None if value is None else SESSION_CODECS[name].write(value)
        for name, value in values.items()
    }
    if "due_at" in values:
        due = values["due_at"] is not None
        attributes["due_shard"] = text(due_shard(shard_of(key))) if due else None
    if "user_id" in values:
        user = values["user_id"]
        attributes["user_key"] = None if user is None else text(user_key(key.tenant, user))
    return attributes


def session_item(session: Session) -> Item:
    """META of a new session."""
    values = {name: getattr(session, name) for name in SESSION_CODECS}
    attributes = session_attributes(session.key, values) | {
        "tenant_key": text(tenant_key(session.key.tenant)),
        "created_key": text(created_key(session.key, session.created_at)),
    }
    written = {name: one for name, one in attributes.items() if one is not None}
    return item_key(session.key, META) | written


def read_session(item: Mapping[str, Any]) -> Session:
    """The session of a META item. What an older version did not store has its default."""
    values = {
        name: codec.read(item[name]) for name, codec in SESSION_CODECS.items() if name in item
    }
    return Session(key=session_of(item["PK"]["S"]), **values)


def profile_item(key: SessionKey, profile: Profile, rev: int) -> Item:
    """PROFILE, with the revision by which a reader knows that it belongs to META."""
    return item_key(key, PROFILE) | {
        "system": document(profile.system),
        "metadata": document(profile.metadata),
        "rev": number(rev),
    }


def read_profile(item: Mapping[str, Any]) -> tuple[Profile, int]:
    """A profile and its revision."""
    system, metadata = read_document(item["system"]), read_document(item["metadata"])
    return Profile(system=tuple(system), metadata=metadata), read_number(item["rev"])


# ----------------------------------------------------------------------------------------- turns


@dataclass(frozen=True, slots=True)
class ArchivedTurn:
    """A turn whose messages are too large for the table: they are read from its record."""

    number: int
    turn_id: str
    sha256: str


def turn_item(key: SessionKey, turn: Turn) -> Item:
    """A turn; over `MAX_INLINE_TURN_BYTES` without its messages and `archived` says so."""
    item = item_key(key, turn_sort_key(turn.number)) | {
        "turn": number(turn.number),
        "turn_id": text(turn.turn_id),
        "committed_at": moment(turn.committed_at),
        "sha256": text(turn.sha256),
        "prev_sha256": text(turn.prev_sha256),
    }
    messages = document(turn.messages)
    if len(messages["S"].encode()) > MAX_INLINE_TURN_BYTES:
        return item | {"archived": flag(True)}  # noqa: FBT003 - it is the value
    return item | {"messages": messages}


def read_turn(item: Mapping[str, Any]) -> Turn | ArchivedTurn:
    """A turn, or where its messages are."""
    turn, turn_id = read_number(item["turn"]), read_text(item["turn_id"])
    if "archived" in item:
        return ArchivedTurn(turn, turn_id, read_text(item["sha256"]))
    return Turn(
        number=turn,
        turn_id=turn_id,
        committed_at=read_moment(item["committed_at"]),
        messages=tuple(read_document(item["messages"])),
        sha256=read_text(item["sha256"]),
        prev_sha256=read_text(item["prev_sha256"]),
    )


# --------------------------------------------------------------------------- summaries and pins


def summary_item(key: SessionKey, summary: Summary) -> Item:
    """A summary."""
    return item_key(key, summary_sort_key(summary.ref)) | {
        "from_turn": number(summary.from_turn),
        "to_turn": number(summary.to_turn),
        "level": number(summary.level),
        "text": text(summary.text),
        "tokens": number(summary.tokens),
        "source_tokens": number(summary.source_tokens),
        "model": text(summary.model),
        "prompt_version": text(summary.prompt_version),
        "created_at": moment(summary.created_at),
        "degraded": flag(summary.degraded),
    }


def read_summary(item: Mapping[str, Any]) -> Summary:
    """What `summary_item` wrote."""
    return Summary(
        from_turn=read_number(item["from_turn"]),
        to_turn=read_number(item["to_turn"]),
        level=read_number(item["level"]),
        text=read_text(item["text"]),
        tokens=read_number(item["tokens"]),
        source_tokens=read_number(item["source_tokens"]),
        model=read_text(item["model"]),
        prompt_version=read_text(item["prompt_version"]),
        created_at=read_moment(item["created_at"]),
        degraded=read_flag(item["degraded"]),
    )


def pin_item(key: SessionKey, pin: Pin) -> Item:
    """A pin, in working memory only while it is active."""
    sort_key = pin_sort_key if pin.status is PinStatus.ACTIVE else former_pin_sort_key
    item = item_key(key, sort_key(pin.pin_id)) | {
        "pin_id": text(pin.pin_id),
        "text": text(pin.text),
        "tokens": number(pin.tokens),
        "status": text(pin.status),
        "trust": text(pin.trust),
        # A document, since DynamoDB's decimals would not give the same float back.
        "confidence": document(pin.confidence),
        "sources": document(pin.sources),
        "created_at": moment(pin.created_at),
        "updated_at": moment(pin.updated_at),
        "rev": number(pin.rev),
        "folded_from": document(pin.folded_from),
    }
    if pin.replaces is not None:
        item["replaces"] = text(pin.replaces)
    if pin.reason is not None:
        item["reason"] = text(pin.reason)
    return item


def read_pin(item: Mapping[str, Any]) -> Pin:
    """What `pin_item` wrote."""
    return Pin(
        pin_id=read_text(item["pin_id"]),
        text=read_text(item["text"]),
        tokens=read_number(item["tokens"]),
        status=PinStatus(item["status"]["S"]),
        trust=Trust(item["trust"]["S"]),
        confidence=read_document(item["confidence"]),
        sources=tuple(read_document(item["sources"])),
        created_at=read_moment(item["created_at"]),
        updated_at=read_moment(item["updated_at"]),
        rev=read_number(item["rev"]),
        replaces=read_text(item["replaces"]) if "replaces" in item else None,
        folded_from=tuple(read_document(item["folded_from"])),
        reason=read_text(item["reason"]) if "reason" in item else None,
    )


# ---------------------------------------------------------------------------- items that expire


def idempotency_item(key: SessionKey, record: IdempotencyRecord) -> Item:
    """A stored answer. It expires by `expires_at`; `ttl` only lets DynamoDB tidy up."""
    return item_key(key, idempotency_sort_key(record.key_hash)) | {
        "key_hash": text(record.key_hash),
        "request_hash": text(record.request_hash),
        "http_status": number(record.status),
        "body": document(record.body),
        **_expiry(record.expires_at),
    }


def read_idempotency(item: Mapping[str, Any]) -> IdempotencyRecord:
    """What `idempotency_item` wrote; the reader checks whether it has expired."""
    return IdempotencyRecord(
        key_hash=read_text(item["key_hash"]),
        request_hash=read_text(item["request_hash"]),
        status=read_number(item["http_status"]),
        body=read_document(item["body"]),
        expires_at=read_moment(item["expires_at"]),
    )


def answer_item(key: SessionKey, step_id: str, answer: ModelAnswer, expires_at: datetime) -> Item:
    """A paid model answer."""
    return item_key(key, answer_sort_key(step_id)) | {
        "answer": document(asdict(answer)),
        **_expiry(expires_at),
    }


def read_answer(item: Mapping[str, Any]) -> tuple[ModelAnswer, datetime]:
    """A model answer and when it expires."""
    return ModelAnswer(**read_document(item["answer"])), read_moment(item["expires_at"])


def usage_update(key: SessionKey, usage: Usage, table: str) -> dict[str, Any]:
    """An update that adds to what a step by a model has cost."""
    return {
        "TableName": table,
        "Key": item_key(key, usage_sort_key(usage.step, usage.model)),
        "UpdateExpression": (
            "SET step = :step, model = :model"
            " ADD calls :calls, prompt_tokens :prompt, completion_tokens :completion"
        ),
        "ExpressionAttributeValues": {
            ":step": text(usage.step),
            ":model": text(usage.model),
            ":calls": number(usage.calls),
            ":prompt": number(usage.prompt_tokens),
            ":completion": number(usage.completion_tokens),
        },
    }


def read_usage(item: Mapping[str, Any]) -> Usage:
    """What the updates of `usage_update` have made."""
    return Usage(
        step=read_text(item["step"]),
        model=read_text(item["model"]),
        calls=read_number(item["calls"]),
        prompt_tokens=read_number(item["prompt_tokens"]),
        completion_tokens=read_number(item["completion_tokens"]),
    )


def _expiry(expires_at: datetime) -> Item:
    return {"expires_at": moment(expires_at), "ttl": number(int(expires_at.timestamp()) + 1)}


# ------------------------------------------------------------------------------- working memory


@dataclass(frozen=True, slots=True)
class MemoryItems:
    """The items that a query over working memory found, by kind."""

    session: Session | None
    profile: Profile
    profile_rev: int
    turns: list[Turn]
    archived: list[ArchivedTurn]
    summaries: list[Summary]
    pins: list[Pin]


def read_memory(items: list[dict[str, Any]]) -> MemoryItems:
    """Sort the items of a session by kind."""
    session, profile, profile_rev = None, Profile(), 0
    turns: list[Turn] = []
    archived: list[ArchivedTurn] = []
    summaries: list[Summary] = []
    pins: list[Pin] = []
    for item in items:
        sort_key = item["SK"]["S"]
        if sort_key == META:
            session = read_session(item)
        elif sort_key == PROFILE:
            profile, profile_rev = read_profile(item)
        elif sort_key.startswith(TURN):
            turn = read_turn(item)
            archived.append(turn) if isinstance(turn, ArchivedTurn) else turns.append(turn)
        elif sort_key.startswith(SUMMARY):
            summaries.append(read_summary(item))
        elif sort_key.startswith(PIN):
            pins.append(read_pin(item))
    return MemoryItems(session, profile, profile_rev, turns, archived, summaries, pins)
