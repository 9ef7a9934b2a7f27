"""Ringing the doorbell without letting it matter: the sweeper finds what was not heard."""

import logging

from turnfold.application.ports import Doorbell
from turnfold.domain.errors import StoreError
from turnfold.domain.sessions import SessionKey

logger = logging.getLogger("turnfold")


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
