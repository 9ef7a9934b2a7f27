"""Whether a model's summary may replace what it summarises. The model is not trusted.

A summary is taken only if the call finished normally, it is not a refusal, not blank, in the
language of its source, within its token cap and shorter than its source, and no echo of the prompt.
What it lost of the source's identifiers is appended in a `Kept:` line.
"""

import re
from dataclasses import dataclass
from typing import Protocol

from turnfold.domain.clean_json import clean_text
from turnfold.domain.errors import RejectedAnswerError
from turnfold.domain.identifiers import extract_identifiers, kept_line, missing_identifiers
from turnfold.domain.languages import same_language
from turnfold.domain.refusals import is_refusal
from turnfold.domain.tokens import CountText

LEAST_KEPT_ALLOWANCE = 40
"""Tokens that the `Kept:` line may always add: room for three or four addresses and numbers."""


class Answer(Protocol):
    """What a model said, as it came."""

    @property
    def text(self) -> str | None:
        """The text, None where there was none."""
        ...

    @property
    def finish_reason(self) -> str:
        """Why it ended; "stop" for a normal end."""
        ...

    @property
    def refusal(self) -> str | None:
        """The refusal, where the model gave one apart from the text."""
        ...


@dataclass(frozen=True, slots=True)
class SummarySource:
    """What is to be summarised: its words, what it costs in tokens, and the summary's cap."""

    text: str
    tokens: int
    max_tokens: int


def kept_allowance(max_tokens: int) -> int:
    """Tokens by which a `Kept:` line may exceed a summary's cap: half of it, and at least 40."""
    return max(LEAST_KEPT_ALLOWANCE, max_tokens // 2)


def most_summary_tokens(source: SummarySource) -> int:
    """What an accepted summary with its `Kept:` line costs at most; always less than its source."""
    return min(source.max_tokens + kept_allowance(source.max_tokens), source.tokens - 1)


def accept_summary(answer: Answer, source: SummarySource, count: CountText) -> str:
    """The summary inside an answer, without wrappers such as "Summary:" or a code fence.

    Raises `RejectedAnswerError` with the reason "finish", "refusal", "blank", "echo", "encoded",
    "too_long", "not_shorter" or "language".
    """
    if answer.finish_reason != "stop":
        raise RejectedAnswerError("finish")
    if answer.refusal:
        raise RejectedAnswerError("refusal")
    summary = unwrapped(clean_text(answer.text or ""))
    if not any(character.isalnum() for character in summary):
        raise RejectedAnswerError("blank")
    if is_refusal(summary):
        raise RejectedAnswerError("refusal")
    if _ECHO.search(summary):
        raise RejectedAnswerError("echo")
    if _ENCODED.search(summary):
        raise RejectedAnswerError("encoded")
    # A byte is never less than a token, so a short answer needs no tokenizer.
    tokens = len(summary.encode())
    if tokens > source.max_tokens or tokens >= source.tokens:
        tokens = count(summary)
    if tokens > source.max_tokens:
        raise RejectedAnswerError("too_long")
    if tokens >= source.tokens:
        raise RejectedAnswerError("not_shorter")
    if not same_language(source.text, summary):
        raise RejectedAnswerError("language")
    return summary


def with_kept_identifiers(summary: str, source: SummarySource, count: CountText) -> str:
    """The summary, followed by a `Kept:` line of the source's identifiers that it does not carry.

    The whole costs at most `most_summary_tokens(source)`; identifiers that do not fit are left out.
    """
    missing = missing_identifiers(extract_identifiers(source.text), summary)
    room = most_summary_tokens(source) - count(summary)
    while missing and room > 0:
        line = kept_line(missing, room, count)
        if not line:
            break
        whole = f"{summary}\n{line}"
        over = count(whole) - most_summary_tokens(source)
        if over <= 0:
            return whole
        room -= over
    return summary


_ECHO = re.compile(
    r"\A<think|</?\s*(?:conversation|pins)\s*>|^\s*\{\s*\"(?:turns?|pin_id|role)\"\s*:",
    re.IGNORECASE | re.MULTILINE,
)
_ENCODED = re.compile(r"data:[\w.+/-]{0,80};base64,|[A-Za-z0-9+/_-]{200,}")
_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```[\w-]*\s*\n(?P<inside>.*)\n\s*```\Z", re.DOTALL)
_TAG = re.compile(
    r"\A<(?P<name>summary|answer)>(?P<inside>.*)</(?P=name)>\Z", re.DOTALL | re.IGNORECASE
)
_TITLE = (
    r"(?:(?:the|a|round|history|turn|conversation|updated?|new|final|brief|short)\s+){0,3}summary"
    r"(?:\s+of\s+(?:the\s+)?(?:conversation|turns?|round|history|dialogue)[^\n:：]{0,20})?"
    r"|zusammenfassung|resumen|résumé|riassunto|resumo|samenvatting|резюме|итог|краткое содержание"
    r"|(?:本轮|本輪|历史|歷史|对话|對話|会话)?(?:摘要|总结|總結|概要|小结)|要約|まとめ|요약|ملخص|सारांश"
)
_LABEL = re.compile(
    rf"\A(?:#{{1,6}}\s*(?:{_TITLE})\s*[:：]?\s*\n"
    rf"|[*_]{{0,3}}(?:{_TITLE})[*_]{{0,3}}\s?[:：][*_]{{0,3}}"
    rf"|(?:sure|okay|ok|certainly|of course)?[,.!]?\s*"
    rf"(?:here\s+is|here['’]s|this\s+is)\s+(?:{_TITLE})\s*[:：])\s*",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』", "'": "'", "‘": "’"}
_BLANK_LINES = re.compile(r"[ \t]*\n(?:[ \t]*\n)+")


def unwrapped(text: str) -> str:
    """The text without what models put around an answer: thoughts, fences, titles, quotes."""
    text = _BLANK_LINES.sub("\n", _THOUGHTS.sub("", text)).strip()
    while True:
        before = text
        for pattern in (_FENCE, _TAG):
            match = pattern.match(text)
            if match:
                text = match["inside"].strip()
        text = _LABEL.sub("", text).strip()
        if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[0] not in text[1:-1]:
            text = text[1:-1].strip()
        if text == before:
            return text
