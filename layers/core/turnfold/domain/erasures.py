"""Erasures: what was asked to be removed, how far that is, and the receipt that stays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from turnfold.domain.sessions import SessionKey
from turnfold.domain.transcript import format_time, sha256_of


class ErasureStatus(StrEnum):
    """Whether anything is left."""

    ERASING = "erasing"
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class Removed:
    """How much was removed.

    `items` of the table; `objects` of the bucket, with all their `versions` (delete markers count
    as versions); `vectors` are those of the items and objects that held vectors of the search
    index: an item those of one turn, an object those of many.
    """

    items: int = 0
    objects: int = 0
    versions: int = 0
    vectors: int = 0


@dataclass(frozen=True, slots=True)
class UserErasure:
    """Names the erasure of a user."""

    tenant: str
    erasure_id: str


type ArchiveTask = SessionKey | UserErasure
"""What the archivist is rung for; what there is to do is read from the table."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """The erasure of one session, or of all sessions of one user.

    Once it is done it names neither: what is left is a receipt without personal data. While it is
    at work, `user_id` is that of a user's erasure, `listed` says that all sessions of that user are
    marked, and `open_sessions` counts those that are marked and not gone yet.
    """

    tenant: str
    erasure_id: str
    requested_at: datetime
    status: ErasureStatus = ErasureStatus.ERASING
    finished_at: datetime | None = None
    removed: Removed = field(default_factory=Removed)
    user_id: str | None = None
    listed: bool = True
    open_sessions: int = 1

    def receipt(self) -> Mapping[str, Any]:
        """The receipt as the contract shows it.

        `sha256` is that of the canonical JSON of the other members, so that a copy of a receipt can
        be told to be unchanged.
        """
        said = {
            "erasure_id": self.erasure_id,
            "status": self.status.value,
            "requested_at": format_time(self.requested_at),
            "finished_at": None if self.finished_at is None else format_time(self.finished_at),
            "removed": {
                "items": self.removed.items,
                "objects": self.removed.objects,
                "versions": self.removed.versions,
                "vectors": self.removed.vectors,
            },
        }
        return said | {"sha256": sha256_of(said)}
