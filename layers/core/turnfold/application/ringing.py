"""Ringing and postponing without letting it matter: what fails is made good by itself."""

import logging

from turnfold.application.ports.bells import ArchiveBell, Doorbell
from turnfold.domain.errors import StoreError
from turnfold.domain.segments import next_segment
from turnfold.domain.sessions import Session, SessionKey

logger = logging.getLogger("turnfold")


def ring_archivist_gently(bell: ArchiveBell, session: Session) -> bool:
    """Ring the archivist if there are records to roll up; whether it was rung.

    The ring's id is that of the work, so rings for the same are one message. If it fails, the next
    one that has to do with the session rings again.
    """
    if next_segment(session.committed_through, session.archived_through) is None:
        return False
    ring_id = f"{session.epoch}-{session.archived_through}-{session.committed_through}"
    try:
        bell.ring(session.key, ring_id)
    except StoreError:
        logger.warning("archive bell not rung", extra={"code": "DOORBELL_FAILED"})
        return False
    return True


def ring_gently(
    doorbell: Doorbell, key: SessionKey, ring_id: str, turn: int, *, forced: bool = False
) -> bool:
    """Ring; whether it worked. What is pending stays due, so the sweeper rings again."""
    try:
        doorbell.ring(key, ring_id, turn, forced=forced)
    except StoreError:
        logger.warning("doorbell not rung", extra={"code": "DOORBELL_FAILED"})
        return False
    return True


def postpone_gently(bell: Doorbell | ArchiveBell, receipt: str, seconds: int) -> None:
    """Let a message come again after a time; if that fails, when its visibility runs out."""
    try:
        bell.postpone(receipt, seconds)
    except StoreError as error:
        logger.warning(
            "message not postponed", extra={"code": "POSTPONE_FAILED", "reason": str(error)}
        )
