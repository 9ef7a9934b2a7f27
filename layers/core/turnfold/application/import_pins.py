"""Importing pins into a session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import batched
from typing import Any

from turnfold.application.import_content import ImportContent
from turnfold.application.pin_changes import pin_change
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.models import TokenCounter
from turnfold.application.same_session import check_same
from turnfold.domain.errors import (
    CommitConflictError,
    GuardFailedError,
    InvalidInputError,
    SessionErasingError,
)
from turnfold.domain.limits import MAX_PINS
from turnfold.domain.pin_rules import PinEdit, check_pin_text
from turnfold.domain.pins import Pin, PinStatus
from turnfold.domain.sessions import Session, SessionKey, SessionStatus

PART_PINS = 40
"""Pins that one write takes."""

ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class ImportPins:
    """Takes in the pins of what `read_import` has read."""

    store: MemoryStore
    counter: TokenCounter

    def __call__(
        self, key: SessionKey, epoch: str, content: ImportContent, numbers: Mapping[int, int]
    ) -> tuple[int, list[dict[str, Any]]]:
        """Store the pins that are not there yet; how many, and which were refused, by line.

        `numbers` are those here of the turns that came along, by their numbers in the file. Raises
        `SessionErasingError` or `CommitConflictError`; what went in until then stays.
        """
        stored, refused = 0, []
        for part in batched(content.pins, PART_PINS):
            count, faults = self._put(key, epoch, content, part, numbers)
            stored += count
            refused += faults
        return stored, refused

    def _put(
        self,
        key: SessionKey,
        epoch: str,
        content: ImportContent,
        part: Sequence[tuple[int, Pin]],
        numbers: Mapping[int, int],
    ) -> tuple[int, list[dict[str, Any]]]:
        for _ in range(ATTEMPTS):
            memory = self.store.load(key)
            if memory is None or memory.session.status is not SessionStatus.LIVE:
                raise SessionErasingError
            session = memory.session
            check_same(session, epoch)
            model = session.settings.model
            there = {pin.pin_id for pin in memory.pins}
            active = len(memory.pins)
            chosen: list[Pin] = []
            refused: list[dict[str, Any]] = []
            for place, pin in part:
                if pin.pin_id in there or self.store.get_pin(key, pin.pin_id):
                    continue
                try:
                    text = check_pin_text(pin.text)
                except InvalidInputError as error:
                    refused.append({"line": place, "msg": str(error)})
                    continue
                if pin.status is PinStatus.ACTIVE and active >= MAX_PINS:
                    msg = f"a session has at most {MAX_PINS} active pins"
                    refused.append({"line": place, "msg": msg})
                    continue
                active += pin.status is PinStatus.ACTIVE
                chosen.append(
                    replace(
                        pin,
                        text=text,
                        tokens=self.counter.count(text, model),
                        rev=session.pin_rev + 1,
                        sources=_sources(pin, numbers, session, content),
                    )
                )
            if not chosen:
                return 0, refused
            try:
                self.store.write(pin_change(session, PinEdit(tuple(chosen), active)))
            except GuardFailedError:
                continue
            return len(chosen), refused
        raise CommitConflictError("other changes to the pins were faster; try again")


def _sources(
    pin: Pin, numbers: Mapping[int, int], session: Session, content: ImportContent
) -> tuple[int, ...]:
    """The turns that a fact came from, by their numbers here.

    Where pins come in a request of their own, their numbers hold if all turns of the original are
    here, and nothing else is.
    """
    if not numbers and (content.session or {}).get("turns") == session.committed_through:
        return tuple(one for one in pin.sources if one <= session.committed_through)
    return tuple(numbers[one] for one in pin.sources if one in numbers)
