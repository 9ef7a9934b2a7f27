"""Sentence boundaries in several scripts; nothing is lost, nothing is unbounded."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnfold.domain.sentences import MAX_SENTENCE_CHARACTERS, split_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. Smith paid $3.50 for it.", "He left at 5 p.m. yesterday... and came back."],
        ["J. K. Rowling wrote e.g. novels, etc.", "No.", "I said No. 5!", "Really?!"],
        ["In 2010.", "Then I am 35.", "My cat.", "I live in the U.S.", "Now what?"],
        ["hi!", "how are you?", "we use node.", "it works."],
        ['"Is it?" he asked.', "It was (as I said.)", "Yes."],
        ["Ich wohne in St. Gallen.", "Das war am 3. Mai so.", "Z.B. hier."],
        ["M. Dupont est là.", "¿Qué tal?", "¡Bien!"],
        ["1. First things.", "Second things."],
    ],
)
def test_spaced_scripts(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["步骤：1. 面团：加温水，揉到光滑。", "2. 馅料：少放盐！", "价格3.5元；", "不贵"],
        ["今日は晴れです。", "「本当ですか？」", "はい。"],
        ["他说：“好吃吗？”", "真好吃。"],
    ],
)
def test_dense_scripts(sentences: list[str]) -> None:
    assert split_sentences("".join(sentences)) == sentences


def test_devanagari_and_arabic() -> None:
    assert split_sentences("यह एक वाक्य है। दूसरा?") == ["यह एक वाक्य है।", "दूसरा?"]
    assert split_sentences("كيف حالك؟ أنا بخير۔ نعم.") == ["كيف حالك؟", "أنا بخير۔", "نعم."]


def test_lines_items_and_code() -> None:
    text = (
        "# Steps\n- one thing\n- two things\r\n\n1. First. Second.\u2028"
        "```python\nx = 1. \n\ny = 2\n```\n"
        "This line was wrapped by hand at about sixty columns and\ngoes on here.\nEnd"
    )
    assert split_sentences(text) == [
        "# Steps",
        "- one thing",
        "- two things",
        "1. First.",
        "Second.",
        "```python\nx = 1. \n\ny = 2\n```",
        "This line was wrapped by hand at about sixty columns and goes on here.",
        "End",
    ]


def test_a_long_sentence_is_cut_at_clauses() -> None:
    pieces = split_sentences("one two three four, " * 200)
    assert all(piece.endswith("four,") for piece in pieces)
    assert all(len(piece) <= MAX_SENTENCE_CHARACTERS for piece in pieces)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit",
    [
        " ",
        "a",
        '"',
        ".",
        ". ",
        "三",
        "。",
        "```\n",
        "\n",
        ",",
        "word ",
        "e\u0301",
        "\u0301",
        "…",
        '!"',
        "a" * 60 + "\n",
        "1. ",
        "~~~\n",
        "- ",
    ],
    ids=repr,
)
def test_a_megabyte_is_cut_into_bounded_pieces(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    pieces = split_sentences(text)
    assert max(map(len, pieces), default=0) <= MAX_SENTENCE_CHARACTERS
    assert "".join("".join(pieces).split()) == "".join(text.split())


PIECES = [
    "Mr.",
    "e.g.",
    "3.5",
    "。",
    "？",
    "”",
    '"',
    ")",
    "word",
    "I.",
    "No.",
    "…",
    "...",
    "!",
    "\n",
    "```",
    "- ",
    "1. ",
    "三",
    "\u2028",
    "\r\n",
    "\x00",
    "\u200b",
    "😀",
    "\u0301",
    "a" * 700,
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5)).map(" ".join) | st.text())
@example("~~~ not closed\n a. b")
def test_nothing_is_lost(text: str) -> None:
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence.strip() == sentence != "" for sentence in sentences)
    assert all(len(sentence) <= MAX_SENTENCE_CHARACTERS for sentence in sentences)
