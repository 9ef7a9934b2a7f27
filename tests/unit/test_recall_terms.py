"""Texts as terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.domain.recall.folding import fold
from turnfold.domain.recall.stemming import stem
from turnfold.domain.recall.terms import MAX_TERM_CHARACTERS, is_single_character, terms_of


def terms(text: str) -> list[str]:
    return [term.text for term in terms_of(text)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("zoë", "ZOË"),
        ("Zoe\u0308", "zoë"),
        ("cafe", "Café"),
        ("CAFÉ", "cafe\u0301"),
        ("ﬁne", "FINE"),
        ("ＡＢＣ１２３", "abc123"),
        ("Straße", "STRASSE"),
        ("Łódź", "lodz"),
        ("Øresund", "oresund"),
        ("Ἀθῆναι", "αθηναι"),
        ("Ёлка", "елка"),
        ("شَمْس", "شمس"),
        ("שָׁלוֹם", "שלום"),
        ("co\u00adoperate", "cooperate"),
        ("ﾗｰﾒﾝ", "ラーメン"),
    ],
)
def test_case_accents_and_widths_do_not_matter(one: str, other: str) -> None:
    assert terms(one) == terms(other) != []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ORD-88417", {"ord", "88417", "ord88417"}),
        ("ord88417", {"ord", "88417", "ord88417"}),
        ("1,250", {"1250"}),
        ("2026-01-05", {"2026", "1", "5", "2026-01-05"}),
        ("v2.0.1", {"v201", "0", "1"}),
        ("src/app/main.py", {"src", "app", "main", "py"}),
        ("17%", {"17", "percent"}),
        ("$45", {"dollar", "45"}),
        ("don't", {"don", "t"}),
    ],
)
def test_codes_are_found_whole_and_in_parts(text: str, parts: set[str]) -> None:
    assert set(terms(text)) >= parts


def test_colours_of_a_terminal_are_no_letters() -> None:
    assert terms("a\x1b[31mred\x1b[0mb \x1b[1;32mok\x1b[m") == terms("a red b ok")


def test_scripts_without_blanks_give_characters_and_pairs() -> None:
    assert terms("北京烤鸭") == ["北", "京", "烤", "鸭", "北京", "京烤", "烤鸭"]
    assert set(terms("東京タワー")) >= {"東京", "タワ", "東"}
    assert set(terms("서울에서")) >= {"서울"}
    assert set(terms("iPhone手机15")) >= {"iphon", "手机", "15"}
    assert is_single_character("京")
    assert not is_single_character("京烤")
    assert not is_single_character("a")


@pytest.mark.parametrize("text", ["नमस्ते दुनिया", "வணக்கம் உலகம்", "မြန်မာ စာ"])
def test_words_of_other_scripts_keep_their_signs(text: str) -> None:
    assert terms(text)
    assert all(term in text for term in terms(text))


@pytest.mark.parametrize(
    "forms",
    [
        ("connect", "connected", "connecting", "connection", "connections"),
        ("hope", "hoped", "hopes", "hoping"),
        ("hop", "hopped", "hopping"),
        ("agree", "agreed", "agreeing"),
        ("story", "stories"),
        ("buy", "bought", "buys", "buying"),
        ("child", "children"),
        ("write", "wrote", "written", "writing"),
        ("relate", "relational", "related"),
        ("happy", "happiness"),
    ],
)
def test_forms_of_a_word_are_one_term(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize(
    "word", ["sky", "caresses", "ponies", "sing", "falling", "electrical", "y"]
)
def test_a_stem_is_not_longer_than_its_word(word: str) -> None:
    assert 0 < len(stem(word)) <= len(word)


@given(st.text(max_size=200))
def test_any_text_gives_terms_that_are_short_and_without_blanks(text: str) -> None:
    for term in terms(text):
        assert 0 < len(term) <= 3 * MAX_TERM_CHARACTERS
        assert " " not in term


@given(st.text(max_size=100))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text(max_size=50), st.text(max_size=50))
def test_a_line_feed_parts_texts(one: str, other: str) -> None:
    assert sorted(terms(f"{one}\n{other}")) == sorted(terms(one) + terms(other))


@pytest.mark.parametrize(
    "text", ["", " ", "\x00", "***", '"', "👍🏽", "????", "(((", "\\", "\ufffd"]
)
def test_what_has_no_word_has_no_term(text: str) -> None:
    assert terms(text) == []


@pytest.mark.parametrize(
    "unit", ["a", "a-", "1,", "-_./:#", "漢", "a1", "e\u0301", "\u0301", "ab ", "1.", "न"]
)
@pytest.mark.timeout(60)  # seconds; a pattern that backtracks would take hours
def test_a_long_text_does_not_hang(unit: str) -> None:
    for _ in terms_of(unit * (400_000 // len(unit))):
        pass
