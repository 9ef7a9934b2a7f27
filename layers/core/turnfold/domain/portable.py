"""What belongs to a session as JSON, to be carried elsewhere and read again.

Each object says by its `type` what it is: "session", "pin", "summary" or "turn". Exports have them
as lines, and the snapshot of a working memory is made of the same.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from turnfold.domain.pins import Pin, PinStatus, Trust
from turnfold.domain.sessions import Profile, Session
from turnfold.domain.settings import Settings, merge_settings
from turnfold.domain.summaries import Summary
from turnfold.domain.transcript import format_time, parse_time
from turnfold.domain.turns import Turn

FORMAT_VERSION = 1


def session_object(session: Session, profile: Profile) -> dict[str, Any]:
    """A session: what was said about it, and how far it has come."""
    return {
        "type": "session",
        "v": FORMAT_VERSION,
        "session_id": session.key.session_id,
        "user_id": session.user_id,
        "created_at": format_time(session.created_at),
        "updated_at": format_time(session.updated_at),
        "settings": session.settings.to_json(),
        "system": [dict(one) for one in profile.system],
        "metadata": dict(profile.metadata),
        "legal_hold": session.legal_hold,
        "turns": session.committed_through,
        "judged_through": session.judged_through,
        "compacted_through": session.compacted_through,
        "last_sha256": session.last_sha256,
    }


def pin_object(pin: Pin) -> dict[str, Any]:
    """A pin of any status, with its provenance."""
    return {
        "type": "pin",
        "pin_id": pin.pin_id,
        "text": pin.text,
        "tokens": pin.tokens,
        "status": pin.status.value,
        "trust": pin.trust.value,
        "confidence": pin.confidence,
        "sources": [{"turn": number} for number in pin.sources],
        "created_at": format_time(pin.created_at),
        "updated_at": format_time(pin.updated_at),
        "rev": pin.rev,
        "replaces": pin.replaces,
        "folded_from": list(pin.folded_from),
        "reason": pin.reason,
    }


def read_pin_object(said: Mapping[str, Any]) -> Pin:
    """What `pin_object` wrote.

    Raises `ValueError`, `KeyError`, `TypeError` or `OverflowError` for anything else.
    """
    return Pin(
        pin_id=_text(said["pin_id"]),
        text=_text(said["text"]),
        tokens=int(said["tokens"]),
        status=PinStatus(said["status"]),
        trust=Trust(said["trust"]),
        confidence=float(said["confidence"]),
        sources=tuple(int(one["turn"]) for one in said["sources"]),
        created_at=_moment(said["created_at"]),
        updated_at=_moment(said["updated_at"]),
        rev=int(said["rev"]),
        replaces=None if said.get("replaces") is None else _text(said["replaces"]),
        folded_from=tuple(map(_text, said.get("folded_from") or ())),
        reason=None if said.get("reason") is None else _text(said["reason"]),
    )


def summary_object(summary: Summary) -> dict[str, Any]:
    """A summary, with its provenance."""
    return {
        "type": "summary",
        "kind": summary.kind.value,
        "from_turn": summary.from_turn,
        "to_turn": summary.to_turn,
        "level": summary.level,
        "text": summary.text,
        "tokens": summary.tokens,
        "source_tokens": summary.source_tokens,
        "model": summary.model,
        "prompt_version": summary.prompt_version,
        "created_at": format_time(summary.created_at),
        "degraded": summary.degraded,
    }


def read_summary_object(said: Mapping[str, Any]) -> Summary:
    """What `summary_object` wrote. Raises the same as `read_pin_object`."""
    return Summary(
        from_turn=int(said["from_turn"]),
        to_turn=int(said["to_turn"]),
        level=int(said["level"]),
        text=_text(said["text"]),
        tokens=int(said["tokens"]),
        source_tokens=int(said["source_tokens"]),
        model=_text(said["model"]),
        prompt_version=_text(said["prompt_version"]),
        created_at=_moment(said["created_at"]),
        degraded=bool(said["degraded"]),
    )


def turn_object(turn: Turn) -> dict[str, Any]:
    """A turn word for word, with its place in the hash chain."""
    return {
        "type": "turn",
        "turn": turn.number,
        "turn_id": turn.turn_id,
        "committed_at": format_time(turn.committed_at),
        "messages": [dict(one) for one in turn.messages],
        "sha256": turn.sha256,
        "prev_sha256": turn.prev_sha256,
    }


def read_turn_object(said: Mapping[str, Any]) -> Turn:
    """What `turn_object` wrote. Raises the same as `read_pin_object`."""
    return Turn(
        number=int(said["turn"]),
        turn_id=_text(said["turn_id"]),
        committed_at=_moment(said["committed_at"]),
        messages=tuple(said["messages"]),
        sha256=_text(said["sha256"]),
        prev_sha256=_text(said["prev_sha256"]),
    )


def read_settings(said: object, defaults: Settings) -> Settings:
    """Settings of a session object; those that this version does not know are left out.

    Raises `InvalidSettingsError` for a value out of range.
    """
    if not isinstance(said, Mapping):
        return defaults
    known = defaults.to_json()
    return merge_settings(defaults, {name: one for name, one in said.items() if name in known})


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("must be a text")
    return value


def _moment(value: object) -> datetime:
    moment = parse_time(_text(value))
    if moment.tzinfo is None:
        raise ValueError("a time needs a zone")
    moment.astimezone(UTC)  # raises OverflowError at the edges of the calendar
    return moment
