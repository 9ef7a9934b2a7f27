"""Compaction in the process that commits, as mm-memory does it: with an estimator, and patiently.

The service never waits for a model: what fails is summarised without one and done again later.
Here a summary that fails leaves the turns as they are: a round summary is tried once for each turn,
a history summary again with every later turn, and a judgement that fails pins nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from turnfold.application.compact_session import CompactSession, Outcome, Ring
from turnfold.application.judge_pins import PinJudge
from turnfold.application.ports.models import LanguageModel, ModelAnswer, ModelRequest
from turnfold.application.summary_writer import SummaryOrder, SummaryWriter, WrittenSummary
from turnfold.domain.errors import ModelFailedError
from turnfold.domain.estimators import Estimator
from turnfold.domain.measure import Measure
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.messages import chat_form
from turnfold.domain.pin_rules import PinEdit, edit_of
from turnfold.domain.pins import Pin
from turnfold.domain.sessions import SessionKey
from turnfold.domain.tokens import CountText
from turnfold.domain.turns import Turn


class SummaryUnavailableError(ModelFailedError):
    """There is a model, but it gave no usable summary for this order."""

    def __init__(self, key: SessionKey, order: SummaryOrder) -> None:
        """Keep whose summary it was and what for."""
        super().__init__("the model gave no usable summary")
        self.key = key
        self.order = order


@dataclass(slots=True)
class OneQuestion:
    """A `LanguageModel` that is not asked about the same data a second time in a row.

    A rejected answer is then final, as in mm-memory, instead of being asked for more strictly.
    """

    model: LanguageModel
    _answered: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        """See `LanguageModel`."""
        return self.model.name

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """See `LanguageModel`."""
        question = (request.purpose, request.data)
        if question == self._answered:
            self._answered = None
            raise ModelFailedError("the model was asked already")
        self._answered = None
        answer = self.model.ask(request)
        self._answered = question
        return answer


class EstimatedMeasure(Measure):
    """Sizes of turns by an estimator. Turns in `spared` never count as long by themselves."""

    def __init__(
        self, count: CountText, estimator: Estimator, spared: Iterable[int], long_from: int
    ) -> None:
        """`long_from` is the session's round threshold, which tells that question from others."""
        super().__init__(count)
        self._estimator = estimator
        self._spared = frozenset(spared)
        self._long_from = long_from
        self._estimated: dict[str, int] = {}

    def tokens(self, turn: Turn) -> int:
        """See `Measure`."""
        known = self._estimated.get(turn.turn_id)
        if known is None:
            forms = (chat_form(one) for one in turn.conversation)
            known = self._estimated[turn.turn_id] = sum(map(self._estimator.message, forms))
        return known

    def exceeds(self, turns: Iterable[Turn], limit: int) -> bool:
        """See `Measure`."""
        turns = tuple(turns)
        alone = len(turns) == 1 and limit == self._long_from
        if alone and turns[0].number in self._spared:
            return False
        return sum(map(self.tokens, turns)) > limit


@dataclass(frozen=True)
class InlineWriter(SummaryWriter):
    """A `SummaryWriter` that prices summaries by the estimator.

    Unless it `degrades`, it raises `SummaryUnavailableError` where a model failed.
    """

    estimator: Estimator | None = None
    degrades: bool = True

    def write(
        self,
        key: SessionKey,
        order: SummaryOrder,
        count: CountText,
        *,
        model_down: bool = False,
    ) -> WrittenSummary:
        """See `SummaryWriter`."""
        written = super().write(key, order, count, model_down=model_down)
        if written.degraded and self.answers is not None and not self.degrades:
            raise SummaryUnavailableError(key, order)
        if self.estimator is None:
            return written
        spoken = {"role": "assistant", "content": written.text}
        return replace(written, tokens=self.estimator.message(spoken))


@dataclass(frozen=True)
class InlineJudge(PinJudge):
    """A `PinJudge` that prices pins by the estimator.

    Unless it `degrades`, a model that fails pins nothing, and the turn is not judged again.
    """

    estimator: Estimator | None = None
    degrades: bool = True

    def judge(
        self,
        key: SessionKey,
        turns: Sequence[Turn],
        pins: Sequence[Pin],
        rev: int,
        count: CountText,
    ) -> PinEdit:
        """See `PinJudge`."""
        price = self.estimator.text if self.estimator else count
        try:
            return super().judge(key, turns, pins, rev, price)
        except ModelFailedError:
            if self.degrades:
                raise
            return edit_of(pins, ())

    def fold(
        self,
        key: SessionKey,
        pins: Sequence[Pin],
        rev: int,
        count: CountText,
        *,
        max_tokens: int,
        max_pins: int,
    ) -> tuple[Pin, ...] | None:
        """See `PinJudge`."""
        price = self.estimator.text if self.estimator else count
        return super().fold(key, pins, rev, price, max_tokens=max_tokens, max_pins=max_pins)


@dataclass(frozen=True)
class InlineCompaction(CompactSession):
    """A `CompactSession` that measures by an estimator and puts up with summaries that fail."""

    estimator: Estimator | None = None
    given_up: set[tuple[SessionKey, str]] = field(default_factory=set)
    """Sessions and turn ids whose round summary failed; kept as long as this process."""

    def __call__(
        self, key: SessionKey, ring: Ring, seconds_left: Callable[[], float] = lambda: 1e9
    ) -> Outcome:
        """See `CompactSession`."""
        while True:
            try:
                return super().__call__(key, ring, seconds_left)
            except SummaryUnavailableError as error:
                if error.order.kind != "round_summary":
                    return Outcome.DONE
                self.given_up.update(
                    (key, one.turn_id) for one in error.order.entries if isinstance(one, Turn)
                )

    def _measure(self, memory: WorkingMemory) -> Measure:
        measure = super()._measure(memory)
        if self.estimator is None:
            return measure
        key = memory.session.key
        spared = [turn.number for turn in memory.turns if (key, turn.turn_id) in self.given_up]
        return EstimatedMeasure(
            measure.count,
            self.estimator,
            spared,
            memory.session.settings.round_token_threshold,
        )
