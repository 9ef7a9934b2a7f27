"""Keeping beside the transcript what people said about a session, and what stands in no transcript.

Pins by hand, settings, system messages, a legal hold: they live in the table, and a snapshot holds
them once a session is put away. Here they are kept as soon as they are changed, so that they come
back with a session whose table is lost.
"""

import logging
from dataclasses import dataclass, replace

from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.shelf import Snapshots
from turnfold.domain.errors import StoreError
from turnfold.domain.sessions import Session, SessionKey, SessionStatus
from turnfold.domain.snapshots import pack_snapshot

logger = logging.getLogger("turnfold")

KEPT = "by-hand"
"""The name of that snapshot: there is one, and each change replaces it."""

ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class KeepByHand:
    """Keeps what a session cannot be made anew with from its transcript alone."""

    store: MemoryStore
    snapshots: Snapshots

    def __call__(self, key: SessionKey) -> None:
        """Keep what there is now; best effort, since the change itself is stored already.

        Of two that do so at once, the one that comes last keeps what both have changed.
        """
        try:
            for _ in range(ATTEMPTS):
                memory = self.store.load(key, with_turns=False)
                if memory is None or memory.session.status is not SessionStatus.LIVE:
                    return
                short = replace(memory, summaries=())
                self.snapshots.put(key, KEPT, pack_snapshot(short))
                now, _ = self.store.read_session(key, None)
                if now is None or _said(now) == _said(memory.session):
                    return
        except StoreError:
            logger.warning("changes by hand not kept", extra={"code": "KEEP_FAILED"})


def _said(session: Session) -> tuple[object, ...]:
    """What tells whether anything has changed that is kept."""
    return session.epoch, session.pin_rev, session.profile_rev, session.legal_hold
