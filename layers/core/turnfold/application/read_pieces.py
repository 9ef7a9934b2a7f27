"""Reading pieces of a search index, some at a time; what was read before is not read again."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from turnfold.application.bounded_cache import BoundedCache
from turnfold.application.ports.recall import PieceName, RecallIndex
from turnfold.domain.recall.ranges import tiling
from turnfold.domain.sessions import Session, TurnRange

PARALLEL_READS = 8


def read_pieces[One](
    index: RecallIndex,
    session: Session,
    shelf: str,
    decode: Callable[[bytes], One | None],
    cache: BoundedCache[One],
    size: Callable[[One], int],
) -> list[One]:
    """The pieces of a shelf that do not overlap. One that cannot be had is left out."""
    listed = index.list_pieces(session.key, session.epoch)
    ranges = [name.covers for name in listed if name.shelf == shelf]
    names = [
        PieceName(shelf, covers)
        for covers in tiling(TurnRange(1, session.committed_through), ranges)
    ]

    def read(name: PieceName) -> One | None:
        known = cache.get((session.key, session.epoch, name))
        if known is not None:
            return known
        raw = index.get_piece(session.key, session.epoch, name)
        piece = decode(raw) if raw else None
        if piece is not None:
            cache.put((session.key, session.epoch, name), piece, size(piece))
        return piece

    return [piece for piece in in_parallel(read, names) if piece is not None]


def in_parallel[Given, Result](
    read: Callable[[Given], Result], names: Sequence[Given]
) -> list[Result]:
    """What reading each gives, in order; some at a time. Raises what the first failure raises."""
    if len(names) <= 1:
        return [read(name) for name in names]
    with ThreadPoolExecutor(min(PARALLEL_READS, len(names))) as pool:
        return list(pool.map(read, names))
