"""The unit that a summary is made from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """What one speaker said in one piece.

    `speaker` is "user", "assistant", "tool" or "summary" (an earlier summary that is folded again);
    `turn` is the number of the turn it comes from, None where it stands for several.
    """

    speaker: str
    text: str
    turn: int | None = None
