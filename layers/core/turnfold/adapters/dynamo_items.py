"""What a session holds (turns, summaries, pins, answers, usage) as items of the table, and back."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from turnfold.adapters.dynamo_attributes import (
    Item,
    document,
    expiry,
    flag,
    item_key,
    moment,
    number,
    read_document,
    read_flag,
    read_moment,
    read_number,
    read_text,
    text,
)
from turnfold.adapters.dynamo_keys import (
    META,
    PIN,
    PROFILE,
    SUMMARY,
    TURN,
    answer_sort_key,
    former_pin_sort_key,
    idempotency_sort_key,
    pin_sort_key,
    summary_sort_key,
    turn_sort_key,
    usage_sort_key,
)
from turnfold.adapters.dynamo_sessions import read_profile, read_session
from turnfold.application.ports.memory import IdempotencyRecord
from turnfold.application.ports.models import ModelAnswer
from turnfold.domain.limits import MAX_INLINE_TURN_BYTES
from turnfold.domain.pins import Pin, PinStatus, Trust
from turnfold.domain.sessions import Profile, Session, SessionKey
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn
from turnfold.domain.usage import Usage


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


def idempotency_item(key: SessionKey, record: IdempotencyRecord) -> Item:
    """A stored answer."""
    return item_key(key, idempotency_sort_key(record.key_hash)) | {
        "key_hash": text(record.key_hash),
        "request_hash": text(record.request_hash),
        "http_status": number(record.status),
        "body": document(record.body),
        **expiry(record.expires_at),
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
        **expiry(expires_at),
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
