"""Draining a batch of doorbell messages: grouped by session, failing session by session."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from turnfold.application.compact_session import CompactSession, Outcome, Ring
from turnfold.application.index_session import IndexSession
from turnfold.domain.errors import StoreError
from turnfold.domain.sessions import SessionKey

logger = logging.getLogger("turnfold")

BACK_OFF_SECONDS = (2, 10, 60, 300)
"""How long a failed session's messages stay hidden, by how often they were received."""


@dataclass(frozen=True, slots=True)
class Knock:
    """One doorbell message. `key` and `ring` are None where the body could not be read."""

    message_id: str
    key: SessionKey | None
    ring: Ring | None
    receive_count: int = 1


@dataclass(frozen=True, slots=True)
class FailedKnock:
    """A message to be delivered again, and after how many seconds."""

    message_id: str
    back_off: int


@dataclass(frozen=True, slots=True)
class DrainBatch:
    """Compacts every session that a batch rings for, and brings its search index up to date."""

    compact: CompactSession
    index: IndexSession | None = None

    def __call__(
        self, knocks: Sequence[Knock], seconds_left: Callable[[], float] = lambda: 1e9
    ) -> tuple[FailedKnock, ...]:
        """The messages that have to come again, in order; all others are done.

        A session is looked at once for all its messages. If that fails, all its messages come again
        and other sessions are not touched by it. A message that cannot be read fails by itself,
        until the queue puts it aside.
        """
        failed: list[FailedKnock] = []
        rings: dict[SessionKey, Ring] = {}
        for knock in knocks:
            if knock.key is None or knock.ring is None:
                logger.error("unreadable doorbell", extra={"code": "DOORBELL_UNREADABLE"})
                failed.append(FailedKnock(knock.message_id, back_off(knock.receive_count)))
                continue
            known = rings.get(knock.key, Ring(0))
            rings[knock.key] = Ring(
                max(known.turn, knock.ring.turn), known.forced or knock.ring.forced
            )
        broken = {key for key, ring in rings.items() if not self._compact(key, ring, seconds_left)}
        failed += [
            FailedKnock(knock.message_id, back_off(knock.receive_count))
            for knock in knocks
            if knock.key in broken
        ]
        order = {knock.message_id: at for at, knock in enumerate(knocks)}
        return tuple(sorted(failed, key=lambda one: order[one.message_id]))

    def _compact(self, key: SessionKey, ring: Ring, seconds_left: Callable[[], float]) -> bool:
        try:
            outcome = self.compact(key, ring, seconds_left)
        except StoreError as error:
            logger.warning(
                "session not compacted",
                extra={"code": "COMPACTION_RETRIED", "error": type(error).__name__},
            )
            return False
        except Exception:
            # One session's fault must not hold up the others of the batch.
            logger.exception("session not compacted", extra={"code": "COMPACTION_FAILED"})
            return False
        logger.info("session compacted", extra={"code": "COMPACTED", "outcome": outcome.value})
        # While more turns are known to come, what they need is indexed once, with the last of them.
        if self.index is not None and outcome is not Outcome.WAITING:
            self._index(self.index, key, seconds_left)
        return True

    def _index(
        self, index: IndexSession, key: SessionKey, seconds_left: Callable[[], float]
    ) -> None:
        """Best effort: a search reads what is not indexed, and the next bell makes up for it."""
        try:
            index(key, seconds_left)
        except Exception as error:
            known = isinstance(error, StoreError)
            logger.warning(
                "session not indexed",
                extra={"code": "INDEXING_FAILED", "error": type(error).__name__},
                exc_info=None if known else error,
            )


def back_off(receive_count: int) -> int:
    """Seconds to wait before a message that was received this often comes again."""
    return BACK_OFF_SECONDS[min(max(receive_count, 1), len(BACK_OFF_SECONDS)) - 1]
