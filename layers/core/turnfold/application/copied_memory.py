"""The working memory of a copy that ends earlier than its original."""

from collections.abc import Callable
from dataclasses import replace

from turnfold.domain.memory import WorkingMemory
from turnfold.domain.sessions import Session, TurnRange, gaps
from turnfold.domain.turns import Turn


def cut_memory(
    memory: WorkingMemory,
    at_turn: int,
    last_sha256: str,
    read_turns: Callable[[int, int], tuple[Turn, ...]],
) -> WorkingMemory:
    """The memory as it would be had the session ended with that turn.

    Summaries that reach beyond it are undone: the turns before stand word for word again
    (`read_turns` gives them), and compaction folds them anew. Facts that were learned only later
    are left out.
    """
    summaries = tuple(one for one in memory.summaries if one.to_turn <= at_turn)
    pins = tuple(one for one in memory.pins if all(number <= at_turn for number in one.sources))
    there = {turn.number: turn for turn in memory.turns}
    turns: list[Turn] = []
    for run in gaps(((one.from_turn, one.to_turn) for one in summaries), at_turn):
        missing = [n for n in range(run.from_turn, run.to_turn + 1) if n not in there]
        read = read_turns(missing[0], missing[-1]) if missing else ()
        found = there | {turn.number: turn for turn in read}
        turns += [found[number] for number in range(run.from_turn, run.to_turn + 1)]
    session = memory.session
    cut = replace(
        session,
        next_turn=at_turn + 1,
        last_sha256=last_sha256,
        judged_through=min(session.judged_through, at_turn),
        compacted_through=max((one.to_turn for one in summaries), default=0),
        manifest=tuple(one.ref for one in summaries),
        degraded=any(one.degraded for one in summaries),
        rejudge=_clipped(session, at_turn),
        pin_count=len(pins),
    )
    return WorkingMemory(cut, memory.profile, tuple(turns), summaries, pins)


def _clipped(session: Session, at_turn: int) -> TurnRange | None:
    waiting = session.rejudge
    if waiting is None or waiting.from_turn > at_turn:
        return None
    return TurnRange(waiting.from_turn, min(waiting.to_turn, at_turn))
