"""What the use cases measure, and that no measurement is of somebody."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from support.fake_completions import FakeCompletions
from support.measurements import RecordedMetrics
from support.service import KEY, ScriptedModel, Service, down, plain_turn
from turnfold.application.compact_session import Ring
from turnfold.application.measured_model import (
    MeasuredChatModel,
    MeasuredCompletions,
    MeasuredModel,
)
from turnfold.application.ports.models import ChatReply, ModelAnswer, ModelRequest
from turnfold.application.read_context import ContextRequest
from turnfold.domain.errors import ModelFailedError
from turnfold.domain.measurements import Metric

REQUEST = ModelRequest(purpose="round_summary", instruction="Summarise.", data="Text.")


@pytest.fixture
def metrics() -> RecordedMetrics:
    return RecordedMetrics()


def measured(metrics: RecordedMetrics, **settings: Any) -> Service:
    service = Service(**settings)
    service.commit_turn = replace(service.commit_turn, metrics=metrics)
    service.context = replace(service.context, metrics=metrics)
    service.compact = replace(service.compact, metrics=metrics)
    service.sweep = replace(service.sweep, metrics=metrics)
    return service


def test_a_commit_is_counted_once_with_its_latency(metrics: RecordedMetrics) -> None:
    service = measured(metrics)
    for _ in range(2):
        service.commit(plain_turn(1), idempotency_key="same")
    assert metrics.values[Metric.COMMITS] == [1]
    (latency,) = metrics.values[Metric.COMMIT_LATENCY]
    assert 0 < latency < 5000


def test_compaction_measures_lag_and_summaries(metrics: RecordedMetrics) -> None:
    service = measured(metrics)
    service.commit_plain(12, words=60)
    service.clock.advance(90)
    service.compact(KEY, Ring(12))
    assert max(metrics.values[Metric.COMPACTION_LAG]) >= 90
    assert metrics.sum(Metric.SUMMARIES) == len(metrics.values[Metric.DEGRADED_SUMMARIES]) > 0
    # There is no model, so each is made without.
    assert metrics.sum(Metric.DEGRADED_SUMMARIES) == metrics.sum(Metric.SUMMARIES)


def test_a_context_tells_its_tokens_and_what_summaries_saved(metrics: RecordedMetrics) -> None:
    service = measured(metrics)
    service.commit_plain(12, words=60)
    request = ContextRequest()
    service.context.view(service.memory(), request)
    assert metrics.values[Metric.CONTEXT_TOKENS_SAVED] == [0]
    service.compact(KEY, Ring(12))
    view = service.context.view(service.memory(), request)
    assert metrics.values[Metric.CONTEXTS] == [1, 1]
    assert metrics.values[Metric.CONTEXT_TOKENS][1] == view["tokens"]["total"]
    assert metrics.values[Metric.CONTEXT_TOKENS_SAVED][1] > 0


def test_a_sweep_counts_the_sessions_that_were_overdue(metrics: RecordedMetrics) -> None:
    service = measured(metrics)
    service.sweep()
    assert not metrics.values
    service.commit_plain(5)
    service.clock.advance(3600)
    service.sweep()
    assert metrics.values[Metric.OVERDUE_SESSIONS] == [1]


class TalkingModel:
    """A `ChatModel` and a `LanguageModel` with an answer and its costs."""

    name = "talker"

    def __init__(self, usage: dict[str, Any]) -> None:
        self.usage = usage

    def chat(self, messages: Any, **options: Any) -> ChatReply:
        return ChatReply({"role": "assistant", "content": "Yes."}, "stop", "talker", self.usage)

    def ask(self, request: ModelRequest) -> ModelAnswer:
        return ModelAnswer("Yes.", "stop", "talker", prompt_tokens=70, completion_tokens=7)


def test_calls_and_tokens_of_the_model_are_counted(metrics: RecordedMetrics) -> None:
    talker = TalkingModel({"prompt_tokens": 30, "completion_tokens": 3})
    MeasuredModel(talker, metrics).ask(REQUEST)
    chat = MeasuredChatModel(talker, metrics)
    chat.chat([], model=None, max_tokens=None, temperature=None)
    assert metrics.sum(Metric.MODEL_CALLS) == 2
    assert metrics.sum(Metric.MODEL_FAILURES) == 0
    assert metrics.sum(Metric.MODEL_INPUT_TOKENS) == 100
    assert metrics.sum(Metric.MODEL_OUTPUT_TOKENS) == 10


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": None}, {"prompt_tokens": "many"}])
def test_an_endpoint_that_counts_nothing_counts_as_nothing(
    metrics: RecordedMetrics, usage: dict[str, Any]
) -> None:
    chat = MeasuredChatModel(TalkingModel(usage), metrics)
    chat.chat([], model=None, max_tokens=None, temperature=None)
    assert metrics.sum(Metric.MODEL_CALLS) == 1
    assert metrics.sum(Metric.MODEL_INPUT_TOKENS) == 0


def test_a_failure_of_the_model_is_counted_and_passed_on(metrics: RecordedMetrics) -> None:
    model = MeasuredModel(ScriptedModel(always=down), metrics)
    assert model.name == "scripted"
    with pytest.raises(ModelFailedError):
        model.ask(REQUEST)
    assert metrics.sum(Metric.MODEL_FAILURES) == metrics.sum(Metric.MODEL_CALLS) == 1


def test_completions_are_counted_as_chats_are(metrics: RecordedMetrics) -> None:
    door = MeasuredCompletions(FakeCompletions(), metrics)
    door.complete({})
    list(door.stream({}, with_usage=True))
    abandoned = door.stream({})
    next(abandoned)
    abandoned.close()
    door.models()
    assert metrics.values[Metric.MODEL_CALLS] == [1, 1, 1]
    assert metrics.sum(Metric.MODEL_FAILURES) == 0
    assert metrics.values[Metric.MODEL_INPUT_TOKENS] == [11, 11, 0]
    assert metrics.values[Metric.MODEL_OUTPUT_TOKENS] == [7, 7, 0]


def test_completions_that_fail_are_counted(metrics: RecordedMetrics) -> None:
    door = MeasuredCompletions(FakeCompletions([ModelFailedError("down", 500)]), metrics)
    for ask in (door.complete, door.stream):
        with pytest.raises(ModelFailedError):
            ask({})
    assert metrics.sum(Metric.MODEL_FAILURES) == 2
