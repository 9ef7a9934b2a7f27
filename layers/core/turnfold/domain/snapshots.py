"""The snapshot of a working memory: everything that stands between a session and its prompts.

It is made when a session rests for long and its items leave the table, and it is what a fork and a
rebuild make first. gzip of one JSON object; times, texts and messages come back as they were.
"""

import gzip
import json
from dataclasses import dataclass

from turnfold.domain.errors import InvalidSettingsError
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.pins import Pin
from turnfold.domain.portable import (
    pin_object,
    read_pin_object,
    read_settings,
    read_summary_object,
    read_turn_object,
    session_object,
    summary_object,
    turn_object,
)
from turnfold.domain.sessions import Profile
from turnfold.domain.settings import Settings
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn

SNAPSHOT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The items of a working memory, without the session's own counters, which stay in the table.

    `profile_rev` is the revision of the profile as the session names it. `settings`, `user_id` and
    `judged_through` are for the day when the table is lost.
    """

    profile: Profile
    profile_rev: int
    turns: tuple[Turn, ...]
    summaries: tuple[Summary, ...]
    pins: tuple[Pin, ...]
    settings: Settings
    user_id: str | None
    judged_through: int


def snapshot_of(memory: WorkingMemory) -> Snapshot:
    """The snapshot of a complete working memory."""
    return Snapshot(
        profile=memory.profile,
        profile_rev=memory.session.profile_rev,
        turns=memory.turns,
        summaries=memory.summaries,
        pins=memory.pins,
        settings=memory.session.settings,
        user_id=memory.session.user_id,
        judged_through=memory.session.judged_through,
    )


def pack_snapshot(memory: WorkingMemory) -> bytes:
    """The snapshot as it is stored, with a description of the session for disasters."""
    said = {
        "v": SNAPSHOT_VERSION,
        "session": session_object(memory.session, memory.profile),
        "profile_rev": memory.session.profile_rev,
        "turns": [turn_object(turn) for turn in memory.turns],
        "summaries": [summary_object(summary) for summary in memory.summaries],
        "pins": [pin_object(pin) for pin in memory.pins],
    }
    text = json.dumps(said, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def unpack_snapshot(data: bytes) -> Snapshot:
    """What `pack_snapshot` made. Raises `ValueError` if it is damaged."""
    try:
        said = json.loads(gzip.decompress(data))
        session = said["session"]
        return Snapshot(
            profile=Profile(tuple(session["system"]), session["metadata"]),
            profile_rev=int(said["profile_rev"]),
            turns=tuple(map(read_turn_object, said["turns"])),
            summaries=tuple(map(read_summary_object, said["summaries"])),
            pins=tuple(map(read_pin_object, said["pins"])),
            settings=read_settings(session["settings"], Settings()),
            user_id=session["user_id"],
            judged_through=int(session["judged_through"]),
        )
    except (OSError, EOFError, KeyError, TypeError, InvalidSettingsError) as error:
        raise ValueError("the snapshot is damaged") from error
