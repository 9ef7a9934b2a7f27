"""Working memory: everything of a session that may be put into a prompt, as one read shows it."""

from dataclasses import dataclass

from turnfold.domain.pins import Pin
from turnfold.domain.sessions import Profile, Session
from turnfold.domain.summaries import Summary
from turnfold.domain.turns import Turn


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """One session's live items, each list in ascending order and free of superseded items."""

    session: Session
    profile: Profile
    turns: tuple[Turn, ...]
    summaries: tuple[Summary, ...]
    pins: tuple[Pin, ...]


def raw_numbers(session: Session) -> tuple[int, ...]:
    """The numbers of the turns that stand word for word, ascending."""
    return tuple(
        number for run in session.raw_ranges for number in range(run.from_turn, run.to_turn + 1)
    )


def assemble_memory(
    session: Session,
    profile: Profile,
    turns: list[Turn],
    summaries: list[Summary],
    pins: list[Pin],
    *,
    with_turns: bool = True,
) -> WorkingMemory | None:
    """The working memory that the session's manifest and watermarks describe.

    A query of many items is not one moment: it may show a new manifest beside an old summary.
    Items that the session does not name (not yet, or no longer) are left out; if one that it names
    is missing, the answer is None and the caller reads again. `with_turns` false asks for no turns.
    """
    by_number = {turn.number: turn for turn in turns}
    by_ref = {summary.ref: summary for summary in summaries}
    numbers = raw_numbers(session) if with_turns else ()
    live_pins = sorted(pins, key=lambda pin: pin.pin_id)
    complete = (
        all(number in by_number for number in numbers)
        and all(ref in by_ref for ref in session.manifest)
        and len(live_pins) == session.pin_count
        and all(pin.rev <= session.pin_rev for pin in live_pins)
    )
    if not complete:
        return None
    return WorkingMemory(
        session=session,
        profile=profile,
        turns=tuple(by_number[number] for number in numbers),
        summaries=tuple(by_ref[ref] for ref in session.manifest),
        pins=tuple(live_pins),
    )
