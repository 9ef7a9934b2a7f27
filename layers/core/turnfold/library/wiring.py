"""The library's composition root: the only module of it that knows adapters.

Whatever takes long to import is imported when it is first needed.
"""

import logging
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from turnfold.adapters.in_memory_messages import InMemoryMessages
from turnfold.application.compact_session import Ring
from turnfold.application.message_store import MessageStore
from turnfold.application.ports.archive import Archive
from turnfold.application.ports.clock import Clock
from turnfold.application.ports.memory import MemoryStore
from turnfold.application.ports.models import LanguageModel, TokenCounter
from turnfold.domain.estimators import Estimator, ExactEstimator
from turnfold.domain.policies.registry import PolicyKit
from turnfold.domain.sessions import SessionKey
from turnfold.domain.settings import Settings, merge_settings
from turnfold.library.services import SessionServices

logger = logging.getLogger("turnfold")


def utc_now() -> datetime:
    """The time now."""
    return datetime.now(UTC)


class AscendingIds:
    """Ids that sort by the order in which this process made them, and are unique beside others'."""

    def __init__(self, clock: Clock = utc_now) -> None:
        """The clock gives the front of an id."""
        self._clock = clock
        self._lock = threading.Lock()
        self._last = 0

    def __call__(self) -> str:
        """The next id."""
        with self._lock:
            self._last = max(self._last + 1, int(self._clock().timestamp() * 1_000_000))
            return f"{self._last:016x}{uuid.uuid4().hex[:16]}"


@dataclass(slots=True)
class LocalCounter:
    """Counts with tiktoken where its vocabulary is at hand, else by bytes.

    A byte is never less than a token, so a budget is kept either way. The vocabulary ships with the
    service; `TIKTOKEN_CACHE_DIR` names its folder.
    """

    _counter: TokenCounter | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, text: str, model: str | None = None) -> int:
        """See `TokenCounter`."""
        with self._lock:
            if self._counter is None:
                self._counter = _tiktoken_or_bytes()
        return self._counter.count(text, model)


@dataclass(frozen=True, slots=True)
class ByteCounter:
    """A `TokenCounter` that never counts too few."""

    def count(self, text: str, model: str | None = None) -> int:  # noqa: ARG002 - as the port says
        """See `TokenCounter`."""
        return len(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class EstimatingCounter:
    """A `TokenCounter` by an estimator's price of a text."""

    estimator: Estimator

    def count(self, text: str, model: str | None = None) -> int:  # noqa: ARG002 - as the port says
        """See `TokenCounter`."""
        return self.estimator.text(text)


def _tiktoken_or_bytes() -> TokenCounter:
    from turnfold.adapters.tiktoken_counter import TiktokenCounter, VocabularyError

    counter = TiktokenCounter()
    try:
        counter.count("a")
    except (VocabularyError, ImportError):
        logger.warning("no vocabulary: tokens are counted as bytes", extra={"code": "NO_TOKENIZER"})
        return ByteCounter()
    return counter


def in_memory_messages() -> MessageStore:
    """A new store of message lists in this process."""
    return InMemoryMessages()


def file_messages(folder: Path | str) -> MessageStore:
    """A store of message lists in a folder."""
    from turnfold.adapters.file_messages import FileMessages

    return FileMessages(folder)


def dynamo_messages(table: str, tenant: str = "library", client: Any = None) -> MessageStore:  # noqa: ANN401 - boto3's
    """A store of message lists in a DynamoDB table with the keys `PK` and `SK`."""
    from turnfold.adapters.aws_clients import AwsClients
    from turnfold.adapters.dynamo_messages import DynamoMessages

    return DynamoMessages(client or AwsClients().dynamodb, table, tenant)


def exact_estimator(model: str | None = None, counter: TokenCounter | None = None) -> Estimator:
    """The service's own count, by the encoding of a model."""
    counting = counter or LocalCounter()
    return ExactEstimator(lambda text: counting.count(text, model))


def policy_kit(
    model: LanguageModel | None = None, *, counter: TokenCounter | None = None
) -> PolicyKit:
    """What policies work with in this process: exact counts, and summaries by the model.

    Without a model the extractive summariser writes them.
    """
    from turnfold.adapters.extractive import ExtractiveSummariser
    from turnfold.adapters.in_memory_store import InMemoryStore
    from turnfold.application.condense import WriterCondenser
    from turnfold.application.prompts import PromptLibrary
    from turnfold.application.summary_writer import PaidAnswers, SummaryWriter

    counting = counter or LocalCounter()
    answers = PaidAnswers(InMemoryStore(utc_now), model, utc_now) if model else None
    writer = SummaryWriter(answers, PromptLibrary(), ExtractiveSummariser(counting.count))
    return PolicyKit(
        estimator=exact_estimator(counter=counting),
        condenser=WriterCondenser(writer, SessionKey("library", "policy"), counting.count),
    )


def in_memory_services(
    *,
    model: LanguageModel | None = None,
    settings: Mapping[str, Any] | None = None,
    counter: TokenCounter | None = None,
    estimator: Estimator | None = None,
    degrades: bool = True,
    clock: Clock = utc_now,
    store: MemoryStore | None = None,
    archive: Archive | None = None,
    prompts: Path | None = None,
) -> SessionServices:
    """The use cases over adapters in this process, or over a store and an archive of one's own.

    Without a model, the extractive summariser and the plain rules for pins do the work. With
    `estimator` the thresholds of compaction go by it. `degrades` false leaves turns as they are
    when the model fails, instead of summarising them without one. Raises `InvalidSettingsError`.
    """
    from turnfold.adapters.extractive import ExtractiveSummariser
    from turnfold.adapters.in_memory_archive import InMemoryArchive
    from turnfold.adapters.in_memory_doorbell import InMemoryDoorbell
    from turnfold.adapters.in_memory_store import InMemoryStore
    from turnfold.adapters.rule_judge import RuleJudge
    from turnfold.application.commit_turn import CommitTurn
    from turnfold.application.inline_compaction import (
        InlineCompaction,
        InlineJudge,
        InlineWriter,
        OneQuestion,
    )
    from turnfold.application.judge_now import JudgeNow
    from turnfold.application.pins_by_hand import Pins
    from turnfold.application.prompts import PromptLibrary
    from turnfold.application.read_context import ReadContext
    from turnfold.application.read_transcript import Transcript
    from turnfold.application.summary_writer import PaidAnswers

    store = store or InMemoryStore(clock)
    archive = archive or InMemoryArchive()
    counting = counter or (EstimatingCounter(estimator) if estimator else LocalCounter())
    new_id = AscendingIds(clock)
    doorbell = InMemoryDoorbell()
    asked = model if degrades or model is None else OneQuestion(model)
    answers = PaidAnswers(store, asked, clock) if asked else None
    library = PromptLibrary(prompts)
    judge = InlineJudge(answers, library, RuleJudge(), clock, new_id, estimator, degrades)
    transcript = Transcript(archive)
    writer = InlineWriter(
        answers, library, ExtractiveSummariser(counting.count), estimator, degrades
    )
    return SessionServices(
        store=store,
        transcript=transcript,
        commit=CommitTurn(
            store, archive, doorbell, clock, new_id, merge_settings(Settings(), settings or {})
        ),
        context=ReadContext(store, counting),
        pins=Pins(store, counting, clock, new_id),
        judge_now=JudgeNow(store, judge, counting, clock),
        compact=InlineCompaction(
            store=store,
            transcript=transcript,
            doorbell=doorbell,
            writer=writer,
            judge=judge,
            counter=counting,
            clock=clock,
            new_id=new_id,
            estimator=estimator,
        ),
        counter=counting,
        clock=clock,
        rung=lambda: _read(doorbell, remove=True),
        waiting=lambda: _read(doorbell, remove=False),
    )


def aws_services(
    environment: Mapping[str, str] | None = None, *, tenant: str = "local"
) -> SessionServices:
    """The use cases over the deployed table, bucket and queue; the compactor there does the work.

    The environment is the service's own (`TURNFOLD_TABLE`, `TURNFOLD_BUCKET`,
    `TURNFOLD_QUEUE_URL`, ...).
    """
    from turnfold.bootstrap import Turnfold

    service = Turnfold(environment)
    return SessionServices(
        store=service.store,
        transcript=service.transcript,
        commit=service.commit,
        context=service.context,
        pins=service.pins,
        judge_now=service.judge_now,
        compact=service.compact,
        counter=service.counter,
        clock=utc_now,
        tenant=tenant,
    )


def _read(doorbell: Any, *, remove: bool) -> list[tuple[SessionKey, Ring]]:  # noqa: ANN401 - see above
    from turnfold.adapters.sqs_doorbell import parse_doorbell

    messages = list(doorbell.messages)
    if remove:
        del doorbell.messages[: len(messages)]
    rings = [parse_doorbell(message.body) for message in messages]
    return [(ring.key, Ring(ring.turn, ring.forced)) for ring in rings]
