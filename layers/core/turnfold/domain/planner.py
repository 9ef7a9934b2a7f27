"""The planner: which piece of background work a session needs next (design, section 6).

A pure function of working memory and settings. "Over" a limit means strictly more. The window's
size counts messages: a raw turn counts its messages, a summary counts one.

The order of work is: judge turns for pins, fold pins, summarise long turns, fold the window. No
turn is summarised before it was judged.

Schedule `whole` is mm-memory's own: every long turn becomes a round summary, and when the window is
over a limit all of it becomes one history summary.

Schedule `tiered` keeps older history coarser and newer history finer. When the window is over a
limit, its oldest fresh entries (raw turns and round summaries) become a history summary, down to a
low-water mark of half the limits. At most `max_histories` history summaries stand side by side:
then the newest of them takes up the fresh entries, until it would cover as many turns as the one
before it; then two neighbours become one, so that none covers less than a newer one. So the older a
turn is the more rarely it is folded again, one model call serves several turns, and a long turn
that is folded anyway gets no summary of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from turnfold.domain.measure import Measure
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.pins import Pin
from turnfold.domain.regions import Entry, first_turn, last_turn, split_regions
from turnfold.domain.settings import Settings
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn

BATCH_TURNS = 16
"""Turns judged in one call, and the backlog at which work no longer waits for a burst to end."""

BATCH_TOKENS = 6000
"""Tokens of turns judged in one call; a single longer turn is judged alone."""

MAX_FOLD_ENTRIES = 60
"""Entries folded at once: their deletions fit one transaction of 100 operations."""

MAX_FOLD_TOKENS = 24_000
"""Tokens folded at once, as source of one model call; a single longer turn is folded alone."""

MAX_FOLD_PINS = 25
"""Pins folded at once, the oldest first. They may become one fewer, and each of all these is two of
the 100 operations of a transaction."""

MAX_HISTORIES = 4
"""History summaries side by side, at most: more tiers than this are no finer to a reader."""

ROUND_SUMMARY_TOKENS = 200
ROUND_SHARE = 5
"""A round summary has at most 200 tokens, or a fifth of its source where that is more."""

HISTORY_SUMMARY_TOKENS = 400
HISTORY_SHARE = 2
"""A history summary may keep more: nothing stands behind it but the archive. It reaches its full
size within some thirty short turns, and from then on the context does not grow any more."""

MAX_SUMMARY_TOKENS = 500
"""However long its source is: the window's tokens stay flat while the conversation goes on."""


@dataclass(frozen=True, slots=True)
class JudgeTurns:
    """Judge these turns for pins."""

    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class FoldPins:
    """Fold these active pins into fewer."""

    pins: tuple[Pin, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Replace these contiguous window entries by one summary of at most `max_tokens` tokens."""

    entries: tuple[Entry, ...]
    max_tokens: int

    @property
    def coverage(self) -> tuple[int, int]:
        """The first and the last turn that the summary will stand for."""
        return first_turn(self.entries[0]), last_turn(self.entries[-1])

    @property
    def level(self) -> int:
        """1 for a single turn, else one more than the highest source, and at least 2."""
        if len(self.entries) == 1 and isinstance(self.entries[0], Turn):
            return 1
        return max(2, *(1 + one.level for one in self.entries if isinstance(one, Summary)), 2)


type Step = JudgeTurns | FoldPins | Fold


def summary_cap(
    settings: Settings, source_tokens: int, replaced_tokens: int, *, single: bool = False
) -> int:
    """The most tokens that a summary may have, but for the identifiers appended to it.

    `source_tokens` is what the original turns cost, `replaced_tokens` what the window entries cost
    that the summary replaces: it must be well shorter than these. It is also small enough that all
    summaries that may stand side by side fit the window's token threshold. `single` is a summary of
    one turn.
    """
    least, share = (
        (ROUND_SUMMARY_TOKENS, ROUND_SHARE) if single else (HISTORY_SUMMARY_TOKENS, HISTORY_SHARE)
    )
    wanted = min(max(least, source_tokens // share), MAX_SUMMARY_TOKENS)
    room = settings.window_token_threshold // (max_histories(settings) + 2)
    return max(1, min(wanted, room, replaced_tokens * 3 // 4))


def max_histories(settings: Settings) -> int:
    """How many history summaries stand side by side, at most."""
    if settings.schedule == "whole":
        return 1
    return max(1, min(settings.window_max_size // 2, MAX_HISTORIES))


def unjudged(memory: WorkingMemory) -> tuple[Turn, ...]:
    """The turns that have still to be judged for pins.

    Turns that were folded while judgement was switched off are not fetched back for it.
    """
    session = memory.session
    if not session.settings.judges_pins:
        return ()
    return tuple(turn for turn in memory.turns if turn.number > session.judged_through)


def next_step(
    memory: WorkingMemory, measure: Measure, *, quiet: bool = True, forced: bool = False
) -> Step | None:
    """The next piece of work, or None if there is nothing to do.

    With `quiet` false more turns are known to come: then work waits until a full batch has piled
    up, so that a burst of commits costs few model calls. `forced` compacts though
    `auto_compression` is off.
    """
    waiting = unjudged(memory)
    window = split_regions(memory).window
    backlog = sum(isinstance(entry, Turn) for entry in window)
    if not (quiet or len(waiting) >= BATCH_TURNS or backlog >= BATCH_TURNS):
        return None
    if waiting:
        return JudgeTurns(_batch(waiting, measure))
    return pins_to_fold(memory) or _window_step(memory, window, measure, forced=forced)


def pending_turns(memory: WorkingMemory, measure: Measure) -> int:
    """How many turns the background work still has to look at; 0 if it finds nothing to do."""
    step = next_step(memory, measure, quiet=True, forced=True)
    if step is None:
        return 0
    waiting = {turn.number for turn in unjudged(memory)}
    window = split_regions(memory).window
    if _window_step(memory, window, measure, forced=True):
        waiting |= {entry.number for entry in window if isinstance(entry, Turn)}
    return max(1, len(waiting))


def _batch(turns: Sequence[Turn], measure: Measure) -> tuple[Turn, ...]:
    taken: list[Turn] = []
    for turn in turns[:BATCH_TURNS]:
        if taken and measure.exceeds((*taken, turn), BATCH_TOKENS):
            break
        taken.append(turn)
    return tuple(taken)


def pins_to_fold(memory: WorkingMemory) -> FoldPins | None:
    """The fold of pins that are over a limit and were not tried to be folded as they are."""
    session, settings = memory.session, memory.session.settings
    if "PIN_AGGREGATION" not in settings.strategies or not settings.judges_pins:
        return None
    if session.pin_rev <= session.pins_settled_rev or len(memory.pins) < 2:  # noqa: PLR2004 - one pin cannot become fewer
        return None
    tokens = sum(pin.tokens for pin in memory.pins)
    if len(memory.pins) > settings.max_pin_count or tokens > settings.max_pin_tokens:
        return FoldPins(memory.pins[:MAX_FOLD_PINS])
    return None


def _window_step(
    memory: WorkingMemory, window: Sequence[Entry], measure: Measure, *, forced: bool
) -> Fold | None:
    settings = memory.session.settings
    if not (settings.auto_compression or forced):
        return None
    if settings.schedule == "whole":
        return _round_step(window, settings, measure) or _whole_step(window, settings, measure)
    return _tiered_step(window, settings, measure) or _round_step(window, settings, measure)


def _round_step(window: Sequence[Entry], settings: Settings, measure: Measure) -> Fold | None:
    """The summary of the oldest raw turn that is over the round threshold."""
    if "CURRENT_ROUND_SUMMARIZATION" not in settings.strategies:
        return None
    for entry in window:
        if isinstance(entry, Turn) and measure.exceeds((entry,), settings.round_token_threshold):
            return _fold((entry,), settings, measure)
    return None


def _whole_step(window: Sequence[Entry], settings: Settings, measure: Measure) -> Fold | None:
    """The whole window into one history summary, when it is over a limit."""
    if "HISTORY_SUMMARIZATION" not in settings.strategies:
        return None
    if not _Load(window, settings, measure).is_over():
        return None
    return _fold(_at_most(window, measure), settings, measure)


def _tiered_step(window: Sequence[Entry], settings: Settings, measure: Measure) -> Fold | None:
    """The fold that brings the window back below its limits, cheapest first."""
    if "HISTORY_SUMMARIZATION" not in settings.strategies:
        return None
    if not _Load(window, settings, measure).is_over():
        return None
    entries = _tiered_entries(window, settings, measure)
    return _fold(_at_most(entries, measure), settings, measure)


def _tiered_entries(
    window: Sequence[Entry], settings: Settings, measure: Measure
) -> Sequence[Entry]:
    """The contiguous entries to fold."""
    histories = [one for one in window if _is_history(one)]
    fresh = window[len(histories) :]
    if any(map(_is_history, fresh)):
        # A head that was made smaller left turns before the first history: it takes them up.
        return window[: window.index(histories[0]) + 1]
    run = _fresh_run(histories, fresh, settings, measure)
    if run and len(histories) < max_histories(settings):
        return run
    if not run:
        # Two become one; a single one, made under larger limits, is made shorter.
        return _neighbours(histories)
    if len(histories) > 1 and _span((histories[-1], *run)) >= _span(histories[-2:-1]):
        return _neighbours(histories)
    return (histories[-1], *run)


def _neighbours(histories: Sequence[Summary]) -> Sequence[Summary]:
    """The two to make one: the newest that together cover no more than the one before them.

    So an older history summary never covers less than a newer one.
    """
    at = max(0, len(histories) - 2)
    while at > 0 and _span(histories[at : at + 2]) > _span(histories[at - 1 : at]):
        at -= 1
    return histories[at : at + 2]


def _fresh_run(
    histories: Sequence[Summary],
    fresh: Sequence[Entry],
    settings: Settings,
    measure: Measure,
) -> tuple[Entry, ...]:
    """The oldest fresh entries whose folding brings the window down to its low-water mark.

    Each entry is looked at once and no more are than can be folded: a window may hold thousands.
    """
    if not fresh:
        return ()
    standing = [_Load((entry,), settings, measure) for entry in histories]
    loads = [_Load((entry,), settings, measure) for entry in fresh]
    messages = sum(load.messages for load in (*standing, *loads))
    for end in range(1, min(len(fresh), MAX_FOLD_ENTRIES) + 1):
        messages -= loads[end - 1].messages
        if messages + 1 > max(1, settings.window_max_size // 2):
            continue
        tokens = sum(load.tokens for load in (*standing, *loads[end:]))
        if tokens + HISTORY_SUMMARY_TOKENS <= settings.window_token_threshold // 2:
            break
    return _at_most(fresh[:end], measure)


def _at_most(entries: Sequence[Entry], measure: Measure) -> tuple[Entry, ...]:
    """The oldest of the entries that fit one model call and one transaction; at least one."""
    taken: list[Entry] = []
    tokens = 0
    for entry in entries[:MAX_FOLD_ENTRIES]:
        tokens += _tokens(entry, measure)
        if tokens > MAX_FOLD_TOKENS and len(taken) > 1:
            break
        taken.append(entry)
    return tuple(taken)


def _fold(entries: Sequence[Entry], settings: Settings, measure: Measure) -> Fold:
    replaced = sum(_tokens(one, measure) for one in entries)
    source = sum(
        measure.tokens(one) if isinstance(one, Turn) else one.source_tokens for one in entries
    )
    single = len(entries) == 1 and isinstance(entries[0], Turn)
    return Fold(tuple(entries), summary_cap(settings, source, replaced, single=single))


def _is_history(entry: Entry) -> TypeGuard[Summary]:
    return isinstance(entry, Summary) and entry.level > 1


def _span(entries: Sequence[Entry]) -> int:
    return last_turn(entries[-1]) - first_turn(entries[0]) + 1


def _tokens(entry: Entry, measure: Measure) -> int:
    return measure.tokens(entry) if isinstance(entry, Turn) else entry.tokens


class _Load:
    """Messages and tokens of some window entries.

    A raw turn over the round threshold counts as the summary that it will become.
    """

    def __init__(self, entries: Sequence[Entry], settings: Settings, measure: Measure) -> None:
        shortens = "CURRENT_ROUND_SUMMARIZATION" in settings.strategies
        self._settings = settings
        self._measure = measure
        self._raw: list[Turn] = []
        self.messages = 0
        self._known = 0
        for entry in entries:
            if isinstance(entry, Summary):
                self.messages += 1
                self._known += entry.tokens
            elif shortens and measure.exceeds((entry,), settings.round_token_threshold):
                self.messages += 1
                tokens = measure.tokens(entry)
                self._known += summary_cap(settings, tokens, tokens, single=True)
            else:
                self.messages += len(entry.conversation)
                self._raw.append(entry)

    @property
    def tokens(self) -> int:
        return self._known + sum(self._measure.tokens(turn) for turn in self._raw)

    def is_over(self) -> bool:
        if self.messages > self._settings.window_max_size:
            return True
        room = self._settings.window_token_threshold - self._known
        return room < 0 or self._measure.exceeds(self._raw, room)
