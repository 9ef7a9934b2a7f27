"""The life of pins: what a judgement adds, changes and retracts, and what is held back."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from turnfold.domain.errors import InvalidPinError
from turnfold.domain.identifiers import extract_identifiers
from turnfold.domain.judgement import SPEAKERS
from turnfold.domain.limits import MAX_PIN_CHARACTERS, MAX_PINS
from turnfold.domain.messages import content_texts
from turnfold.domain.pin_slots import pin_slot, states_nothing_else
from turnfold.domain.pins import Pin, PinStatus, Trust
from turnfold.domain.quarantine import quarantine_reason
from turnfold.domain.tokens import CountText
from turnfold.domain.turns import Turn


@dataclass(frozen=True, slots=True)
class ProposedPin:
    """A fact that a judgement wants to pin, before anything of it is believed.

    It `replaces` the pin of that id, or what the user said before of the same `slot`.
    """

    turn: int
    text: str
    confidence: float
    said_by: str
    replaces: str | None = None
    slot: str | None = None


@dataclass(frozen=True, slots=True)
class PinEdit:
    """Pins to write, and how many are active afterwards."""

    changed: tuple[Pin, ...]
    active: int


def check_pin_text(text: object) -> str:
    """The text of a pin made by hand. Raises `InvalidPinError`."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidPinError("text must be a text that is not blank")
    if len(text) > MAX_PIN_CHARACTERS:
        raise InvalidPinError(f"text must have at most {MAX_PIN_CHARACTERS} characters")
    return text.strip()


def check_room(active: int) -> None:
    """Raise `InvalidPinError` when a session has as many active pins as it may."""
    if active >= MAX_PINS:
        raise InvalidPinError(f"a session has at most {MAX_PINS} active pins; remove some first")


def edit_of(pins: Sequence[Pin], changed: Sequence[Pin]) -> PinEdit:
    """The edit that writes `changed` over the active `pins`."""
    active = {pin.pin_id for pin in pins}
    for pin in changed:
        if pin.status is PinStatus.ACTIVE:
            active.add(pin.pin_id)
        else:
            active.discard(pin.pin_id)
    return PinEdit(tuple(changed), len(active))


class PinFactory:
    """Makes pins of one pin revision at one moment."""

    def __init__(
        self,
        *,
        now: datetime,
        rev: int,
        new_id: Callable[[], str],
        count: CountText,
    ) -> None:
        """Stamp every pin with `now` and `rev`."""
        self._now = now
        self._rev = rev
        self._new_id = new_id
        self._count = count

    def pin(self, proposal: ProposedPin, status: PinStatus, reason: str | None) -> Pin:
        """A new pin of a proposal."""
        trust = Trust.USER if proposal.said_by == "user" else Trust.ASSISTANT
        return self.new(
            proposal.text,
            trust=trust,
            status=status,
            confidence=proposal.confidence,
            sources=(proposal.turn,),
            replaces=proposal.replaces if status is PinStatus.ACTIVE else None,
            reason=reason,
        )

    def new(
        self,
        text: str,
        *,
        trust: Trust,
        status: PinStatus = PinStatus.ACTIVE,
        confidence: float = 1.0,
        sources: tuple[int, ...] = (),
        replaces: str | None = None,
        folded_from: tuple[str, ...] = (),
        reason: str | None = None,
    ) -> Pin:
        """A new pin."""
        return Pin(
            pin_id=self._new_id(),
            text=text,
            tokens=self._count(text),
            status=status,
            trust=trust,
            confidence=confidence,
            sources=sources,
            created_at=self._now,
            updated_at=self._now,
            rev=self._rev,
            replaces=replaces,
            folded_from=folded_from,
            reason=reason,
        )

    def moved(self, pin: Pin, status: PinStatus) -> Pin:
        """The pin with another status."""
        return replace(pin, status=status, updated_at=self._now, rev=self._rev)

    def reworded(self, pin: Pin, text: str) -> Pin:
        """The pin with another text."""
        return replace(
            pin, text=text, tokens=self._count(text), updated_at=self._now, rev=self._rev
        )


def apply_proposals(
    pins: Sequence[Pin],
    proposals: Iterable[ProposedPin],
    retracted: Iterable[str],
    turns: Sequence[Turn],
    made: PinFactory,
) -> PinEdit:
    """What a judgement changes among the active pins.

    A fact that is known already changes nothing. A correction invalidates the pin that it names and
    is added itself. Instructions, secrets, over-long texts, what the user neither said nor
    confirmed, what only a tool said and identifiers that nobody said are kept as quarantined, out
    of every context.
    """
    active = {pin.pin_id: pin for pin in pins}
    spoken = [text for turn in turns for role in SPEAKERS for text in _texts_of(turn, role)]
    known = _pieces(" ".join([*spoken, *(pin.text for pin in pins)]))
    changed: list[Pin] = []
    by_number = {turn.number: turn for turn in turns}
    changed += [
        made.moved(active.pop(pin_id), PinStatus.INVALIDATED)
        for pin_id in dict.fromkeys(retracted)
        if pin_id in active
    ]
    for proposal in proposals:
        if any(_same_fact(pin.text, proposal.text) for pin in active.values()):
            continue
        reason = _held_back(proposal, by_number.get(proposal.turn), known)
        replaced = _replaced(proposal, active.values())
        if not reason and len(active) >= MAX_PINS and replaced not in active:
            reason = "too_many"
        if reason:
            changed.append(made.pin(proposal, PinStatus.QUARANTINED, reason))
            continue
        old = active.pop(replaced or "", None)
        if old:
            changed = [one for one in changed if one is not old]
            changed.append(made.moved(old, PinStatus.INVALIDATED))
        kept = replace(proposal, replaces=old.pin_id if old else None)
        pin = made.pin(kept, PinStatus.ACTIVE, None)
        active[pin.pin_id] = pin
        changed.append(pin)
    return edit_of(pins, changed)


def _held_back(proposal: ProposedPin, turn: Turn | None, known: set[str]) -> str | None:
    """Why a proposed pin must not become active; None if it may.

    `known` are the pieces of all that was said in the judged turns and is pinned already.
    """
    reason = quarantine_reason(proposal.text)
    if reason:
        return reason
    if proposal.said_by != "user":
        return "unconfirmed"
    if turn is None:
        return "no_source"
    said = _words(" ".join(_texts_of(turn, "user")))
    shown = _words(" ".join(_texts_of(turn, "tool")))
    fact = _words(proposal.text)
    if not fact & said and fact & shown:
        return "tool_output"
    telling = (one for one in extract_identifiers(proposal.text) if not _NUMBERED.fullmatch(one))
    if any(not _pieces(one) & known for one in telling):
        return "not_said"
    return None


_NUMBERED = re.compile(r"[a-z]+[0-9]{1,3}")
"""A word with a number behind it (room4, step12): how things are named, not what they are."""


def _replaced(proposal: ProposedPin, active: Iterable[Pin]) -> str | None:
    """The id of the pin that a proposal takes the place of."""
    if proposal.replaces or not proposal.slot or not states_nothing_else(proposal.text):
        return proposal.replaces
    same = (
        pin
        for pin in active
        if pin.trust is Trust.USER
        and pin_slot(pin.text) == proposal.slot
        and states_nothing_else(pin.text)
    )
    return next((pin.pin_id for pin in same), None)


def _texts_of(turn: Turn, role: str) -> Iterable[str]:
    for message in turn.conversation:
        if message["role"] == role:
            yield from content_texts(message)


_PIECE = re.compile(r"\d+|[^\W\d_]{2,}")


def _pieces(text: str) -> set[str]:
    """The words and numbers of a text, since an identifier may be written in another way."""
    folded = text.casefold()
    return set(_PIECE.findall(folded)) or {folded}


_WORD = re.compile(r"[^\W\d_]{4,}|\d{2,}")
_PAIR = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def _words(text: str) -> set[str]:
    """The telling words of a text; of scripts without blanks the single characters."""
    folded = text.casefold()
    return set(_WORD.findall(folded)) | set(_PAIR.findall(folded))


def _same_fact(one: str, other: str) -> bool:
    return _folded(one) == _folded(other)


# Not all that is no word: "C#" is not "C", "€500" not "$500", and one emoji not another.
_BETWEEN_WORDS = re.compile(r"[\s.,;:!?…。，、；：！？\"'()“”‘’«»「」]+")


def _folded(text: str) -> str:
    return _BETWEEN_WORDS.sub(" ", text.casefold()).strip()
