"""What a `SessionMemory` works with: the service's own use cases, however they are wired."""

from collections.abc import Callable
from dataclasses import dataclass

from turnfold.application.commit_turn import CommitTurn
from turnfold.application.compact_session import CompactSession, Ring
from turnfold.application.judge_now import JudgeNow
from turnfold.application.pins_by_hand import Pins
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.models import TokenCounter
from turnfold.application.read_context import ReadContext
from turnfold.application.read_transcript import Transcript
from turnfold.domain.sessions import SessionKey


@dataclass(frozen=True, slots=True)
class SessionServices:
    """The use cases over one set of adapters; several sessions share them.

    `rung` takes the doorbells that were rung since it was asked last, oldest first; None where a
    compactor elsewhere answers them.
    """

    store: MemoryStore
    transcript: Transcript
    commit: CommitTurn
    context: ReadContext
    pins: Pins
    judge_now: JudgeNow
    compact: CompactSession
    counter: TokenCounter
    clock: Clock
    tenant: str = "local"
    rung: Callable[[], list[tuple[SessionKey, Ring]]] | None = None
    waiting: Callable[[], list[tuple[SessionKey, Ring]]] | None = None

    def drain(self) -> None:
        """Answer every doorbell in this process, oldest first; nothing where others do."""
        while self.rung is not None:
            rings = self.rung()
            if not rings:
                return
            for key, ring in rings:
                self.compact(key, ring)
