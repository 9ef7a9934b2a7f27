"""Embeddings: batches, shapes of answers, failures."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from turnfold.adapters.openai_embeddings import (
    BATCH_TEXTS,
    TEXT_CHARACTERS,
    OpenAIEmbeddings,
)
from turnfold.domain.errors import ModelFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def embedding(text: str) -> list[float]:
    return [float(text.count(letter)) for letter in "abc"]


def good(texts: Sequence[str]) -> Any:
    data = [{"index": at, "embedding": embedding(text)} for at, text in enumerate(texts)]
    return {"data": data[::-1]}


class Endpoint:
    """An endpoint that answers by a function, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answer: Callable[[Sequence[str]], Any] = good
        self.status = 200
        self.asked: list[Any] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.asked.append(body)
                answer = json.dumps(endpoint.answer(body["input"])).encode()
                self.send_response(endpoint.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def embeddings(self, **options: Any) -> OpenAIEmbeddings:
        return OpenAIEmbeddings(lambda: "key", base_url=self.url, **options)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_vectors_come_in_order_and_of_length_one(endpoint: Endpoint) -> None:
    vectors = endpoint.embeddings().embed(["aab", " ", "c"])
    assert [round(one, 3) for one in vectors[0]] == [0.894, 0.447, 0.0]
    assert vectors[1:] == [(), (0.0, 0.0, 1.0)]
    assert endpoint.asked[0]["input"] == ["aab", "c"]


def test_many_and_long_texts_are_sent_in_pieces(endpoint: Endpoint) -> None:
    vectors = endpoint.embeddings().embed(["a" * (TEXT_CHARACTERS * 2)] + ["b"] * BATCH_TEXTS)
    assert len(vectors) == BATCH_TEXTS + 1
    assert [len(one["input"]) for one in endpoint.asked] == [BATCH_TEXTS, 1]
    assert len(endpoint.asked[0]["input"][0]) == TEXT_CHARACTERS


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"data": None},
        {"data": []},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": ["x"]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]},
        [],
    ],
    ids=str,
)
def test_an_answer_of_another_shape_is_a_failure(endpoint: Endpoint, answer: Any) -> None:
    endpoint.answer = lambda _texts: answer
    with pytest.raises(ModelFailedError):
        endpoint.embeddings().embed(["a", "b"])


def test_a_refusal_tells_its_status_and_no_text(endpoint: Endpoint) -> None:
    endpoint.answer = lambda texts: {"error": {"message": f"bad {texts}"}}
    endpoint.status = 400
    with pytest.raises(ModelFailedError) as caught:
        endpoint.embeddings().embed(["private words"])
    assert caught.value.status == 400
    assert "private" not in str(caught.value)


def test_an_endpoint_that_is_silent_is_given_up(endpoint: Endpoint) -> None:
    release = threading.Event()
    endpoint.answer = lambda texts: release.wait(5) and good(texts)
    with pytest.raises(ModelFailedError, match="in time"):
        endpoint.embeddings(seconds=0.3).embed(["a"])
    release.set()
