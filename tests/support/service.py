"""The whole service in this process: real use cases, in-memory adapters, a model of the queue."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from support.fifo_queue import InMemoryFifoQueue, ManualClock, ReceivedMessage
from turnfold.adapters.extractive import ExtractiveSummariser
from turnfold.adapters.in_memory_archive import InMemoryArchive
from turnfold.adapters.in_memory_archive_bell import InMemoryArchiveBell
from turnfold.adapters.in_memory_doorbell import InMemoryDoorbell
from turnfold.adapters.in_memory_erasures import InMemoryErasures
from turnfold.adapters.in_memory_index import InMemoryRecallIndex
from turnfold.adapters.in_memory_store import InMemoryStore
from turnfold.adapters.in_memory_vectors import InMemoryVectors
from turnfold.adapters.rule_judge import RuleJudge
from turnfold.adapters.sqs_doorbell import DoorbellMessage, parse_doorbell
from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.commit_turn import CommitTurn, TurnToCommit
from turnfold.application.compact_session import CompactSession, Ring
from turnfold.application.drain_batch import DrainBatch, Knock
from turnfold.application.index_session import IndexSession
from turnfold.application.judge_now import JudgeNow
from turnfold.application.judge_pins import PinJudge
from turnfold.application.live_pieces import LivePieces
from turnfold.application.piece_vectors import PieceVectors
from turnfold.application.pins_by_hand import Pins
from turnfold.application.ports.models import ModelAnswer, ModelRequest, TokenCounter
from turnfold.application.prompts import PromptLibrary
from turnfold.application.read_context import ReadContext
from turnfold.application.read_index import IndexCaches, ReadIndex
from turnfold.application.read_transcript import Transcript
from turnfold.application.read_turns import ReadTurns
from turnfold.application.recall import Recall
from turnfold.application.search_session import SearchSession
from turnfold.application.search_tenant import SearchTenant
from turnfold.application.sessions import Sessions
from turnfold.application.summary_writer import PaidAnswers, SummaryWriter
from turnfold.application.sweep import Sweep
from turnfold.domain.errors import ModelFailedError, TurnfoldError
from turnfold.domain.sessions import SessionKey
from turnfold.domain.settings import Settings, merge_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnfold.application.ports.recall import Embedder, VectorIndex
    from turnfold.domain.memory import WorkingMemory

START = datetime(2026, 1, 1, tzinfo=UTC)
KEY = SessionKey("tenant", "s1")
_CAP = re.compile(r"at most (\d+) tokens")
_CONTENT = re.compile(r'"content": ("(?:[^"\\]|\\.)*")')


def count_words(text: str) -> int:
    """A counter for tests: a token for every four bytes, so no tokenizer is loaded."""
    return -(-len(text.encode()) // 4)


class WordCounter:
    """`TokenCounter` by `count_words`."""

    def count(self, text: str, model: str | None = None) -> int:
        return count_words(text)


type Reply = str | ModelAnswer | Exception


@dataclass
class ScriptedModel:
    """A model that answers from a script, else by the beginning of what it was given."""

    name: str = "scripted"
    replies: list[Reply] = field(default_factory=list)
    requests: list[ModelRequest] = field(default_factory=list)
    always: Callable[[ModelRequest], Reply] | None = None

    def ask(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        reply = self._reply(request)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, ModelAnswer):
            return reply
        return ModelAnswer(reply, "stop", self.name)

    def purposes(self) -> list[str]:
        return [request.purpose for request in self.requests]

    def _reply(self, request: ModelRequest) -> Reply:
        if self.replies:
            return self.replies.pop(0)
        return self.always(request) if self.always else usual_reply(request)


def usual_reply(request: ModelRequest) -> str:
    """No pins; a summary of the first words of each text, a quarter of the source or the cap."""
    if request.purpose == "pin_judgement":
        return json.dumps({"facts": [], "retracted_pin_ids": []})
    texts = [json.loads(one) for one in _CONTENT.findall(request.data)]
    if request.purpose == "pin_aggregation":
        ids = re.findall(r'"pin_id": "([^"]+)"', request.data)
        return json.dumps({"facts": [{"text": "; ".join(texts), "folds_pin_ids": ids}]})
    source = " ".join(texts).encode()
    asked = _CAP.search(request.instruction)
    most = min(len(source) // 4, 3 * int(asked[1])) if asked else len(source) // 4
    return source[: max(4, most)].decode(errors="ignore")


def down(_request: ModelRequest) -> Reply:
    """A model that cannot be reached."""
    return ModelFailedError("scripted", 500)


def plain_turn(number: int, words: int = 10) -> list[dict[str, Any]]:
    """A turn of two messages that name their number."""
    filler = " ".join(f"word{at % 7}" for at in range(words))
    return [
        {"role": "user", "content": f"Question {number}: {filler}"},
        {"role": "assistant", "content": f"Answer {number}: {filler}"},
    ]


class Service:
    """All use cases over one in-memory store, archive and queue."""

    def __init__(
        self,
        *,
        model: ScriptedModel | None = None,
        embedder: Embedder | None = None,
        counter: TokenCounter | None = None,
        vectors_in_table: bool = False,
        wrap: Callable[[str, Any], Any] = lambda _name, port: port,
        **settings: Any,
    ) -> None:
        """`wrap` may put something between the use cases and a port ("store", "archive", ...).

        Vectors are pieces in the bucket, or `vectors_in_table`.
        """
        self.clock = ManualClock(START)
        self.dead_letters = InMemoryFifoQueue(self.clock)
        self.queue = InMemoryFifoQueue(
            self.clock,
            visibility_seconds=360,
            delay_seconds=1,
            max_receive_count=5,
            dead_letters=self.dead_letters,
        )
        self.model = model
        self.defaults = merge_settings(Settings(), settings)
        self.raw_store = InMemoryStore(self.clock)
        self.raw_archive = InMemoryArchive()
        self.raw_doorbell = InMemoryDoorbell(self._send)
        self.store = wrap("store", self.raw_store)
        self.archive = wrap("archive", self.raw_archive)
        self.doorbell = wrap("doorbell", self.raw_doorbell)
        self._ids = itertools.count(1)
        self._keys = itertools.count(1)
        self.counter: TokenCounter = counter or WordCounter()
        self.transcript = Transcript(self.archive)
        prompts = PromptLibrary()
        asked = wrap("model", model) if model else None
        answers = PaidAnswers(self.store, asked, self.clock) if asked else None
        self.judge = PinJudge(answers, prompts, RuleJudge(), self.clock, self.new_id)
        self.pauses: list[float] = []
        self.commit_turn = CommitTurn(
            self.store,
            self.archive,
            self.doorbell,
            self.clock,
            self.new_id,
            self.defaults,
            pause=self.pauses.append,
        )
        self.sessions = Sessions(self.store, self.doorbell, self.clock, self.new_id, self.defaults)
        self.pins = Pins(self.store, self.counter, self.clock, self.new_id)
        self.raw_index = InMemoryRecallIndex(self.raw_archive.bucket)
        self.index = wrap("index", self.raw_index)
        pieces = LivePieces(self.store, self.index)
        caches = IndexCaches()
        self.vectors: VectorIndex = (
            wrap("vectors", InMemoryVectors(self.raw_store))
            if vectors_in_table
            else PieceVectors(pieces, caches.vectors)
        )
        self.index_session = IndexSession(pieces, self.transcript, self.vectors, embedder)
        reader = ReadIndex(self.transcript, self.index, caches)
        self.recall = Recall(reader, self.vectors, embedder)
        self.search = SearchSession(self.store, self.recall)
        self.search_tenant = SearchTenant(self.store, self.recall)
        self.context = ReadContext(self.store, self.counter, recall=self.recall)
        self.turns = ReadTurns(self.store, self.transcript)
        self.judge_now = JudgeNow(self.store, self.judge, self.counter, self.clock)
        self.compact = CompactSession(
            store=self.store,
            transcript=self.transcript,
            doorbell=self.doorbell,
            writer=SummaryWriter(answers, prompts, ExtractiveSummariser(self.counter.count)),
            judge=self.judge,
            counter=self.counter,
            clock=self.clock,
            new_id=self.new_id,
        )
        self.drain_batch = DrainBatch(self.compact)
        self.raw_erasures = InMemoryErasures(self.raw_store, self.clock)
        self.erasures = wrap("erasures", self.raw_erasures)
        self.archive_queue = InMemoryFifoQueue(
            self.clock,
            visibility_seconds=720,
            max_receive_count=5,
            dead_letters=InMemoryFifoQueue(self.clock),
        )
        self.archive_bell = wrap("archive_bell", InMemoryArchiveBell(self._ring_archivist))
        self.sweep = Sweep(
            self.store,
            self.doorbell,
            self.clock,
            self.new_id,
            self.erasures,
            self.archive_bell,
        )

    def _send(self, message: DoorbellMessage) -> None:
        self.queue.send(message.group, message.deduplication_id, message.body)

    def _ring_archivist(self, message: DoorbellMessage) -> None:
        self.archive_queue.send(message.group, message.deduplication_id, message.body)

    def new_id(self) -> str:
        """Ids that sort by the order in which they were made."""
        return f"id{next(self._ids):08d}"

    def commit(
        self,
        messages: Sequence[Any],
        key: SessionKey = KEY,
        idempotency_key: str | None = None,
        **members: Any,
    ) -> Answer:
        """Commit a turn as the API does, without judging."""
        name = idempotency_key or f"made-{next(self._keys)}"
        body = {"messages": list(messages), **members}
        request = IdempotentRequest.of("POST turns", name, body)
        return self.commit_turn(key, TurnToCommit(tuple(messages), **members), request)[0]

    def commit_plain(self, count: int, key: SessionKey = KEY, start: int = 1, **size: int) -> None:
        """Commit that many plain turns."""
        for number in range(start, start + count):
            self.commit(plain_turn(number, **size), key)

    def memory(self, key: SessionKey = KEY) -> WorkingMemory:
        """The working memory as it is stored."""
        memory = self.raw_store.load(key)
        assert memory is not None
        return memory

    def deliver(self, batch: Sequence[ReceivedMessage]) -> list[str]:
        """Hand a batch to the drain as the compactor function does; the ids that failed."""
        failed = self.drain_batch([_knock(message) for message in batch])
        by_id = {message.message_id: message for message in batch}
        for one in failed:
            self.queue.change_visibility(by_id[one.message_id].receipt, one.back_off)
        back = {one.message_id for one in failed}
        for message in batch:
            if message.message_id not in back:
                self.queue.delete(message.receipt)
        return sorted(back)

    def drain(self, rounds: int = 1000) -> None:
        """Run the compactor until the queue is empty, letting time pass where it must."""
        for _ in range(rounds):
            batch = self.queue.receive()
            if batch:
                self.deliver(batch)
                continue
            waits_for = self.queue.next_visible_at
            if waits_for is None:
                return
            self.clock.now = max(self.clock.now, waits_for)
        raise AssertionError("the queue does not get empty")

    def ring(self, key: SessionKey = KEY, turn: int = 10**9, *, forced: bool = False) -> None:
        """Compact a session now, as if the bell of its newest turn had rung."""
        self.compact(key, Ring(turn, forced))


def _knock(message: ReceivedMessage) -> Knock:
    try:
        ring = parse_doorbell(message.body)
    except TurnfoldError:
        return Knock(message.message_id, None, None, message.receive_count)
    return Knock(message.message_id, ring.key, Ring(ring.turn, ring.forced), message.receive_count)
