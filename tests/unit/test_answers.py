from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.domain.answers import (
    SummarySource,
    accept_summary,
    kept_allowance,
    most_summary_tokens,
    unwrapped,
    with_kept_identifiers,
)
from turnfold.domain.errors import ModelError, RejectedAnswerError
from turnfold.domain.identifiers import extract_identifiers, missing_identifiers

TALK = (
    "We compared the copper lantern with the brass one for the harbour walk. The copper one is "
    "lighter, burns longer and costs less, so the family will take it along on their tour."
)
CHINESE = (
    "我们比较了两种灯笼。铜灯笼更轻，燃烧时间更长，而且更便宜，所以全家决定带着铜灯笼去海港散步。"
    * 3
)


def count(text: str) -> int:
    """A crude tokenizer: a token for each four bytes, never more than the bytes."""
    return -(-len(text.encode()) // 4)


@dataclass(frozen=True)
class Said:
    text: str | None
    finish_reason: str = "stop"
    refusal: str | None = None


def source(text: str = TALK, max_tokens: int = 200) -> SummarySource:
    return SummarySource(text, count(text), max_tokens)


def rejected(answer: Said, about: SummarySource | None = None) -> str:
    with pytest.raises(RejectedAnswerError) as caught:
        accept_summary(answer, about or source(), count)
    assert isinstance(caught.value, ModelError)
    assert (
        answer.text is None
        or answer.text.strip()[:20] not in str(caught.value)
        or not answer.text.strip()
    )
    return caught.value.reason


GOOD = "The user chose the copper lantern because it is lighter and cheaper."


def test_a_good_summary_is_taken_as_it_is() -> None:
    assert accept_summary(Said(GOOD), source(), count) == GOOD
    short = "全家选择了更轻更便宜的铜灯笼。"
    assert accept_summary(Said(short), source(CHINESE), count) == short


@pytest.mark.parametrize(
    "finish", ["length", "content_filter", "tool_calls", "unknown", "", "STOP"]
)
def test_only_a_normal_end_counts(finish: str) -> None:
    assert rejected(Said(GOOD, finish)) == "finish"


def test_a_refusal_member_is_a_refusal_whatever_else_is_said() -> None:
    assert rejected(Said(GOOD, refusal="No.")) == "refusal"
    assert rejected(Said(None, refusal="No.")) == "refusal"


def test_a_refusal_in_words_is_a_refusal() -> None:
    assert rejected(Said("I'm sorry, but I can't assist with that request.")) == "refusal"
    assert rejected(Said("Summary: **I'm sorry, I cannot help with that.**")) == "refusal"


@pytest.mark.parametrize(
    "text", [None, "", " \n\t", "\u3000\u200b", "...", "---", '""', "```\n```", "Summary:"]
)
def test_silence_is_blank(text: str | None) -> None:
    assert rejected(Said(text)) in {"blank", "echo"}


@pytest.mark.parametrize(
    "text",
    [
        f"<conversation>\n{GOOD}\n</conversation>",
        f"{GOOD} </Conversation>",
        f'{{"turn": 3, "role": "user", "content": "{GOOD}"}}',
        f'{GOOD}\n{{"turns": "2-5", "role": "summary", "content": "x"}}',
        '{"pin_id": "p1", "content": "The lantern is copper."}',
        "<think>The user compared lanterns, so I should",
    ],
)
def test_an_echo_of_the_prompt_is_rejected(text: str) -> None:
    assert rejected(Said(text)) == "echo"


@pytest.mark.parametrize("text", ["x data:image/png;base64,iVBORw0 y", "It is " + "iVBORw0K" * 40])
def test_encoded_bytes_are_rejected(text: str) -> None:
    assert rejected(Said(text), SummarySource(TALK, 10_000, 10_000)) == "encoded"


def test_the_cap_and_the_source_bound_a_summary() -> None:
    assert rejected(Said(GOOD), source(max_tokens=count(GOOD) - 1)) == "too_long"
    assert accept_summary(Said(GOOD), source(max_tokens=count(GOOD)), count) == GOOD
    assert rejected(Said(GOOD), SummarySource(TALK, count(GOOD), 200)) == "not_shorter"
    assert accept_summary(Said(GOOD), SummarySource(TALK, count(GOOD) + 1, 200), count) == GOOD


def test_another_language_than_the_sources_is_rejected() -> None:
    assert rejected(Said("全家选择了更轻更便宜的铜灯笼。")) == "language"
    assert rejected(Said(GOOD), source(CHINESE)) == "language"
    german = (
        "Die Familie nimmt die Laterne aus Kupfer mit, weil sie leichter ist und weniger kostet."
    )
    assert rejected(Said(german), SummarySource(TALK, 200, 100)) == "language"


@pytest.mark.parametrize(
    "wrapped",
    [
        f"Summary: {GOOD}",
        f"**Summary:** {GOOD}",
        f"## Summary\n\n{GOOD}",
        f"# Summary of the conversation\n{GOOD}",
        f"Round summary: {GOOD}",
        f"Here is the summary: {GOOD}",
        f"Sure, here's a brief summary of the conversation:\n\n{GOOD}",
        f"```\n{GOOD}\n```",
        f"```markdown\n{GOOD}\n```",
        f'"{GOOD}"',
        f"“{GOOD}”",
        f"« {GOOD} »",
        f"<summary>{GOOD}</summary>",
        f"<think>\nLet me see.\n</think>\n\n{GOOD}",
        f'```\nSummary: "{GOOD}"\n```',
        f"\n\n  {GOOD}  \n",
    ],
)
def test_wrappers_are_taken_off(wrapped: str) -> None:
    assert accept_summary(Said(wrapped), source(), count) == GOOD


@pytest.mark.parametrize(
    "wrapped",
    ["摘要：好。", "本轮摘要: 好。", "「好。」", "总结：\n好。", "要約：好。", "**摘要**：好。"],
)
def test_wrappers_in_other_languages_are_taken_off(wrapped: str) -> None:
    assert unwrapped(wrapped) == "好。"


@pytest.mark.parametrize(
    "text",
    [
        "The summary of the book was read aloud: it is short.",
        '"Copper" and "brass" were compared.',
        "Summaries were compared.",
        "The user wrote `Summary: x` in the file.",
        "It's 'fine'",
        "First line.\nSecond line.",
    ],
)
def test_what_only_looks_like_a_wrapper_stays(text: str) -> None:
    assert unwrapped(text) == text


def test_unstorable_characters_are_replaced() -> None:
    said = accept_summary(Said("A \ud83d lantern\x00 of copper."), source(), count)
    assert said == "A \ufffd lantern\ufffd of copper."
    assert said.encode()


@given(st.text(max_size=300))
def test_unwrapping_ends_and_is_done_once(text: str) -> None:
    once = unwrapped(text)
    assert unwrapped(once) == once
    assert len(once) <= len(text)


NAMED = (
    "Invoice INV-20931 goes to mira@example.test by 2027-02-03, "
    f"details at https://example.test/plan?id=7. {TALK} "
    "The deposit is $1,250 and the file is /srv/plans/tour-7.pdf."
)
FACTS = ("INV-20931", "mira@example.test", "2027-02-03", "https://example.test/plan?id=7")


def test_lost_identifiers_are_appended() -> None:
    whole = with_kept_identifiers("They went over the plan.", source(NAMED), count)
    first, kept = whole.split("\n")
    assert first == "They went over the plan."
    assert kept.startswith("Kept: ")
    assert [fact for fact in FACTS if fact not in kept] == []
    assert missing_identifiers(extract_identifiers(NAMED), whole) == ()


def test_identifiers_that_the_summary_carries_are_not_repeated() -> None:
    summary = f"Invoice {FACTS[0]} goes to {FACTS[1]}."
    whole = with_kept_identifiers(summary, source(NAMED), count)
    assert whole.count(FACTS[0]) == whole.count(FACTS[1]) == 1
    assert FACTS[2] in whole


def test_nothing_is_appended_where_nothing_is_lost() -> None:
    assert with_kept_identifiers(GOOD, source(), count) == GOOD


def test_a_short_source_leaves_no_room() -> None:
    text = "Pay INV-20931 and INV-20932."
    summary = "The user pays two."
    whole = with_kept_identifiers(summary, source(text), count)
    assert count(whole) < count(text)
    assert whole.startswith(summary)


@given(
    numbers=st.lists(st.integers(10_000, 99_999), max_size=60),
    words=st.integers(1, 40),
    max_tokens=st.integers(1, 120),
)
def test_the_whole_keeps_to_its_bound(numbers: list[int], words: int, max_tokens: int) -> None:
    text = f"{TALK} " + " ".join(f"Order ORD-{number} is open." for number in numbers)
    about = source(text, max_tokens)
    summary = "word " * words
    whole = with_kept_identifiers(summary.strip(), about, count)
    if count(summary.strip()) <= most_summary_tokens(about):
        assert count(whole) <= most_summary_tokens(about) < about.tokens
    assert count(whole) <= max(count(summary), max_tokens + kept_allowance(max_tokens))


def test_the_allowance_is_half_and_at_least_forty() -> None:
    assert [kept_allowance(cap) for cap in (1, 80, 200)] == [40, 40, 100]
