"""Files that an export is handed out as."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from turnfold.domain.sessions import SessionKey


@dataclass(frozen=True, slots=True)
class Link:
    """Where a file can be fetched without credentials, until when."""

    url: str
    expires_at: datetime


class ExportFiles(Protocol):
    """Files that are made to be fetched soon; they are removed by themselves after a day."""

    def store(
        self, key: SessionKey, name: str, chunks: Iterable[bytes], earlier: str | None = None
    ) -> Link:
        """Store the chunks as one file of a session, holding few of them at a time.

        Before them comes what an earlier file of the session holds, if one is named. Raises
        `InvalidCursorError` if that is gone.
        """
        ...
