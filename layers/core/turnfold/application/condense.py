"""The `Condenser` of the summarization policy: the same validated summaries as compaction's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from turnfold.application.summary_writer import SummaryOrder, SummaryWriter
from turnfold.domain.messages import Message, chat_form
from turnfold.domain.sessions import FIRST_PREV_SHA256, SessionKey
from turnfold.domain.summaries import Summary
from turnfold.domain.tokens import CountText, count_messages
from turnfold.domain.turns import Turn

LEAST_SUMMARY_TOKENS = 200
SOURCE_SHARE = 5
"""A summary has at most 200 tokens, or a fifth of its source where that is more, and always less
than two thirds of it."""

_MOMENT = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class WriterCondenser:
    """Condenses messages with a `SummaryWriter`, on behalf of one session.

    Paid answers are kept under that session, so the same messages are not paid for twice within a
    day. Without a model the extractive summariser writes. With one that fails, or that twice gives
    nothing usable, there is no summary: the messages themselves are better than a makeshift.
    """

    writer: SummaryWriter
    key: SessionKey
    count: CountText

    def condense(self, messages: Sequence[Message], earlier: Sequence[str]) -> str | None:
        """See `Condenser`."""
        summaries = [self._summary(text) for text in earlier]
        turn = _as_turn(messages)
        tokens = sum(one.tokens for one in summaries) + count_messages(
            map(chat_form, messages), self.count
        )
        wanted = max(LEAST_SUMMARY_TOKENS, tokens // SOURCE_SHARE)
        order = SummaryOrder(
            kind="history_summary",
            entries=(*summaries, turn),
            max_tokens=max(1, min(wanted, tokens * 2 // 3)),
            replaced_tokens=tokens,
        )
        written = self.writer.write(self.key, order, self.count)
        if written.degraded and self.writer.answers is not None:
            return None
        return written.text if written.text.strip() else None

    def _summary(self, text: str) -> Summary:
        tokens = self.count(text)
        return Summary(
            from_turn=0,
            to_turn=0,
            level=2,
            text=text,
            tokens=tokens,
            source_tokens=tokens,
            model="",
            prompt_version="",
            created_at=_MOMENT,
        )


@dataclass(frozen=True, slots=True)
class CallableCondenser:
    """Condenses by a function of one's own; what it returns is taken unless it is blank."""

    summarise: Callable[[Sequence[Message], Sequence[str]], str | None]

    def condense(self, messages: Sequence[Message], earlier: Sequence[str]) -> str | None:
        """See `Condenser`."""
        text = self.summarise(messages, earlier)
        return text if text and text.strip() else None


def _as_turn(messages: Sequence[Message]) -> Turn:
    """The messages in the shape that prompts are made from."""
    return Turn(
        number=1,
        turn_id="condensed",
        committed_at=_MOMENT,
        messages=tuple(messages),
        sha256=FIRST_PREV_SHA256,
        prev_sha256=FIRST_PREV_SHA256,
    )
