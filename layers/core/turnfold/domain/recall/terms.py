"""Texts as terms: what is indexed and what a query asks for.

Words are folded, and stemmed where they are English. A code such as ORD-88417 is one term without
its punctuation, and its parts are terms too. Scripts that are written without blanks give single
characters and pairs of neighbours, since nothing here knows where their words end.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from turnfold.domain.recall.folding import fold
from turnfold.domain.recall.function_words import FUNCTION_WORDS
from turnfold.domain.recall.stemming import stem

TERMS_VERSION = 2
"""Grows when the same text gives other terms than before; indexes of older versions are made anew.
"""

MAX_TERM_CHARACTERS = 64
"""Longer words are cut: they are data rather than words, and must not fill an index."""

MAX_CODE_PARTS = 8

# Vowel signs, which no `\w` matches, belong to the words of Indic scripts, Tibetan, Thai, Lao,
# Burmese and Khmer.
_LETTER = (
    r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0df3\u0f71-\u0fbc\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    r"\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u17b4-\u17d3])"
)
_WORD = re.compile(rf"{_LETTER}+")
_RUN = re.compile(rf"{_LETTER}+(?:(?:[-_./:#]|(?<=\d),(?=\d)){_LETTER}+)*")
_DENSE = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    r"\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    r"\uf900-\ufaff\U00020000-\U0003ffff"
)
_PIECE = re.compile(rf"(?P<dense>[{_DENSE}]+)|[^{_DENSE}]+")
_LETTERS_AND_DIGITS = re.compile(r"([^\W\d_]+)(\d+)|(\d+)([^\W\d_]+)")
# People write 17% and ask how many percent.
_SPELLED = str.maketrans({"%": " percent ", "$": " dollar ", "€": " euro ", "£": " pound "})
# What colours a terminal ends with a letter, which is none of the text's.
_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_TWO_DIGITS = re.compile("0[0-9]")
"""As in a date or a time, where 05 is 5."""
_SEPARATORS = re.compile(r"[-_./:#]")


@dataclass(frozen=True, slots=True)
class Term:
    """A term, and the word of the text that gave it, folded."""

    text: str
    word: str

    @property
    def tells_little(self) -> bool:
        """Whether it is a function word."""
        return self.word in FUNCTION_WORDS


def is_single_character(term: str) -> bool:
    """Whether the term is one character of a script without blanks, half as telling as a word."""
    if len(term) != 1 or term.isascii():
        return False
    piece = _PIECE.fullmatch(term)
    return piece is not None and bool(piece["dense"])


def terms_of(text: str) -> Iterator[Term]:
    """All terms of a text, in order, repeated as often as they occur."""
    if "\x1b" in text:
        text = _TERMINAL.sub(" ", text)
    for run in _RUN.finditer(fold(text).translate(_SPELLED)):
        words = _WORD.findall(run.group())
        for word in words:
            yield from _word_terms(word)
        if 1 < len(words) <= MAX_CODE_PARTS and any(c.isdigit() for c in run.group()):
            yield _term(_code(run.group()))


def _word_terms(word: str) -> Iterator[Term]:
    for piece in _PIECE.finditer(word):
        part = piece.group()
        if piece["dense"]:
            yield from (Term(one, one) for one in part)
            yield from (Term(part[at : at + 2], part[at : at + 2]) for at in range(len(part) - 1))
            continue
        yield _term(part)
        mixed = _LETTERS_AND_DIGITS.fullmatch(part)
        if mixed:
            yield from (_term(one) for one in mixed.groups() if one)


def _term(word: str) -> Term:
    word = word[:MAX_TERM_CHARACTERS]
    plain = word[1:] if _TWO_DIGITS.fullmatch(word) else word
    return Term(stem(plain), word)


def _code(run: str) -> str:
    """A run of parts as one word: 1,250 is 1250, ORD-88417 is ord88417, 2026-01-05 stays."""
    whole = run.replace(",", "")
    return _SEPARATORS.sub("", whole) if any(c.isalpha() for c in whole) else whole
