"""Peppers in AWS Secrets Manager.

The secret is flat JSON, so that CloudFormation can make the first one (`GenerateSecretString`):

    {"current": "p1", "p1": "<text>", "p0": "<text>"}

A pepper is the UTF-8 bytes of its text. Neither a pepper nor any part of one gets into an error.
"""

import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from turnfold.adapters.aws_errors import mapped_errors
from turnfold.domain.api_keys import Peppers
from turnfold.domain.errors import GuardFailedError, StoreError

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

CURRENT = "current"
KEPT_SECONDS = 300.0
"""A rotation is noticed within this time, or with the first key made after it."""

REREAD_SECONDS = 10.0
"""A pepper that is missing is looked for at most this often."""

SHORTEST = 32
"""Bytes; an HMAC's key should be as long as its hash."""


class SecretPeppers:
    """A `PepperStore` over one secret."""

    def __init__(
        self,
        client: "Callable[[], SecretsManagerClient]",
        secret: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`secret` is its ARN or name; `client` is called first; `clock` counts seconds."""
        self._client = client
        self._secret = secret
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: Peppers | None = None
        self._read_at = 0.0

    def read(self, wanted: str | None = None) -> Peppers:
        """See `PepperStore`; a GetSecretValue every five minutes.

        While the service does not answer, what was read before stays valid.
        """
        with self._lock:
            age = self._clock() - self._read_at
            missing = self._kept is not None and wanted not in (None, *self._kept.secrets)
            if self._kept is None or age > (REREAD_SECONDS if missing else KEPT_SECONDS):
                try:
                    self._kept = self._fetch()
                except StoreError:
                    if self._kept is None:
                        raise
                self._read_at = self._clock()
            return self._kept

    def write(self, peppers: Peppers, expected_current: str) -> None:
        """See `PepperStore`; a GetSecretValue and a PutSecretValue.

        Two rotations at the same moment are not told apart: Secrets Manager has no conditional
        write. One person rotates.
        """
        if self._fetch().current != expected_current:
            raise GuardFailedError("pepper")
        text = json.dumps(
            {CURRENT: peppers.current}
            | {name: pepper.decode() for name, pepper in peppers.secrets.items()}
        )
        with mapped_errors("write the pepper"):
            self._client().put_secret_value(SecretId=self._secret, SecretString=text)
        with self._lock:
            self._kept = None

    def _fetch(self) -> Peppers:
        with mapped_errors("read the pepper"):
            answer = self._client().get_secret_value(SecretId=self._secret)
        peppers = _read(answer.get("SecretString", ""))
        if peppers is None:
            raise StoreError("read the pepper: the secret is not of the expected form")
        return peppers


def _read(text: str) -> Peppers | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        return None
    secrets = {name: one.encode() for name, one in value.items() if name != CURRENT}
    current = str(value.get(CURRENT))
    if current not in secrets or min(map(len, secrets.values())) < SHORTEST:
        return None
    return Peppers(current, secrets)
