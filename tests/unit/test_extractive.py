"""Summaries without a model: caps to the token, whole sentences of the source, nothing lost."""

import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from turnfold.adapters.extractive import ExtractiveSummariser
from turnfold.adapters.summary_layout import (
    ELLIPSIS,
    SPEAKER_LABELS,
    cut_to_fit,
    labelled_lines,
    layout,
)
from turnfold.domain.identifiers import KEPT_LABEL, extract_identifiers, missing_identifiers
from turnfold.domain.passages import Passage
from turnfold.domain.sentences import split_sentences

type Count = Callable[[str], int]


def by_character(text: str) -> int:
    return len(text)


def by_bytes(text: str) -> int:
    return len(text.encode(errors="replace")) // 4 + 1 if text else 0


def by_piece(text: str) -> int:
    """Like a tokenizer: pieces of words with the blank before them; it does not add up."""
    return len(re.findall(r" ?[A-Za-z]{1,6}| ?\d{1,3}|\s+|[^\x00-\x7f]|.", text))


COUNTERS: list[Count] = [by_character, by_bytes, by_piece]

TRAVEL = [
    Passage("user", "Hi! I need a flight from Porto to Bern on May 20th. My budget is $450.", 1),
    Passage("assistant", "Sure, I can help with that! What is your user ID?", 1),
    Passage("user", "My user ID is ada_kern_2041. I am allergic to nuts.", 2),
    Passage("tool", '[{"flight": "KX204", "departs": "06:00", "price": "$121"}]', 2),
    Passage(
        "assistant",
        "I found flight KX204, which departs at 06:00 and costs $121. It is the only direct one"
        " on that day.\n\n- Free cabin bag\n- Seats of your choice\n\nLet me know if you need"
        " anything else!",
        2,
    ),
    Passage("user", "Thanks! I'll take KX204, because it is direct.", 3),
    Passage("assistant", "You're welcome! The flight is booked under INV-20931.", 3),
]
CHINESE = [
    Passage("user", "你好！我是云南人，我最喜欢的是米线。下个月我要去杭州出差。", 1),
    Passage("assistant", "当然可以！推荐江边米线店，人均100-200元。需要提前1-3天预约。", 1),
    Passage("user", "我对花生过敏，请记住。我的订单号是88417。", 2),
    Passage("assistant", "好的，已经记下了。餐厅会在下午3点前确认您的订单。", 2),
]
CODE = Passage(
    "assistant",
    "Store the rows in one table.\n```python\nimport sqlite3\n\ndb = sqlite3.connect('x.db')\n```\n"
    "The table grows by a row for each order.",
)


def spoken_sentences(summary: str) -> list[str]:
    return [
        sentence
        for speaker, line in labelled_lines(summary, "nobody")
        if not line.startswith(KEPT_LABEL)
        for sentence in split_sentences(line)
    ]


def source_of(passages: Sequence[Passage]) -> str:
    return "\n".join(passage.text for passage in passages)


@pytest.mark.parametrize("count", COUNTERS)
@pytest.mark.parametrize("passages", [TRAVEL, CHINESE, [*TRAVEL, *CHINESE]])
def test_every_cap_holds_and_nothing_is_empty(count: Count, passages: list[Passage]) -> None:
    summariser = ExtractiveSummariser(count)
    source = source_of(passages)
    for cap in (*range(1, 40), *range(40, count(source) + 2, 17)):
        summary = summariser.summarise(passages, cap)
        assert summary.strip()
        assert count(summary) <= cap
        assert count(summary) < count(source)


def test_what_the_user_states_and_decides_is_kept() -> None:
    summary = ExtractiveSummariser(by_piece).summarise(TRAVEL, 90)
    for sentence in (
        "My user ID is ada_kern_2041.",
        "I am allergic to nuts.",
        "My budget is $450.",
    ):
        assert sentence in summary
    assert "Let me know" not in summary
    assert "Hi!" not in summary
    assert missing_identifiers(extract_identifiers(source_of(TRAVEL)), summary) == ()


def test_chinese_is_quoted_by_sentences() -> None:
    summary = ExtractiveSummariser(by_character).summarise(CHINESE, 90)
    assert "我是云南人，我最喜欢的是米线。" in summary
    assert "我对花生过敏，请记住。" in summary
    assert summary.startswith("用户：")


def test_sentences_stand_in_order_under_who_said_them() -> None:
    summary = ExtractiveSummariser(by_piece).summarise(TRAVEL, 110)
    source = source_of(TRAVEL)
    places = [source.index(sentence.rstrip(";")) for sentence in spoken_sentences(summary)]
    assert places == sorted(places)
    lines = list(labelled_lines(summary, "nobody"))
    assert {speaker for speaker, line in lines if not line.startswith(KEPT_LABEL)} <= {
        "user",
        "assistant",
        "tool",
    }


def test_no_label_stands_before_a_language_without_one() -> None:
    passages = [
        Passage("user", "नमस्ते, मेरा नाम राम है। मुझे चाय पसंद है और मैं दिल्ली में रहता हूँ।"),
        Passage("assistant", "ठीक है, मैंने आपके लिए चाय का ऑर्डर दे दिया है। यह दस मिनट में आएगी।"),
    ]
    summary = ExtractiveSummariser(by_character).summarise(passages, 120)
    assert all(sentence in source_of(passages) for sentence in spoken_sentences(summary))
    assert ":" not in summary


def test_lost_identifiers_take_at_most_a_third() -> None:
    numbers = " ".join(f"REF-{number}" for number in range(1000, 1400))
    passages = [Passage("user", f"I live in Bern. The list follows. {numbers}"), *TRAVEL]
    summary = ExtractiveSummariser(by_piece).summarise(passages, 120)
    kept = summary.splitlines()[-1]
    assert kept.startswith(KEPT_LABEL)
    assert by_piece(kept) <= 40
    assert "I live in Bern." in summary


def test_an_earlier_summary_is_read_back() -> None:
    summariser = ExtractiveSummariser(by_piece)
    first = summariser.summarise(TRAVEL, 90)
    later = Passage(
        "user", "Now I need a hotel. Book the Blue Door for 3 nights under ORD-88417.", 4
    )
    again = summariser.summarise([Passage("summary", first), later], 110)
    assert again.count(KEPT_LABEL) <= 1
    assert "User: User:" not in again
    assert "I am allergic to nuts." in again
    wanted = extract_identifiers(f"{first}\n{later.text}")
    assert missing_identifiers(wanted, again) == ()


def test_program_text_is_not_quoted_beside_words() -> None:
    summary = ExtractiveSummariser(by_piece).summarise([CODE], 30)
    assert "sqlite3" not in summary
    assert "Store the rows in one table." in summary


def test_program_text_alone_is_still_something() -> None:
    only = Passage("assistant", "```python\nprint('one')\nprint('two')\nprint('three')\n```")
    assert ExtractiveSummariser(by_piece).summarise([only], 10)


def test_encoded_bytes_never_come_out() -> None:
    blob = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUg" * 50
    summariser = ExtractiveSummariser(by_bytes)
    passages = [Passage("user", f"Look at this {blob} picture of my cat. I live in Bern."), *TRAVEL]
    assert "iVBOR" not in summariser.summarise(passages, 150)
    assert summariser.summarise([Passage("user", blob)], 50) == ELLIPSIS


def test_a_long_sentence_is_cut_behind_a_word() -> None:
    words = "word " * 300
    summary = ExtractiveSummariser(by_piece).summarise([Passage("user", words)], 20)
    assert re.fullmatch(r"word( word)*…", summary)
    assert by_piece(summary) <= 20


def test_a_cut_prefers_the_end_of_a_clause() -> None:
    text = "We compared the copper lantern, the brass lantern, and the wooden one"
    assert cut_to_fit(text, 50, len) == "We compared the copper lantern, the brass lantern…"
    assert cut_to_fit(text, 30, len) == "We compared the copper…"
    assert cut_to_fit("不要把花生放进我的菜里，谢谢你", 14, len) == "不要把花生放进我的菜里…"
    assert cut_to_fit(text, 500, len) == text
    assert cut_to_fit(text, 0, len) == ""


def test_layout_and_labels_are_inverse() -> None:
    parts = [("user", "One."), ("assistant", "Two"), ("assistant", "Three.")]
    text = layout(parts, SPEAKER_LABELS["en"])
    assert text == "User: One.\nAssistant: Two; Three."
    assert list(labelled_lines(text, "nobody")) == [("user", "One."), ("assistant", "Two; Three.")]


@pytest.mark.parametrize("text", ["", " \n\t", "\x00\x01", "\u200b"])
def test_nothing_visible_gives_nothing(text: str) -> None:
    assert ExtractiveSummariser(by_character).summarise([Passage("user", text)], 10) == ""
    assert ExtractiveSummariser(by_character).summarise([], 10) == ""


@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    "unit", ["a", "三", "word ", "I am. ", "。", "1 ", "- x\n", '"', "```\n"], ids=repr
)
def test_repetition_takes_linear_time(unit: str) -> None:
    passage = Passage("user", unit * (200_000 // len(unit)))
    summary = ExtractiveSummariser(by_bytes).summarise([passage], 200)
    assert 0 < by_bytes(summary) <= 200


PIECES = [
    "I live in Bern.",
    "My order is INV-20931.",
    "你好。",
    "我住在北京！",
    "What?",
    "Thanks!",
    "\n",
    "- item",
    "1.",
    "```",
    "# Head",
    "**bold**",
    "Kept: a; b",
    "User:",
    "😀",
    "e\u0301",
    "\x00",
    "\u200b",
    "https://x.test/?id=7",
    "नमस्ते।",
    "word " * 60,
    "A1b2" * 30,
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=12).map(" ".join)
speakers = st.sampled_from(["user", "assistant", "tool", "summary"])
conversations = st.lists(st.builds(Passage, speakers, texts | st.text()), min_size=1, max_size=6)


@given(conversations, st.integers(4, 120), st.sampled_from(COUNTERS))
@example([Passage("user", "\ud800 lone \udfff")], 8, by_character)
@example([Passage("user", "ab")], 8, by_character)
@example([Passage("user", "x")], 8, by_character)
def test_any_source_gives_a_short_deterministic_summary(
    passages: list[Passage], cap: int, count: Count
) -> None:
    summary = ExtractiveSummariser(count).summarise(passages, cap)
    assert summary == ExtractiveSummariser(count).summarise(passages, cap)
    assert count(summary) <= cap
    source = source_of(passages)
    if count(source) > 2:
        assert count(summary) < count(source) or not summary
    visible = any(not c.isspace() and c.isprintable() for c in source)
    assert bool(summary) or not visible


NOUNS = ["lantern", "harbour", "meadow", "violin", "anchor", "cedar", "engine", "falcon", "kettle"]
sentences = st.lists(st.sampled_from(NOUNS), min_size=3, max_size=9).map(
    lambda nouns: f"The {' '.join(nouns)}."
)


@given(
    st.lists(
        st.builds(
            lambda speaker, parts: Passage(speaker, " ".join(parts)),
            st.sampled_from(["user", "assistant", "tool"]),
            st.lists(sentences, min_size=1, max_size=6),
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(10, 200),
)
def test_sentences_are_those_of_the_source(passages: list[Passage], cap: int) -> None:
    summary = ExtractiveSummariser(by_piece).summarise(passages, cap)
    assume(summary)
    said = {
        (passage.speaker, sentence)
        for passage in passages
        for sentence in split_sentences(passage.text)
    }
    for sentence in spoken_sentences(summary):
        if sentence.endswith(ELLIPSIS):
            assert any(one.startswith(sentence.rstrip(ELLIPSIS)) for _, one in said)
        else:
            assert sentence in {one for _, one in said}
