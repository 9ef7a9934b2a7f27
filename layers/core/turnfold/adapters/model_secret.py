"""The model provider's API key, from AWS Secrets Manager."""

import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from turnfold.domain.errors import ModelFailedError, ModelNotConfiguredError

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

KEY_MEMBER = "OPENAI_API_KEY"
KEPT_SECONDS = 300.0
"""A rotated key is picked up within this time; until then both keys should work."""

_ABSENT = frozenset({"ResourceNotFoundException", "InvalidRequestException"})


class ModelSecret:
    """Reads the key when it is first needed and keeps it for five minutes; call it to get the key.

    The secret is the key itself or JSON with a member `OPENAI_API_KEY`. Neither the secret nor any
    part of it gets into an error or a log.
    """

    def __init__(
        self,
        arn: str,
        client: "Callable[[], SecretsManagerClient]",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`client` is called at the first read; `clock` counts seconds."""
        self._arn = arn
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._key: str | None = None
        self._read_at = 0.0

    def __call__(self) -> str:
        """The key.

        Raises `ModelNotConfiguredError` if the secret is absent or holds no key, and
        `ModelFailedError` if it cannot be read now and none was read before.
        """
        with self._lock:
            if self._key is None or self._clock() - self._read_at > KEPT_SECONDS:
                self._key = self._read() or self._key
                self._read_at = self._clock()
            if self._key is None:
                raise ModelFailedError("the secret with the model's key cannot be read")
            return self._key

    def _read(self) -> str | None:
        """The key now; None if the service does not answer or refuses."""
        try:
            secret = self._client().get_secret_value(SecretId=self._arn)
        except ClientError as error:
            absent = error.response.get("Error", {}).get("Code") in _ABSENT
        except BotoCoreError:
            absent = False
        else:
            return _key_inside(secret.get("SecretString", ""))
        if absent:
            raise ModelNotConfiguredError("the secret with the model's key does not exist")
        return None


def _key_inside(secret: str) -> str:
    try:
        value = json.loads(secret)
    except ValueError:
        value = secret
    key = value.get(KEY_MEMBER) if isinstance(value, dict) else secret
    if not isinstance(key, str) or not key.strip():
        raise ModelNotConfiguredError("the secret of the model holds no key")
    return key.strip()
