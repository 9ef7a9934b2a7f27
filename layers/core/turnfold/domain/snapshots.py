"""The snapshot of a working memory: everything that stands between a session and its prompts.

It is made when a session rests for long and its items leave the table, and it is what a fork and a
rebuild make first. gzip of one JSON object; times, texts and messages come back as they were.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

    `profile_rev` is the revision of the profile as the session names it. `session` describes the
    session (`portable.session_object`) for the day when the table is lost; `revision` was its own,
    0 in snapshots of an older version.
    """

    profile: Profile
    profile_rev: int
    turns: tuple[Turn, ...]
    summaries: tuple[Summary, ...]
    pins: tuple[Pin, ...]
    session: Mapping[str, Any]
    revision: int = 0

    @property
    def settings(self) -> Settings:
        """The session's settings then."""
        return read_settings(self.session["settings"], Settings())

    @property
    def user_id(self) -> str | None:
        """The session's user."""
        user_id = self.session["user_id"]
        return None if user_id is None else str(user_id)

    @property
    def legal_hold(self) -> bool:
        """Whether the session was under a legal hold."""
        return bool(self.session.get("legal_hold"))

    @property
    def judged_through(self) -> int:
        """How far turns were judged."""
        return int(self.session["judged_through"])

    @property
    def committed_through(self) -> int:
        """The newest turn then."""
        return int(self.session["turns"])

    @property
    def last_sha256(self) -> str:
        """The hash of the newest turn's record then."""
        return str(self.session["last_sha256"])


def pack_snapshot(memory: WorkingMemory) -> bytes:
    """The snapshot as it is stored, with a description of the session for disasters."""
    said = {
        "v": SNAPSHOT_VERSION,
        "session": session_object(memory.session, memory.profile),
        "profile_rev": memory.session.profile_rev,
        "revision": memory.session.revision,
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
            session=session,
            revision=int(said.get("revision", 0)),
        )
    except (OSError, EOFError, KeyError, TypeError) as error:
        raise ValueError("the snapshot is damaged") from error
