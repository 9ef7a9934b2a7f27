"""A turn as a document to search: how often each term occurs, and how long it is."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from turnfold.domain.recall.terms import is_single_character, terms_of
from turnfold.domain.rendering import render_turn
from turnfold.domain.turns import Turn

_NAMED_ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Document:
    """`length` counts terms that tell something; a single character counts half."""

    counts: Mapping[str, int]
    length: int


def make_document(texts: Iterable[str]) -> Document:
    """The document of some texts."""
    counts: Counter[str] = Counter()
    halves = 0
    for text in texts:
        for term in terms_of(text):
            counts[term.text] += 1
            if not term.tells_little:
                halves += 1 if is_single_character(term.text) else 2
    return Document(counts, (halves + 1) // 2)


def turn_document(turn: Turn) -> Document:
    """What was said in a turn, who said it if the messages have names, and the day in words."""
    return make_document([*_names(turn), *_days(turn), *spoken_texts(turn)])


def spoken_texts(turn: Turn) -> list[str]:
    """The passages of a turn, calls and results of tools included."""
    return [passage.text for passage in render_turn(turn)]


def day_in_words(moment: datetime) -> str:
    """Such as "Monday 8 May 2023"; always English, whatever the process's locale."""
    weekday = _WEEKDAYS[moment.weekday()]
    return f"{weekday} {moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def _names(turn: Turn) -> list[str]:
    """Each name once for every message of a speaker."""
    return [
        message["name"]
        for message in turn.conversation
        if message["role"] in _NAMED_ROLES and isinstance(message.get("name"), str)
    ]


def _days(turn: Turn) -> list[str]:
    """The days on which the messages were said; that of the commit where none says so."""
    said = {day for message in turn.conversation if (day := _day(message.get("created_at")))}
    return sorted(said) or [day_in_words(turn.committed_at)]


def _day(created_at: object) -> str | None:
    if not isinstance(created_at, str):
        return None
    try:
        return day_in_words(datetime.fromisoformat(created_at))
    except ValueError:
        return None
