"""A piece of a keyword index: the postings of a range of turns, and the turns themselves.

The turns are there because a search answers them: reading ten turns of the transcript one by one
would take ten calls. A piece is gzipped JSON; the turns in it are compressed in small blocks, so
that a piece in memory takes little and one turn is quickly at hand. The same turns always give the
same bytes.
"""

import base64
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import batched
from typing import Any

from turnfold.domain.recall.documents import turn_document
from turnfold.domain.recall.terms import TERMS_VERSION
from turnfold.domain.sessions import TurnRange
from turnfold.domain.transcript import format_time, parse_time
from turnfold.domain.turns import Turn

PIECE_VERSION = f"{TERMS_VERSION}.1"
"""Of terms and format; grows with either."""

MAX_COPY_CHARACTERS = 32_000
"""Longer turns are not copied into a piece, and are read from the transcript."""

BLOCK_TURNS = 16
_COMPRESSION = 6
_BYTES_PER_TERM = 200
"""Two strings and their place in a dictionary."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A decoded piece: `lengths` by turn, postings by term as they are stored.

    `size` is about what it takes in memory, in bytes.
    """

    covers: TurnRange
    size: int
    lengths: Sequence[int]
    terms: Mapping[str, str]
    blocks: Sequence[str]

    def postings(self, term: str) -> Iterator[tuple[int, int]]:
        """(turn number, how often), ascending."""
        at = self.covers.from_turn - 1
        for posting in self.terms.get(term, "").split():
            step, _, count = posting.partition("x")
            at += int(step)
            yield at, int(count or 1)

    def turn(self, number: int) -> Turn | None:
        """A turn of the range, None if it was too long to be copied."""
        at = number - self.covers.from_turn
        block = json.loads(zlib.decompress(base64.b64decode(self.blocks[at // BLOCK_TURNS])))
        copy = block[at % BLOCK_TURNS]
        return None if copy is None else _read_turn(copy)


class PieceWriter:
    """Makes a piece of turns and of smaller pieces, which come in order and without gaps."""

    def __init__(self, covers: TurnRange) -> None:
        """Begin the piece of that range."""
        self._covers = covers
        self._lengths: list[int] = []
        self._terms: dict[str, list[str]] = {}
        self._last: dict[str, int] = {}
        self._blocks: list[str] = []
        self._waiting: list[dict[str, Any] | None] = []

    @property
    def next_turn(self) -> int:
        """The number of the turn that comes next."""
        return self._covers.from_turn + len(self._lengths)

    def add_turns(self, turns: Iterable[Turn]) -> None:
        """Add turns."""
        for turn in turns:
            document = turn_document(turn)
            for term, count in document.counts.items():
                self._post(term, turn.number, count)
            self._add(document.length, _copy(turn))

    def add_piece(self, piece: Piece) -> None:
        """Add a smaller piece."""
        for term in piece.terms:
            for number, count in piece.postings(term):
                self._post(term, number, count)
        copies = [copy for block in piece.blocks for copy in _unpacked(block)]
        for length, copy in zip(piece.lengths, copies, strict=True):
            self._add(length, copy)

    def encode(self) -> bytes:
        """The finished piece. Raises `ValueError` if turns are missing."""
        if self.next_turn != self._covers.to_turn + 1:
            raise ValueError(f"turn {self.next_turn} is missing")
        self._flush()
        body = {
            "version": PIECE_VERSION,
            "from_turn": self._covers.from_turn,
            "to_turn": self._covers.to_turn,
            "lengths": self._lengths,
            "terms": {term: " ".join(steps) for term, steps in sorted(self._terms.items())},
            "blocks": self._blocks,
        }
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        return gzip.compress(text.encode(), _COMPRESSION, mtime=0)

    def _post(self, term: str, number: int, count: int) -> None:
        step = number - self._last.get(term, self._covers.from_turn - 1)
        self._last[term] = number
        self._terms.setdefault(term, []).append(f"{step}x{count}" if count > 1 else str(step))

    def _add(self, length: int, copy: dict[str, Any] | None) -> None:
        self._lengths.append(length)
        self._waiting.append(copy)
        if len(self._waiting) == BLOCK_TURNS:
            self._flush()

    def _flush(self) -> None:
        for block in batched(self._waiting, BLOCK_TURNS):
            text = json.dumps(block, ensure_ascii=False, separators=(",", ":"))
            packed = zlib.compress(text.encode(), _COMPRESSION)
            self._blocks.append(base64.b64encode(packed).decode())
        self._waiting = []


def decode_piece(raw: bytes) -> Piece | None:
    """The piece of an object; None if it is of another version or broken."""
    try:
        text = gzip.decompress(raw)
        body = json.loads(text)
        if body["version"] != PIECE_VERSION:
            return None
        return Piece(
            covers=TurnRange(body["from_turn"], body["to_turn"]),
            size=len(text) + _BYTES_PER_TERM * len(body["terms"]),
            lengths=body["lengths"],
            terms=body["terms"],
            blocks=body["blocks"],
        )
    except (ValueError, KeyError, TypeError, OSError, EOFError, zlib.error):
        return None


def _unpacked(block: str) -> list[dict[str, Any] | None]:
    copies: list[dict[str, Any] | None] = json.loads(zlib.decompress(base64.b64decode(block)))
    return copies


def _copy(turn: Turn) -> dict[str, Any] | None:
    copy = {
        "turn": turn.number,
        "turn_id": turn.turn_id,
        "committed_at": format_time(turn.committed_at),
        "messages": list(turn.messages),
        "sha256": turn.sha256,
        "prev_sha256": turn.prev_sha256,
    }
    size = len(json.dumps(copy, ensure_ascii=False))
    return copy if size <= MAX_COPY_CHARACTERS else None


def _read_turn(copy: Mapping[str, Any]) -> Turn:
    return Turn(
        number=copy["turn"],
        turn_id=copy["turn_id"],
        committed_at=parse_time(copy["committed_at"]),
        messages=tuple(copy["messages"]),
        sha256=copy["sha256"],
        prev_sha256=copy["prev_sha256"],
    )
