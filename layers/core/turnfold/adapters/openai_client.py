"""The `openai` client, made when it is first needed: importing it takes a third of a second."""

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openai import OpenAI


class LazyClient:
    """Makes the client at the first call, once. Safe for use from several threads."""

    def __init__(
        self, api_key: Callable[[], str], base_url: str | None, *, second_tries: int = 0
    ) -> None:
        """`api_key` is called for every request. Without `base_url` it is OpenAI's endpoint.

        There are no second tries by default: those who use it know what time is left.
        """
        self._api_key = api_key
        self._base_url = base_url
        self._second_tries = second_tries
        self._making = threading.Lock()
        self._client: OpenAI | None = None

    def __call__(self) -> "OpenAI":
        """The client."""
        with self._making:
            if self._client is None:
                from openai import OpenAI

                # At the level "debug" they log what is sent.
                for name in ("openai", "httpx2", "httpcore2"):
                    logging.getLogger(name).setLevel(logging.WARNING)
                self._client = OpenAI(
                    api_key=self._api_key,
                    base_url=self._base_url,
                    max_retries=self._second_tries,
                )
            return self._client
