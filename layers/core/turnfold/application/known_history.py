"""How much of a client's history a session has, folded turns among it."""

from collections.abc import Sequence

from turnfold.application.read_transcript import Transcript
from turnfold.domain.client_history import known_further, known_through
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.messages import Message

FOLDED_AT_ONCE = 64
"""How many folded turns are looked at before it is asked whether the client goes on from them."""


def known_messages(
    history: Sequence[Message], memory: WorkingMemory, transcript: Transcript
) -> int:
    """How many messages, from the first on, the session has.

    The transcript is only read where the client goes on from the last turn before a fold. Raises
    `StoreError`.
    """
    known = known_through(history, memory.turns)
    here = {turn.number for turn in memory.turns}
    last = memory.session.committed_through
    while 0 < known.turn < last and known.turn + 1 not in here and history[known.messages :]:
        through = min(known.turn + FOLDED_AT_ONCE, last)
        folded = transcript.turns(memory.session, known.turn + 1, through)
        known = known_further(history, known, folded)
        if known.turn < through:
            break
    return known.messages
