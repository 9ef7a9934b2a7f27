"""Reading a live session's working memory."""

from turnfold.application.ports.memory import MemoryStore
from turnfold.domain.errors import SessionNotFoundError
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.sessions import SessionKey, SessionStatus


def require_memory(store: MemoryStore, key: SessionKey) -> WorkingMemory:
    """The working memory. Raises `SessionNotFoundError` if there is none, or it is being erased."""
    memory = store.load(key)
    if memory is None or memory.session.status is not SessionStatus.LIVE:
        raise SessionNotFoundError("no such session")
    return memory
