"""Sentences of running text, list items and blocks of program text, in any script."""

import re
import unicodedata
from collections.abc import Iterator

MAX_SENTENCE_CHARACTERS = 1000
"""No piece that `split_sentences` gives is longer."""

_LINE_END = re.compile(r"\r\n?|[\n\v\f\x1c-\x1e\x85\u2028\u2029]")
_FENCE = re.compile(r"[ \t]{0,3}(?:```|~~~)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•·‣◦–—]\s|\(?\d{1,3}[.)、]|\(?[a-zA-Z][.)]\s|#{1,6}\s|>|\|)")
# A line this long that goes on in small letters was wrapped, not ended.
_WRAPPED_LINE = 50

_CLOSING = "\"'”’»›)]」』）】》〉*_"
_CLOSERS = re.escape(_CLOSING)
_LONGEST_ITEM_NUMBER = 2
_BOUNDARY = re.compile(
    # Full stops of scripts that put no blank behind them.
    rf"(?:[。！？｡；।॥؟۔።။។‼⁇⁈⁉]{{1,8}}+|…{{2,8}}+)[{_CLOSERS}]{{0,4}}+"
    rf"|(?:[.!?…]{{1,8}}+)[{_CLOSERS}]{{0,4}}+(?=\s|[\u2e80-\u9fff가-힣])"
)
_LAST_WORD = re.compile(r"[^\s(\[\"“‘'«:：，,。；;、]{1,24}\Z")
_ABBREVIATIONS = (
    "mr mrs ms dr prof st mt sr gen col sgt capt lt rev hon gov sen rep pres no nos vol vols fig"
    " figs eq sec ch pp"
    " vs v cf e.g i.e eg ie viz ca approx dept est ext tel nr bzw z.b d.h u.a ggf evtl vgl abs"
    " art str hr fr"
    " dipl ing mme mlle mgr m.e sra srta dra ud uds núm pág av resp incl excl max min avg"
)
_ALWAYS_GOES_ON = frozenset(_ABBREVIATIONS.split())
# They may also end a sentence.
_FINAL_ABBREVIATIONS = (
    "etc inc ltd co corp jr u.s u.k u.n a.m p.m am pm usw usf al bros ph.d b.a m.a jan feb mar"
    " apr jun jul aug sep"
    " sept oct nov dec mon tue wed thu fri sat sun dgl ff cia"
)
_GOES_ON_IN_SMALL_LETTERS = frozenset(_FINAL_ABBREVIATIONS.split())
_GERMAN_MONTHS = frozenset(
    ("jan", "feb", "mär", "apr", "mai", "jun", "jul", "aug", "sep", "okt", "nov", "dez")
)
# English words in their own right, abbreviations only before what they introduce.
_ALSO_WORDS = frozenset(("no", "nos", "art", "max", "min", "fig", "st", "v", "hr", "fr"))
_BEFORE_NAMES = frozenset(("st", "hr", "fr"))
_CLAUSE_END = re.compile(r"[,;:，；：、،]\s?")
# What is looked at before a mark to decide about it, in characters.
_CONTEXT = 40
_LEAST_PIECE = MAX_SENTENCE_CHARACTERS // 2


def _number_ends(number: str, before: str, after: str) -> bool:
    if len(number) > _LONGEST_ITEM_NUMBER:
        return True
    # "1. First": a number that opens the sentence or follows a mark is an item's number.
    lead = before[: len(before) - len(number)].rstrip()
    is_item = not lead or lead[-1] in ":：;；。，,、(（.!?！？-*"
    # "3. Mai": German writes the ordinal with a full stop.
    return not (is_item or after[:3].lower() in _GERMAN_MONTHS)


def _abbreviation_ends(word: str, following: str) -> bool:
    lower = word.lower()
    if lower in _ALSO_WORDS:
        return not (following.isdigit() or (lower in _BEFORE_NAMES and following.isupper()))
    if lower in _ALWAYS_GOES_ON:
        return False
    if len(word) == 1 and word.isupper() and word != "I":
        return not following.isupper()
    if lower in _GOES_ON_IN_SMALL_LETTERS:
        return not (following.islower() or following.isdigit())
    # A dot inside the word and small letters behind it: an unknown abbreviation.
    return not (following.islower() and ("." in word or len(word) == 1))


def _ends(before: str, mark: str, after: str) -> bool:
    """Whether a mark ends its sentence; `before` is the sentence up to it."""
    if mark.strip(_CLOSING) != ".":
        # "..." and "?" inside a quotation go on in small letters, plain "!" and "?" do not.
        goes_on = mark.startswith((".", "…")) or mark[-1] in _CLOSING
        return not (goes_on and after[:1].islower())
    found = _LAST_WORD.search(before)
    word = found.group() if found else ""
    if word.isdigit():
        return _number_ends(word, before, after)
    return not word or _abbreviation_ends(word, after[:1])


def _of_line(line: str) -> Iterator[str]:
    start = 0
    for match in _BOUNDARY.finditer(line):
        mark = match.group()
        after = line[match.end() : match.end() + 8].lstrip()
        if after and not _ends(line[start : match.start()][-_CONTEXT:], mark, after):
            continue
        yield line[start : match.end()]
        start = match.end()
    yield line[start:]


def _bounded(text: str) -> Iterator[str]:
    """Cut at the last clause, else at the last blank, else before the limit."""
    start = 0
    while len(text) - start > MAX_SENTENCE_CHARACTERS:
        window = text[start : start + MAX_SENTENCE_CHARACTERS]
        cut = 0
        for match in _CLAUSE_END.finditer(window, _LEAST_PIECE):
            cut = match.end()
        if not cut:
            cut = window.rfind(" ", _LEAST_PIECE) + 1
        if not cut:
            cut = MAX_SENTENCE_CHARACTERS
            # Marks belong to the letter before them.
            while cut > _LEAST_PIECE and unicodedata.combining(text[start + cut]):
                cut -= 1
        yield text[start : start + cut]
        start += cut
    yield text[start:]


def _blocks(text: str) -> Iterator[tuple[bool, str]]:
    """Each paragraph line, and each block of program text, with whether it is the latter."""
    fenced: list[str] | None = None
    open_line = ""
    for line in _LINE_END.split(text):
        if fenced is not None:
            fenced.append(line)
            if _FENCE.match(line):
                yield True, "\n".join(fenced)
                fenced = None
            continue
        if _FENCE.match(line):
            if open_line:
                yield False, open_line
                open_line = ""
            fenced = [line]
            continue
        wrapped = (
            len(open_line) >= _WRAPPED_LINE
            and line.lstrip()[:1].islower()
            and open_line[-1:] not in ".!?:。！？：|"
            and not _ITEM.match(line)
        )
        if wrapped and len(open_line) < MAX_SENTENCE_CHARACTERS:
            open_line = f"{open_line} {line.strip()}"
            continue
        if open_line:
            yield False, open_line
        open_line = line.strip()
    if open_line:
        yield False, open_line
    if fenced is not None:
        yield True, "\n".join(fenced)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text in order, without blanks around them and none of them blank.

    Together they carry every character of the text that is not blank. Each line ends a sentence
    unless it is plainly wrapped; a fenced block of program text is one piece. A piece of more than
    `MAX_SENTENCE_CHARACTERS` is cut at a clause or between words.
    """
    sentences: list[str] = []
    for is_code, block in _blocks(text):
        for sentence in (block,) if is_code else _of_line(block):
            sentences += [piece for part in _bounded(sentence.strip()) if (piece := part.strip())]
    return sentences
