"""Searching the turns of a tenant's sessions, or of one user's."""

from dataclasses import dataclass
from typing import Any

from turnfold.application.ports.memory import MemoryStore
from turnfold.application.read_pieces import in_parallel
from turnfold.application.recall import Mode, Recall
from turnfold.application.search_session import DEFAULT_HITS, found_view
from turnfold.domain.sessions import SessionStatus

SESSIONS_PER_SEARCH = 20
"""The newest sessions first; `next_position` leads to the ones before. Each costs a few calls."""


@dataclass(frozen=True, slots=True)
class SearchTenant:
    """Finds turns across sessions, which are one collection to the ranking."""

    store: MemoryStore
    recall: Recall

    def __call__(
        self,
        tenant: str,
        user_id: str | None,
        query: str,
        limit: int = DEFAULT_HITS,
        mode: Mode | None = None,
        position: str | None = None,
    ) -> tuple[dict[str, Any], str | None]:
        """The answer, and where older sessions begin that it does not cover (None: none are left).

        Raises `ModelNotConfiguredError`, `ModelFailedError`, `StoreError`.
        """
        self.recall.mode(mode)
        page = self.store.list_sessions(tenant, user_id, SESSIONS_PER_SEARCH, position)
        loaded = in_parallel(self.store.load, [session.key for session in page.items])
        memories = [
            memory
            for memory in loaded
            if memory is not None and memory.session.status is SessionStatus.LIVE
        ]
        found = self.recall(memories, query, limit, mode, tolerant=True)
        answer = {
            "items": [found_view(one) for one in found.turns],
            "mode": found.mode.value,
            "sessions_searched": len(memories) - found.unread_sessions,
            "sessions_unread": found.unread_sessions,
        }
        return answer, page.next_position
