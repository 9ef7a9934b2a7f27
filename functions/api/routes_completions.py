"""OpenAI's chat completions and models: passed through, and with a session remembered."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any

from api.event_stream import CONTENT_TYPE, DONE, event, events
from api.openai_errors import openai_refused
from api.problems import RefusedError
from api.replies import Reply
from api.requests import Request, header_values, max_tokens, model_name
from api.routes import READ, WRITE, Route
from turnfold.bootstrap import Turnfold
from turnfold.domain.errors import InvalidIdError, ModelNotConfiguredError
from turnfold.domain.sessions import SessionKey, check_id

if TYPE_CHECKING:
    from turnfold.application.ports.completions import Completions
    from turnfold.application.remember_completions import CompletionRequest

COMPLETIONS, MODELS = "/v1/chat/completions", "/v1/models"
SESSION_HEADER = "X-Session-Id"
SESSION_MEMBER, BUDGET_MEMBER = "session_id", "max_context_tokens"
MAX_EVENT_CHARACTERS = 2_500_000
"""Of events that are sent at once. A chunk for each word has a frame of two hundred bytes around
it, and a Lambda answer has 6 MB, in which quotes count twice."""

NOT_KEPT = {"X-Commit-Status": "failed"}


def post_completions(request: Request, service: Turnfold) -> Reply:
    """A chat completion, as the provider gives it; with a session, its memory is added."""
    body, key = request.body, _session(request)
    streams = _flag(body, "stream")
    if key is not None:
        return _remembered(request, service, key, streams=streams)
    model = _model(service)
    asked = {name: value for name, value in body.items() if name != SESSION_MEMBER}
    if not streams:
        return Reply(body=model.complete(asked))
    return _streamed(request, model.stream(asked), lambda: iter(()), {})


def get_models(_request: Request, service: Turnfold) -> Reply:
    """The models of the provider."""
    return Reply(body=_model(service).models())


def _remembered(request: Request, service: Turnfold, key: SessionKey, *, streams: bool) -> Reply:
    asked = _asked(request.body)
    idempotent = request.idempotent(f"POST {COMPLETIONS}")
    headers = {"Idempotency-Key": request.idempotency_key}
    if not streams:
        said = service.remember_completions(key, asked, idempotent)
        if said.replayed:
            headers["Idempotency-Replayed"] = "true"
        return Reply(body=said.body, headers=headers | ({} if said.kept else NOT_KEPT))
    stream = service.remember_completions.stream(key, asked, idempotent)
    if stream.replayed:
        headers["Idempotency-Replayed"] = "true"
    last: dict[str, Any] = {}

    def watched() -> Generator[Mapping[str, Any]]:
        with closing(stream.chunks):
            for chunk in stream.chunks:
                last.update(chunk)
                yield chunk

    def end() -> Iterator[Mapping[str, Any]]:
        if not stream.kept:
            yield _not_kept(last, request.idempotency_key)

    return _streamed(request, watched(), end, headers)


def _not_kept(last: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A chunk that says nothing new to a client that does not look for it.

    The head of a streamed answer is sent before it is known whether the commit will do.
    """
    same = {name: last.get(name) for name in ("id", "object", "created", "model")}
    choice = {"index": 0, "delta": {}, "finish_reason": None}
    return {**same, "choices": [choice], "commit_status": "failed", "idempotency_key": key}


def _streamed(
    request: Request,
    chunks: Generator[Mapping[str, Any]],
    end: Callable[[], Iterator[Mapping[str, Any]]],
    headers: Mapping[str, str],
) -> Reply:
    """The events as they come, or all at once, where the host cannot pass them on.

    At once, a failure still has a status of its own, and the commit's fate a header.
    """
    if request.host_streams:
        head = {**headers, "Cache-Control": "no-cache"}
        pieces = events(chunks, end, lambda error: _error(error, request.request_id))
        return Reply(pieces=pieces, headers=head, content_type=CONTENT_TYPE)
    said, last = list(chunks), list(end())
    text = _written(said, last)
    if len(text) > MAX_EVENT_CHARACTERS:
        text = _written(_in_few(said), last)
    return Reply(
        text=text,
        headers={**headers, **(NOT_KEPT if last else {})},
        content_type=CONTENT_TYPE,
    )


def _written(*chunks: Iterable[Mapping[str, Any]]) -> str:
    return "".join((*(event(one) for one in chain(*chunks)), DONE))


def _in_few(chunks: Sequence[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """The same answer in two chunks; as it is if it has several choices."""
    from turnfold.domain.completions import Assembly, chunks_of

    whole = Assembly()
    for chunk in chunks:
        whole.add(chunk)
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index"):
                return chunks
    return chunks_of(whole.completion(), with_usage=any(one.get("usage") for one in chunks))


def _error(error: Exception, request_id: str) -> Mapping[str, Any]:
    return openai_refused(error, request_id).body or {}


def _model(service: Turnfold) -> "Completions":
    model = service.completions
    if model is None:
        raise ModelNotConfiguredError
    return model


def _session(request: Request) -> SessionKey | None:
    """The session that the header or the body names, None if neither does."""
    named = header_values(request.event, SESSION_HEADER.lower())
    member = request.body.get(SESSION_MEMBER)
    if member is not None:
        named = [*named, member]
    if not named:
        return None
    if any(one != named[0] for one in named) or not isinstance(named[0], str):
        raise InvalidIdError("name one session, as a text")
    if member is None and not named[0].isascii():
        # What its bytes mean depends on who reads a header.
        raise InvalidIdError(f"a session id beyond ASCII goes into the body, as {SESSION_MEMBER}")
    return SessionKey(request.caller.tenant, check_id(named[0], "the session id"))


def _asked(body: Mapping[str, Any]) -> "CompletionRequest":
    """What the model is asked, without this service's own members. Raises `RefusedError`."""
    from turnfold.application.remember_completions import CompletionRequest

    if body.get("n") not in (None, 1):
        raise _wrong("n", "must be 1: a conversation goes on from one answer")
    for name, instead in (("functions", "tools"), ("function_call", "tool_choice")):
        if body.get(name) is not None:
            raise _wrong(name, f"cannot be remembered; send {instead}")
    modalities = body.get("modalities")
    if body.get("audio") is not None or (isinstance(modalities, list) and "audio" in modalities):
        raise _wrong("modalities", "spoken answers cannot be remembered; ask for text")
    model_name(body.get("model"))
    own = (SESSION_MEMBER, BUDGET_MEMBER)
    return CompletionRequest(
        body={name: value for name, value in body.items() if name not in own},
        max_context_tokens=max_tokens(body.get(BUDGET_MEMBER), BUDGET_MEMBER),
    )


def _flag(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise _wrong(name, "must be true or false")


def _wrong(name: str, detail: str) -> RefusedError:
    return RefusedError(422, "invalid_parameter", f"{name}: {detail}", parameter=name)


ROUTES = (
    Route("POST", COMPLETIONS, post_completions, WRITE, openai_refused),
    Route("GET", MODELS, get_models, READ, openai_refused),
)
