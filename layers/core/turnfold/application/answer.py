"""What a use case that can be repeated answers, and how a repetition is recognised."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from turnfold.application.ports.memory import IdempotencyRecord
from turnfold.domain.errors import IdempotencyMismatchError
from turnfold.domain.limits import IDEMPOTENCY_SECONDS
from turnfold.domain.transcript import sha256_of


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a body as the contract states them. `replayed` tells a stored one."""

    status: int
    body: Mapping[str, Any]
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A writing request under its Idempotency-Key.

    `key_hash` covers route and key; tenant and session are in the item's own key. `request_hash`
    covers the body, whatever the order of its members.
    """

    key_hash: str
    request_hash: str

    @classmethod
    def of(cls, route: str, key: str, body: object) -> "IdempotentRequest":
        """The request of a key on a route with a body."""
        digest = hashlib.sha256(f"{route}\n{key}".encode()).hexdigest()
        return cls(digest, sha256_of(body))

    def replay(self, record: IdempotencyRecord) -> Answer:
        """The stored answer. Raises `IdempotencyMismatchError` if the body was another."""
        if record.request_hash != self.request_hash:
            raise IdempotencyMismatchError("the Idempotency-Key was used with another body")
        return Answer(record.status, record.body, replayed=True)

    def record(self, status: int, body: Mapping[str, Any], now: datetime) -> IdempotencyRecord:
        """What to store beside the write that this request asks for."""
        return IdempotencyRecord(
            key_hash=self.key_hash,
            request_hash=self.request_hash,
            status=status,
            body=body,
            expires_at=now + timedelta(seconds=IDEMPOTENCY_SECONDS),
        )
