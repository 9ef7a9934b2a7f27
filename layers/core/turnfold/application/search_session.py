"""Searching the turns of one session."""

from dataclasses import dataclass
from typing import Any

from turnfold.application.ports.memory import MemoryStore
from turnfold.application.read_memory import require_memory
from turnfold.application.recall import FoundTurn, Mode, Recall
from turnfold.domain.sessions import SessionKey

DEFAULT_HITS = 10
MAX_HITS = 100


@dataclass(frozen=True, slots=True)
class SearchSession:
    """Finds turns of a session, the newest included."""

    store: MemoryStore
    recall: Recall

    def __call__(
        self, key: SessionKey, query: str, limit: int = DEFAULT_HITS, mode: Mode | None = None
    ) -> dict[str, Any]:
        """The contract's answer: the best turns, best first, and the mode that was used.

        Raises `SessionNotFoundError`, `ModelNotConfiguredError`, `ModelFailedError`, `StoreError`.
        """
        self.recall.mode(mode)
        memory = require_memory(self.store, key)
        found = self.recall([memory], query, limit, mode)
        return {"items": [found_view(one) for one in found.turns], "mode": found.mode.value}


def found_view(found: FoundTurn) -> dict[str, Any]:
    """A turn that was found, as the contract shows it."""
    return {
        "session_id": found.session_id,
        "turn": found.turn.number,
        "score": found.score,
        "messages": [dict(one) for one in found.turn.messages],
        "matched_by": list(found.matched_by),
    }
