"""Chat completions passed through to an OpenAI-compatible endpoint; implements `Completions`.

By the `openai` client, but not by its classes for requests and answers, which would change both.
What an endpoint says about a request that it refuses goes to whoever made that request, in
`ModelRefusedError.refusal`, and nowhere else.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from turnfold.adapters.deadlines import DeadlinePassedError, iterate_within, run_within
from turnfold.adapters.openai_client import LazyClient
from turnfold.adapters.openai_completions import CONNECT_SECONDS, failure_of
from turnfold.application.ports.completions import Chunks
from turnfold.domain.clean_json import clean_value, parse_json
from turnfold.domain.errors import (
    BadJsonError,
    ModelError,
    ModelFailedError,
    ModelRefusedError,
    Refusal,
)

if TYPE_CHECKING:
    from openai import Stream

PATH = "/chat/completions"
LATE = "the model did not answer in time"
BUSY = 429
ABOUT_THE_REQUEST = frozenset({400, 404, 413, 415, 422, BUSY})
"""What the caller can do something about. 401 and 403 are about the service's own key."""


class OpenAIPassthrough:
    """Asks one endpoint, once, within a total time. Safe for use from several threads."""

    def __init__(
        self,
        api_key: Callable[[], str],
        *,
        base_url: str | None = None,
        seconds: float,
        default_model: str,
    ) -> None:
        """`seconds` are for a whole answer, streamed or not.

        Only a request that names no model is completed, by `default_model`.
        """
        self._api_key = api_key
        self._client = LazyClient(api_key, base_url)
        self._seconds = seconds
        self._default_model = default_model

    def complete(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Completions`."""
        return self._whole("post", PATH, {"body": self._named(body)})

    def models(self) -> Mapping[str, Any]:
        """See `Completions`."""
        return self._whole("get", "/models", {})

    def stream(self, body: Mapping[str, Any], *, with_usage: bool = False) -> Chunks:
        """See `Completions`."""
        asked = self._named(body)
        options = asked.get("stream_options") or {}
        if with_usage and isinstance(options, dict):
            counted = {**asked, "stream_options": {**options, "include_usage": True}}
            try:
                return self._begin(counted)
            except ModelRefusedError as error:
                # Not every server knows how to count; the caller did not ask for it.
                if "stream_options" not in f"{error.refusal.message} {error.refusal.param}":
                    raise
        return self._begin(asked)

    def _named(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {**body, "model": body.get("model") or self._default_model}

    def _whole(self, method: str, path: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        def ask() -> bytes:
            client: Any = self._client()
            from httpx2 import Response

            answer = getattr(client, method)(
                path, cast_to=Response, options=self._options(), **given
            )
            content: bytes = answer.content
            return content

        with self._failures():
            content = run_within(self._seconds, ask)
        try:
            answer = parse_json(content)
        except BadJsonError:
            raise ModelFailedError("the model's answer is not JSON") from None
        if not isinstance(answer, dict):
            raise ModelFailedError("the model's answer is not a JSON object")
        return answer

    def _begin(self, body: Mapping[str, Any]) -> Chunks:
        def ask() -> "Stream[object]":
            client = self._client()
            from openai import Stream

            return client.post(
                PATH,
                cast_to=object,
                body=dict(body),
                options=self._options(),
                stream=True,
                stream_cls=Stream[object],
            )

        with self._failures():
            return _chunks(iterate_within(self._seconds, ask))

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise a `ModelFailedError` for whatever the client raises."""
        try:
            yield
        except DeadlinePassedError:
            raise ModelFailedError(LATE) from None
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a foreign client raises is a failure
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> ModelFailedError:
        """The failure for an exception of the client."""
        failure = failure_of(error, {})
        if failure.status not in ABOUT_THE_REQUEST:
            return ModelFailedError(failure.reason, failure.status, passing=failure.transient)
        refused: Any = error
        said = _said(refused.body)
        refusal = Refusal(
            message=self._without_key(_text(said.get("message")) or failure.reason),
            kind=_text(said.get("type")),
            code=_text(said.get("code")),
            param=_text(said.get("param")),
            retry_after=refused.response.headers.get("retry-after"),
        )
        return ModelRefusedError(failure.reason, failure.status, refusal)

    def _without_key(self, text: str) -> str:
        """No endpoint has a reason to quote the key here; should one do so, it ends here."""
        return text.replace(self._api_key(), "***")

    def _options(self) -> Any:  # noqa: ANN401 - a type of the client, which is not imported yet
        from openai import Timeout

        connect = min(CONNECT_SECONDS, self._seconds)
        return {"timeout": Timeout(self._seconds, connect=connect)}


def _chunks(events: Generator[object]) -> Chunks:
    """The chunks of a stream that has begun."""
    seen = False
    try:
        for event in events:
            if isinstance(event, dict):
                seen = True
                yield clean_value(event)
    except DeadlinePassedError:
        raise ModelFailedError(LATE) from None
    except BadJsonError:
        raise ModelFailedError("a chunk of the model's answer cannot be used") from None
    except Exception as error:  # noqa: BLE001 - whatever a foreign client raises is a failure
        passing = failure_of(error, {}).transient
        raise ModelFailedError("the model's answer broke off", passing=passing) from None
    finally:
        events.close()
    if not seen:
        raise ModelFailedError("the model's answer is no stream of chunks")


def _said(body: object) -> Mapping[str, Any]:
    """What an endpoint says about a request, in OpenAI's form or one that others have for it."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return {"message": body}
    inside = body.get("error")
    if isinstance(inside, dict):
        return inside
    return {**body, "message": body.get("message") or inside or body.get("detail")}


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str | int) and value != "" else None
