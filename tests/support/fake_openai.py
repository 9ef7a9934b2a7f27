"""An OpenAI-compatible endpoint on loopback that answers by rules and remembers what it was asked.

Without a rule it summarises: the first sentences of the data, or the emptiest instance of the JSON
schema that was asked for. A rule answers the next requests that hold a text, in one of the ways in
which real endpoints answer or fail.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, override

Json = dict[str, Any]

_CONTENT = re.compile(r'"content"\s*:\s*("(?:[^"\\]|\\.)*")')
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_SHARE = 3
OK = 200
_MOST = 400


@dataclass
class Rule:
    """How to answer. `match` must occur in the request; `times` None means for ever.

    `text` or `message` is said; `body` is sent instead of a completion, as JSON or as bytes. The
    answer comes after `seconds`, byte by byte with pauses of `drip` seconds, or, with `hang_up`,
    not at all. A request to stream is answered in chunks, or by these `chunks`; `before_chunk` is
    told the number of each one before it is sent, and after `cut_after` of them the connection
    breaks. `left` is set when the client leaves before the end.
    """

    match: str = ""
    times: int | None = 1
    status: int = 200
    text: str | None = None
    message: Json | None = None
    finish_reason: str | None = "stop"
    body: Json | list[Any] | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    drip: float = 0.0
    hang_up: bool = False
    chunks: Iterable[Json] | None = None
    before_chunk: Callable[[int], object] = lambda _number: None
    cut_after: int | None = None
    left: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Asked:
    """One request: its path, its headers by small letters, and its body."""

    path: str
    headers: Mapping[str, str]
    body: Json
    at: float


class FakeOpenAI:
    """The endpoint, running until `stop`. Use as a context manager."""

    def __init__(self, port: int = 0) -> None:
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._asked: list[Asked] = []
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.fake = self
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def script(self, *rules: Rule) -> None:
        """Add rules; the first one that fits a request answers it."""
        with self._lock:
            self._rules.extend(rules)

    def clear(self) -> None:
        """Drop all rules."""
        with self._lock:
            self._rules.clear()

    def requests(self, match: str = "") -> list[Asked]:
        """What was asked so far, with that text in the body."""
        with self._lock:
            return [one for one in self._asked if match in _as_text(one.body)]

    def take(self, asked: Asked) -> Rule | None:
        """Remember a request and use up the rule that answers it."""
        with self._lock:
            self._asked.append(asked)
            for rule in self._rules:
                if rule.match in _as_text(asked.body):
                    if rule.times is not None:
                        rule.times -= 1
                        self._rules = [one for one in self._rules if one.times != 0]
                    return rule
        return None

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start(port: int = 0) -> FakeOpenAI:
    """A running endpoint; port 0 takes a free one."""
    return FakeOpenAI(port)


def completion(request: Json, message: Json | None, finish_reason: str | None = "stop") -> Json:
    """A chat completion that says the message."""
    choice = {"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": None}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request.get("model"),
        "choices": [choice],
        "usage": usage,
    }


def chunk(delta: Json, finish_reason: str | None = None, **members: Any) -> Json:
    """A chunk of a streamed answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [choice], **members}


def in_chunks(whole: Json, *, with_usage: bool) -> Iterator[Json]:
    """A completion as a stream: word by word, and the arguments of tool calls in halves."""
    choice, model = whole["choices"][0], {"model": whole["model"]}
    message = choice["message"]
    yield chunk({"role": "assistant", "content": "", "refusal": None}, **model)
    for word in re.findall(r"\S*\s*", message.get("content") or ""):
        if word:
            yield chunk({"content": word}, **model)
    if message.get("refusal"):
        yield chunk({"refusal": message["refusal"]}, **model)
    for at, call in enumerate(message.get("tool_calls") or []):
        given = call["function"]["arguments"]
        half = len(given) // 2
        begun = {**call, "index": at, "function": {**call["function"], "arguments": given[:half]}}
        yield chunk({"tool_calls": [begun]}, **model)
        rest = {"index": at, "function": {"arguments": given[half:]}}
        yield chunk({"tool_calls": [rest]}, **model)
    yield chunk({}, choice["finish_reason"], **model)
    if with_usage:
        yield {**chunk({}, **model), "choices": [], "usage": whole["usage"]}


def summary(data: str) -> str:
    """The first sentences of the contents in a prompt, at most a third of them."""
    contents = [json.loads(one) for one in _CONTENT.findall(data)]
    source = "\n".join(contents) or data
    limit = min(_MOST, len(source) // _SHARE)
    taken = ""
    for sentence in _SENTENCE_END.split(source):
        if taken and len(taken) + len(sentence) >= limit:
            break
        taken = f"{taken} {sentence}".strip()
    return taken[:limit] or "Noted."


def emptiest(schema: Json) -> object:
    """The instance of a strict schema that says least."""
    kind = schema.get("type")
    if kind == "object":
        return {name: emptiest(one) for name, one in schema["properties"].items()}
    empty: dict[str, Callable[[], Any]] = {"array": list, "string": str, "boolean": bool}
    return empty.get(str(kind), lambda: None if "anyOf" in schema else 0)()


def _as_text(body: Json) -> str:
    return json.dumps(body, ensure_ascii=False)


def _usual_text(request: Json) -> str:
    wanted = request.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return json.dumps(emptiest(wanted["json_schema"]["schema"]))
    content = request["messages"][-1].get("content")
    if isinstance(content, str):
        return summary(content)
    return "a list of parts"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    fake: FakeOpenAI


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        rule = self.server.fake.take(Asked(self.path, headers, {}, time.monotonic())) or Rule(
            body={"object": "list", "data": [{"id": "talker", "object": "model"}]}
        )
        self._send(rule, self._content(rule, {}))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request: Json = json.loads(raw)
        asked = Asked(
            self.path,
            {name.lower(): value for name, value in self.headers.items()},
            request,
            time.monotonic(),
        )
        rule = self.server.fake.take(asked) or Rule()
        if rule.seconds:
            time.sleep(rule.seconds)
        if rule.hang_up:
            self.close_connection = True
            return
        if self.path != "/v1/chat/completions":
            rule = Rule(status=404, body={"error": {"message": "no such path"}})
        if request.get("stream") and rule.status == OK and rule.body is None:
            self._stream(rule, request)
        else:
            self._send(rule, self._content(rule, request))

    def _stream(self, rule: Rule, request: Json) -> None:
        chunks = rule.chunks
        if chunks is None:
            options = request.get("stream_options") or {}
            whole = json.loads(self._content(rule, request))
            chunks = in_chunks(whole, with_usage=bool(options.get("include_usage")))
        self.close_connection = True
        self.send_response(rule.status)
        for name, value in {"Content-Type": "text/event-stream", **rule.headers}.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for number, one in enumerate(chunks):
                if number == rule.cut_after:
                    return
                rule.before_chunk(number)
                self._send_chunk(b"data: " + json.dumps(one).encode() + b"\n\n")
            self._send_chunk(b"data: [DONE]\n\n")
            self._send_chunk(b"")
        except OSError:
            rule.left.set()

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _content(self, rule: Rule, request: Json) -> bytes:
        if isinstance(rule.body, bytes):
            return rule.body
        if rule.body is not None:
            return json.dumps(rule.body).encode()
        message = rule.message
        if message is None:
            text = _usual_text(request) if rule.text is None else rule.text
            message = {"role": "assistant", "content": text, "refusal": None}
        return json.dumps(completion(request, message, rule.finish_reason)).encode()

    def _send(self, rule: Rule, content: bytes) -> None:
        self.send_response(rule.status)
        headers = {"Content-Type": "application/json", **rule.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            if rule.drip:
                for at in range(len(content)):
                    self.wfile.write(content[at : at + 1])
                    time.sleep(rule.drip)
            else:
                self.wfile.write(content)
        except OSError:  # the client gave up, which is what some tests are about
            self.close_connection = True

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""
