"""A session: who owns it, how far it has come, and what is said to the model before everything."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from turnfold.domain.errors import InvalidIdError
from turnfold.domain.limits import MAX_ID_CHARACTERS
from turnfold.domain.messages import Message
from turnfold.domain.settings import Settings

FIRST_PREV_SHA256 = "0" * 64
"""What the first record of a transcript names as its predecessor."""

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def check_id(value: str, what: str) -> str:
    """The id itself, if it has 1 to 256 characters, is not blank and has no control characters."""
    if not 1 <= len(value) <= MAX_ID_CHARACTERS or not value.strip():
        raise InvalidIdError(f"{what} must have 1 to {MAX_ID_CHARACTERS} characters, not all blank")
    if _CONTROLS.search(value) or any(unicodedata.category(one) == "Cc" for one in value):
        raise InvalidIdError(f"{what} must not contain control characters")
    return value


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Names one session of one tenant. Equal session ids of two tenants are two sessions."""

    tenant: str
    session_id: str


class SessionStatus(StrEnum):
    """The life of a session.

    `EXPIRED`: its working memory is put away in the archive, until the next read or commit.
    `RESTORING`: it is on its way back. `FORKING`: it is a copy that is being made. `REBUILDING`:
    its working memory is lost and is being made anew from the transcript. Of these two there is
    nothing to be read yet.
    """

    LIVE = "live"
    EXPIRED = "expired"
    RESTORING = "restoring"
    FORKING = "forking"
    REBUILDING = "rebuilding"
    ERASING = "erasing"


@dataclass(frozen=True, slots=True)
class SummaryRef:
    """A live summary as the session's manifest names it: coverage in turn numbers, and level."""

    from_turn: int
    to_turn: int
    level: int


@dataclass(frozen=True, slots=True)
class TurnRange:
    """Turn numbers, both inclusive."""

    from_turn: int
    to_turn: int


def gaps(covered: Iterable[tuple[int, int]], last: int, *, first: int = 1) -> tuple[TurnRange, ...]:
    """The runs of numbers from `first` to `last` that no range covers; all ends are inclusive."""
    found: list[TurnRange] = []
    reached = first - 1
    for start, end in (*sorted(covered), (last + 1, last + 1)):
        if start > reached + 1:
            found.append(TurnRange(reached + 1, start - 1))
        reached = max(reached, end)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Session:
    """The counters and watermarks of one session; one small item, read and written by every commit.

    `epoch` tells a session from an earlier one of the same id that was erased. `revision` grows
    with every change that a reader could see. `manifest` lists the live summaries in order;
    together with the watermarks it says which items a complete read must hold.

    `archived_through` is the last turn that stands in a segment of the transcript. `snapshot` names
    the object that holds the working memory while it is put away, `restored_at` is when it last
    came back. `due_at` is when the sweeper looks at the session: soon while work is pending, else
    at `expires_at`. `rebuild` asks the compactor to make working memory anew. `erasure_id` and
    `erasing_since` are those of the erasure under way; a session under `legal_hold` is not erased.
    """

    key: SessionKey
    epoch: str
    created_at: datetime
    updated_at: datetime
    settings: Settings = field(default_factory=Settings)
    status: SessionStatus = SessionStatus.LIVE
    user_id: str | None = None
    next_turn: int = 1
    judged_through: int = 0
    compacted_through: int = 0
    manifest: tuple[SummaryRef, ...] = ()
    degraded: bool = False
    rejudge: TurnRange | None = None
    pins_settled_rev: int = 0
    revision: int = 1
    summary_rev: int = 0
    pin_rev: int = 0
    pin_count: int = 0
    profile_rev: int = 1
    system_sha256: str = ""
    last_sha256: str = FIRST_PREV_SHA256
    due_at: datetime | None = None
    sweeps: int = 0
    archived_through: int = 0
    snapshot: str | None = None
    restored_at: datetime | None = None
    legal_hold: bool = False
    erasure_id: str | None = None
    erasing_since: datetime | None = None
    rebuild: bool = False

    @property
    def etag(self) -> str:
        """Tells apart all states that a reader could see, also after an erasure."""
        return f"{self.epoch}.{self.revision}"

    @property
    def committed_through(self) -> int:
        """The newest turn's number; 0 before the first commit."""
        return self.next_turn - 1

    @property
    def head_end(self) -> int:
        """The last turn of the head.

        A later, larger `head_size` does not bring folded turns back: the head ends before the first
        summary at the latest.
        """
        end = min(self.settings.head_size, self.committed_through)
        return min(end, self.manifest[0].from_turn - 1) if self.manifest else end

    @property
    def tail_start(self) -> int:
        """The first turn of the tail. Folded turns do not come back when `tail_size` grows."""
        newest = self.committed_through - self.settings.tail_size + 1
        return max(self.head_end + 1, self.compacted_through + 1, newest)

    @property
    def raw_ranges(self) -> tuple[TurnRange, ...]:
        """The turns that stand word for word: all that no summary covers, ascending."""
        return gaps(((ref.from_turn, ref.to_turn) for ref in self.manifest), self.committed_through)

    @property
    def is_away(self) -> bool:
        """Whether working memory is not in the table."""
        return self.status in (SessionStatus.EXPIRED, SessionStatus.RESTORING)

    @property
    def is_listed(self) -> bool:
        """Whether lists show the session."""
        return self.status is SessionStatus.LIVE or self.is_away

    def is_due_later_than(self, moment: datetime) -> bool:
        """Whether the sweeper would look at the session only after that time, or never."""
        return self.due_at is None or self.due_at > moment

    @property
    def expires_at(self) -> datetime:
        """When working memory may be put away: counted from the last commit, by session.

        A read that brought it back counts as well, or it would be put away again at once.
        """
        used_at = max(self.updated_at, self.restored_at or self.updated_at)
        return used_at + timedelta(days=self.settings.expire_days)


@dataclass(frozen=True, slots=True)
class Profile:
    """What changes rarely about a session: system messages and metadata."""

    system: tuple[Message, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
