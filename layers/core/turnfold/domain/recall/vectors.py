"""Vectors of a range of turns, and the exact cosine of a query to each."""

import json
import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from turnfold.domain.sessions import TurnRange

VECTORS_VERSION = 1
_BYTES = 4


@dataclass(frozen=True, slots=True)
class VectorPiece:
    """Unit vectors by turn, as 32-bit floats; a turn without text has only zeros."""

    covers: TurnRange
    vectors: Sequence[array[float]]

    def encode(self) -> bytes:
        """A line of JSON that says what it is, then the numbers, little-endian."""
        width = max((len(vector) for vector in self.vectors), default=0)
        head = {
            "version": VECTORS_VERSION,
            "from_turn": self.covers.from_turn,
            "to_turn": self.covers.to_turn,
            "dimensions": width,
        }
        numbers = array("f")
        for vector in self.vectors:
            numbers.extend(vector)
            # Turns without text were given no vector, so their number of dimensions is not known.
            numbers.extend([0.0] * (width - len(vector)))
        return json.dumps(head).encode() + b"\n" + _little_endian(numbers).tobytes()


def decode_vectors(raw: bytes) -> VectorPiece | None:
    """The vectors of an object; None if it is of another version or broken."""
    line, _, numbers = raw.partition(b"\n")
    try:
        head = json.loads(line)
        covers = TurnRange(head["from_turn"], head["to_turn"])
        turns = covers.to_turn - covers.from_turn + 1
        dimensions = head["dimensions"]
        if head["version"] != VECTORS_VERSION or len(numbers) != turns * dimensions * _BYTES:
            return None
        width = dimensions * _BYTES
        return VectorPiece(
            covers,
            [
                _little_endian(array("f", numbers[at * width : (at + 1) * width]))
                for at in range(turns)
            ],
        )
    except (ValueError, KeyError, TypeError):
        return None


def unit(vector: Iterable[float]) -> array[float]:
    """The vector in length 1; zeros stay zeros, as do vectors with a number that is none."""
    values = list(vector)
    length = math.hypot(*values)
    if not length or not math.isfinite(length):
        return array("f", [0.0] * len(values))
    return array("f", [value / length for value in values])


def closest(
    query: array[float], pieces: Iterable[VectorPiece], limit: int
) -> list[tuple[int, float]]:
    """(turn number, cosine) of the turns whose cosine is above 0, the closest first.

    Turns whose vectors have another number of dimensions are passed over.
    """
    # Doubles: the sum of products is fast, and exact, for lists of plain floats.
    wanted = query.tolist()
    found = [
        (number, cosine)
        for piece in pieces
        for number, vector in enumerate(piece.vectors, piece.covers.from_turn)
        if len(vector) == len(wanted) and (cosine := math.sumprod(wanted, vector)) > 0
    ]
    return sorted(found, key=lambda one: (-one[1], one[0]))[:limit]


def _little_endian(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers = array("f", numbers)
        numbers.byteswap()
    return numbers
