"""A session as its item META and its profile as PROFILE, and back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from turnfold.adapters.dynamo_attributes import (
    Attribute,
    Item,
    document,
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
    PROFILE,
    created_key,
    due_shard,
    session_of,
    shard_of,
    tenant_key,
    user_key,
)
from turnfold.domain.sessions import (
    Profile,
    Session,
    SessionKey,
    SessionStatus,
    SummaryRef,
    TurnRange,
)
from turnfold.domain.settings import Settings

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
