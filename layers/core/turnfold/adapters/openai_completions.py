"""Chat completions of an OpenAI-compatible endpoint, by the `openai` client.

The client takes a third of a second and more to import, so nothing of it is loaded before the first
call. Answers are read as plain JSON and not through the client's classes, which take any shape for
granted.

Nothing that was said in a conversation and no part of the key gets into an error or a log: error
bodies of providers quote both.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from turnfold.adapters.deadlines import DeadlinePassedError, run_within
from turnfold.adapters.openai_client import LazyClient
from turnfold.domain.clean_json import parse_json
from turnfold.domain.errors import BadJsonError, ModelError, ModelFailedError

COMPACTOR_SECONDS = 45.0
API_SECONDS = 20.0
"""The Lambda of the API has 29 seconds, and needs some for the store."""
CONNECT_SECONDS = 3.0

PAUSE_SECONDS = 0.5
LEAST_SECONDS = 1.0
"""With less time left, a second try would only be cut off."""

_TRANSIENT_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_BAD_REQUEST_STATUSES = (400, 422)
_FIRST_ERROR, _LAST_ERROR = 400, 599
_UNKNOWN_PARAMETER = re.compile(
    r"unsupported|not supported|unrecogni[sz]ed|unknown|unexpected|not permitted|extra_forbidden"
    r"|extra inputs|unavailable",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}")

MAX_COMPLETION_TOKENS = "max_completion_tokens"
_OTHER_SPELLINGS: Mapping[str, str | None] = {
    # OpenAI's reasoning models refuse `max_tokens`; some compatible servers know nothing else
    # (Mistral refuses the new name, others pass over it).
    MAX_COMPLETION_TOKENS: "max_tokens",
    # Servers without structured output get the schema in words: the prompts describe it.
    "response_format": None,
}
"""Parameters that not every server knows, and what to send in their place."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with a call. `transient` if the same call may do well a little later."""

    reason: str
    status: int | None = None
    transient: bool = False
    wait_seconds: float = PAUSE_SECONDS
    unknown_parameter: str | None = None

    @property
    def is_worth_another_try(self) -> bool:
        """Whether a second try may do well, also one that is put differently."""
        return self.transient or self.unknown_parameter is not None


class OpenAICompletions:
    """Asks one endpoint within a total time. Safe for use from several threads."""

    def __init__(
        self,
        api_key: Callable[[], str],
        *,
        base_url: str | None = None,
        seconds: float = COMPACTOR_SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`api_key` is called for every request. `seconds` is for a call with its second try.

        Without `base_url` it is OpenAI's own endpoint.
        """
        self._client = LazyClient(api_key, base_url)
        self._seconds = seconds
        self._connect_seconds = connect_seconds
        self._sleep = sleep
        self._unknown: frozenset[str] = frozenset()

    def create(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The endpoint's answer: JSON with at least one choice that has a message.

        A second try is made, if time allows, when the connection broke, when the endpoint is busy
        or broken, and when it does not know a parameter that can be put differently (which is
        remembered). Raises `ModelFailedError`, or what `api_key` raises.
        """
        end = time.monotonic() + self._seconds
        outcome = self._try(request, self._seconds)
        if isinstance(outcome, Failure) and outcome.is_worth_another_try:
            if outcome.unknown_parameter:
                self._unknown |= {outcome.unknown_parameter}
            if time.monotonic() + outcome.wait_seconds + LEAST_SECONDS < end:
                self._sleep(outcome.wait_seconds)
                outcome = self._try(request, end - time.monotonic())
        if isinstance(outcome, Failure):
            raise ModelFailedError(outcome.reason, outcome.status)
        return outcome

    def _try(self, request: Mapping[str, Any], seconds: float) -> Mapping[str, Any] | Failure:
        body = self._spelled(request)
        try:
            content = run_within(seconds, lambda: self._post(body, seconds))
        except ModelError:
            raise
        except DeadlinePassedError:
            return Failure("the model did not answer in time")
        except Exception as error:  # noqa: BLE001 - whatever a foreign client raises is a failure
            return failure_of(error, body)
        return _answer(content)

    def _post(self, body: Mapping[str, Any], seconds: float) -> bytes:
        client = self._client()
        from openai import Timeout

        completions: Any = client.chat.completions.with_raw_response
        timeout = Timeout(seconds, connect=min(self._connect_seconds, seconds))
        content: bytes = completions.create(**body, timeout=timeout).content
        return content

    def _spelled(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The request as far as this endpoint is known to understand it."""
        body: dict[str, Any] = {}
        for name, value in request.items():
            spelling: str | None = name
            while spelling in self._unknown:
                spelling = _OTHER_SPELLINGS.get(spelling)
            if spelling is not None:
                body[spelling] = value
        return body


def failure_of(error: Exception, body: Mapping[str, Any]) -> Failure:
    """What went wrong, by the client's exception; its texts are read but not repeated."""
    from httpx2 import ConnectTimeout
    from openai import APIConnectionError, APIStatusError, APITimeoutError

    if isinstance(error, APITimeoutError) and not isinstance(error.__cause__, ConnectTimeout):
        return Failure("the model did not answer in time")
    if isinstance(error, APIConnectionError):
        return Failure("the model could not be reached", transient=True)
    if not isinstance(error, APIStatusError):
        return Failure(f"the request to the model failed ({type(error).__name__})")
    status = error.status_code
    unknown = _unknown_parameter(error, body)
    return Failure(
        _reason("the model refused the request", error.code),
        status,
        transient=status in _TRANSIENT_STATUSES,
        wait_seconds=0 if unknown else _wanted_wait(error.response.headers.get("retry-after")),
        unknown_parameter=unknown,
    )


def _reason(text: str, code: object) -> str:
    """The text with the provider's error code, if it is a plain word."""
    word = isinstance(code, str) and _CODE.fullmatch(code)
    return f"{text}: {code}" if word else text


def _unknown_parameter(error: Any, body: Mapping[str, Any]) -> str | None:  # noqa: ANN401 - see failure_of
    """Which of the parameters that can be put differently the endpoint does not know."""
    complaint = str(error.body)
    if error.status_code not in _BAD_REQUEST_STATUSES or not _UNKNOWN_PARAMETER.search(complaint):
        return None
    names = [name for name in (*_OTHER_SPELLINGS, "max_tokens") if name in body]
    named = [name for name in names if error.param == name] or [
        name for name in names if re.search(rf"\b{name}\b", complaint)
    ]
    return named[0] if named else None


def _wanted_wait(retry_after: str | None) -> float:
    try:
        return max(0.0, float(retry_after or PAUSE_SECONDS))
    except ValueError:
        return PAUSE_SECONDS


def _answer(content: bytes) -> Mapping[str, Any] | Failure:
    """The body of a 200, if it is a completion."""
    try:
        body = parse_json(content)
    except BadJsonError:
        return Failure("the model's answer is not JSON")
    if not isinstance(body, dict):
        return Failure("the model's answer is not a completion")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return _error_inside(body.get("error")) or Failure("the model's answer has no choice")
    choice = choices[0]
    if not isinstance(choice, dict):
        return Failure("the model's answer is not a completion")
    if not isinstance(choice.get("message"), dict):
        return _error_inside(choice.get("error")) or Failure("the model's answer has no message")
    return body


def _error_inside(error: object) -> Failure | None:
    """Gateways report what failed behind them in a body with the status 200."""
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    status = code if type(code) is int and _FIRST_ERROR <= code <= _LAST_ERROR else None
    return Failure(
        _reason("the model answered with an error", code), status, status in _TRANSIENT_STATUSES
    )
