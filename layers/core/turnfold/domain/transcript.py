"""The transcript's records: one for each turn, word for word, chained by hash.

A record is JSON in UTF-8, its messages with their members in the committed order. Its `sha256` is
that of its canonical JSON (sorted keys, no spaces, UTF-8) without the member `sha256`;
`prev_sha256` is the hash of the record before, or 64 zeros (api.md, clarification 7).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from turnfold.domain.errors import DamagedRecordError
from turnfold.domain.messages import Message
from turnfold.domain.turns import Turn

RECORD_VERSION = 1


def canonical(value: object) -> bytes:
    """Canonical JSON: the same value has the same bytes."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode()


def sha256_of(value: object) -> str:
    """SHA-256 of the canonical JSON, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC, with microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_time(text: str) -> datetime:
    """The moment that `format_time` wrote."""
    return datetime.fromisoformat(text)


def make_record(
    *,
    number: int,
    turn_id: str,
    committed_at: datetime,
    messages: Sequence[Message],
    prev_sha256: str,
    metadata: Mapping[str, Any] | None = None,
    user_id: str | None = None,
) -> tuple[Turn, bytes]:
    """A turn and the record to archive for it.

    The user id stands in it so that a lost table can be made anew, and a user's sessions be found.
    """
    body: dict[str, Any] = {
        "v": RECORD_VERSION,
        "turn": number,
        "turn_id": turn_id,
        "committed_at": format_time(committed_at),
        "messages": list(messages),
        "prev_sha256": prev_sha256,
    }
    if metadata:
        body["metadata"] = dict(metadata)
    if user_id is not None:
        body["user_id"] = user_id
    digest = sha256_of(body)
    turn = Turn(
        number=number,
        turn_id=turn_id,
        committed_at=committed_at,
        messages=tuple(messages),
        sha256=digest,
        prev_sha256=prev_sha256,
    )
    record = json.dumps({**body, "sha256": digest}, ensure_ascii=False, separators=(",", ":"))
    return turn, record.encode()


def read_record(raw: bytes) -> Turn:
    """The turn of an archived record."""
    body = json.loads(raw)
    return Turn(
        number=body["turn"],
        turn_id=body["turn_id"],
        committed_at=parse_time(body["committed_at"]),
        messages=tuple(body["messages"]),
        sha256=body["sha256"],
        prev_sha256=body["prev_sha256"],
    )


@dataclass(frozen=True, slots=True)
class Record:
    """One record as it is stored, under the number that its object's name says."""

    number: int
    raw: bytes

    @property
    def turn(self) -> Turn:
        """Its turn. Raises `DamagedRecordError` if it cannot be read as one."""
        try:
            turn = read_record(self.raw)
        except (ValueError, KeyError, TypeError):
            raise DamagedRecordError(f"the record of turn {self.number} cannot be read") from None
        if turn.number != self.number:
            raise DamagedRecordError(f"the record of turn {self.number} is that of another turn")
        return turn

    @property
    def user_id(self) -> str | None:
        """Whose session it was, if the record says so."""
        try:
            body = json.loads(self.raw)
            return str(body["user_id"])
        except (ValueError, KeyError, TypeError):
            return None

    @property
    def intact(self) -> bool:
        """Whether it is a record of its number whose hash is that of its content."""
        try:
            return self.turn.number == self.number and is_intact(self.raw)
        except DamagedRecordError:
            return False


def is_intact(raw: bytes) -> bool:
    """Whether a record's hash is that of its content."""
    try:
        body = json.loads(raw)
        return bool(body.pop("sha256") == sha256_of(body))
    except (ValueError, KeyError, AttributeError, TypeError):
        return False
