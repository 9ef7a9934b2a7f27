"""How much each sentence of a conversation is worth to a summary of it."""

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from turnfold.adapters import sentence_cues as cues
from turnfold.adapters.statements import (
    is_asked_to_be_kept,
    is_lasting_statement,
    is_question,
    speaks_of_themselves,
)
from turnfold.adapters.summary_layout import labelled_lines
from turnfold.domain.blobs import without_blobs
from turnfold.domain.identifiers import KEPT_LABEL, extract_identifiers
from turnfold.domain.passages import Passage
from turnfold.domain.phrases import Phrases
from turnfold.domain.sentences import split_sentences

# Controls and lone surrogates are no text; tabs and line ends are kept for the sentence splitter.
_INVISIBLE = re.compile(r"[\x00-\x08\x0e-\x1b\x7f\ud800-\udfff]")
_MARKERS = re.compile(r"\A(?:#{1,6}\s+|[-*+•·‣◦]\s+|\(?\d{1,3}[.)](?=\s)\s*|>\s*|[-–—]{2,}\s*)+")
_EMPHASIS = re.compile(r"\*\*|__(?=\w)|(?<=\w)__")
# Program text is not quoted where there are words beside it.
_CODE_BLOCK = re.compile(r"^[ \t]{0,3}```.*?(?:^[ \t]{0,3}```[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)

# Scripts without blanks between words are compared by pairs of characters.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
_TERM = re.compile(r"[^\W_]{2,40}")
_STEM = 7
_SMALL_TALK = Phrases(cues.SMALL_TALK)
_OFFER = Phrases(cues.OFFER)
_REFERS_BACK = Phrases(cues.REFERS_BACK)
_DECISION = Phrases(cues.DECISION)
_FIRST_PERSON = Phrases(cues.FIRST_PERSON)
_MACHINE_SIGN = re.compile(r"[{}\[\]<>=|\\_\"/;$]")
_END = re.compile(r"[.!?…。！？；;।॥؟۔][\"'”’»)\]」』）】]*\Z")

MOST_CANDIDATES = 2000
"""Sentences that are looked at closely; a source of 100,000 tokens has three times as many."""

_SPEAKER_WEIGHT = {"user": 1.0, "summary": 1.0, "assistant": 0.8, "tool": 0.45}
_MOST_MACHINE_SIGNS = 0.08
# Lengths are in characters, and those of dense scripts count double.
_FRAGMENT = 25
_LEAST_TERMS = 2
_FACT = 0.6
_SHORT = 60
_OPENING_QUOTES = '"“„«「『'
_CLOSING_QUOTES = '"”“»」』'
# Long answers begin with what matters and end in details.
_DECLINE = 0.25
_LONG = 320
_WIDE_LETTER = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may go into a summary.

    `order` is its place in the source, `part` the number of the passage (of the line, in an earlier
    summary) that it stands in, `text` how it would be shown: without list markers and emphasis.
    `score` is its worth before anything is chosen.
    """

    order: int
    part: int
    speaker: str
    text: str
    terms: frozenset[str]
    score: float


@dataclass(frozen=True, slots=True)
class _Piece:
    part: int
    speaker: str
    place: int
    of: int
    raw: str
    text: str
    terms: frozenset[str]


def visible_text(text: str) -> str:
    """The text without controls, lone surrogates and encoded bytes."""
    return without_blobs(_INVISIBLE.sub(" ", text))


def _terms(text: str) -> frozenset[str]:
    lower = text.lower()
    found = {
        word[:_STEM]
        for word in _TERM.findall(_UNSPACED.sub(" ", lower))
        if word not in cues.STOP_WORDS
    }
    for run in _UNSPACED.findall(lower):
        found.update(run[at : at + 2] for at in range(len(run) - 1))
    return frozenset(found)


def _shown(sentence: str) -> str:
    text = _EMPHASIS.sub("", sentence)
    text = _MARKERS.sub("", text).strip()
    return " ".join(text.split())


def _spoken_lines(passage: Passage) -> Iterator[tuple[str, str]]:
    """The speaker and the text of each part; an earlier summary names its speakers itself."""
    text = visible_text(passage.text)
    if passage.speaker != "summary":
        prose = _CODE_BLOCK.sub("\n", text)
        yield passage.speaker, prose if prose.strip() else text
        return
    for speaker, line in labelled_lines(text, passage.speaker):
        if not line.startswith(KEPT_LABEL):
            yield speaker, line


def _pieces(passages: Sequence[Passage]) -> Iterator[_Piece]:
    parts = (part for passage in passages for part in _spoken_lines(passage))
    for number, (speaker, text) in enumerate(parts):
        sentences = split_sentences(text)
        for place, sentence in enumerate(sentences):
            shown = _shown(sentence)
            if any(map(str.isalnum, shown)) or len(sentences) == 1:
                yield _Piece(
                    part=number,
                    speaker=speaker,
                    place=place,
                    of=len(sentences),
                    raw=sentence,
                    text=shown or sentence,
                    terms=_terms(shown),
                )


def _weights(pieces: Sequence[_Piece]) -> dict[str, float]:
    frequencies: Counter[str] = Counter()
    for piece in pieces:
        frequencies.update(piece.terms)
    total = len(pieces) + 1
    # Words of a single sentence say nothing about the whole, words of nearly all neither.
    return {term: math.log1p(n - 1 + 0.3) * math.log(total / n) for term, n in frequencies.items()}


def _length(text: str) -> float:
    """Characters, where a character of a dense script counts double."""
    return len(text) + (_WIDE_LETTER - 1) * sum(map(len, _UNSPACED.findall(text)))


def _manner(piece: _Piece) -> float:
    """A factor for what kind of sentence it is, whatever it is about."""
    text = piece.text
    factor = _SPEAKER_WEIGHT.get(piece.speaker, 1.0)
    if len(_MACHINE_SIGN.findall(text)) > _MOST_MACHINE_SIGNS * len(text):
        factor *= 0.3
    length = _length(text)
    if is_question(text):
        # What the user asked for opens the matter; what the assistant asks is answered or not.
        factor *= 0.9 if piece.speaker == "user" else 0.5
    if _SMALL_TALK.begin(text):
        factor *= 0.35 if length < _SHORT else 0.75
    if piece.speaker != "user" and _OFFER.occur_in(text):
        factor *= 0.25
    if text[0] in _OPENING_QUOTES and not any(quote in text[1:] for quote in _CLOSING_QUOTES):
        factor *= 0.7
    if piece.speaker != "user":
        factor *= 1 - _DECLINE * piece.place / piece.of
    if piece.raw.lstrip().startswith("#") or text.endswith((":", "：")):
        factor *= 0.35
    elif not _END.search(text):
        factor *= 0.75 if piece.speaker == "user" else 0.55
    if _REFERS_BACK.begin(text):
        factor *= 0.8
    if length > _LONG:
        factor *= (_LONG / length) ** 0.5
    return factor


def _statement(piece: _Piece) -> float:
    """What it is worth that people say something about themselves."""
    if piece.speaker not in ("user", "summary"):
        return 0.0
    if is_asked_to_be_kept(piece.text):
        return 0.9
    if is_lasting_statement(piece.text):
        return 0.6
    if speaks_of_themselves(piece.text):
        return 0.45
    return 0.15 if _FIRST_PERSON.occur_in(piece.text) else 0.0


def _emphasis(piece: _Piece, identifiers: Sequence[str]) -> float:
    """What a sentence is worth beyond its words and its speaker."""
    extra = 0.12 * min(3, len(identifiers))
    if _DECISION.occur_in(piece.text):
        extra += 0.2
    if piece.place == 0:
        extra += 0.2
    elif 1 < piece.place == piece.of - 1:
        extra += 0.05
    return extra


def _worth_a_look(pieces: Sequence[_Piece], contents: Sequence[float]) -> list[int]:
    """The pieces that are scored in full: all, or the most telling ones of a very long source."""
    if len(pieces) <= MOST_CANDIDATES:
        return list(range(len(pieces)))

    def promise(at: int) -> float:
        piece = pieces[at]
        return (
            contents[at] * _SPEAKER_WEIGHT.get(piece.speaker, 1.0) * (2 if piece.place == 0 else 1)
        )

    return sorted(heapq.nlargest(MOST_CANDIDATES, range(len(pieces)), key=promise))


def score_sentences(passages: Sequence[Passage]) -> list[Candidate]:
    """Up to `MOST_CANDIDATES` different sentences of the passages in order, scored.

    High: words that the whole is about, identifiers, the first sentence of a passage, what the user
    states and decides. Low: small talk, offers of help, headings, questions of the assistant, tool
    output and fragments. The work is linear in the length of the source.
    """
    different: dict[str, _Piece] = {}
    for piece in _pieces(passages):
        # Of a sentence that is said again and again the first stands for all.
        different.setdefault(piece.text, piece)
    pieces = list(different.values())
    weights = _weights(pieces)
    contents = [
        sum(weights[term] for term in piece.terms) / (len(piece.terms) + 4) ** 0.6
        for piece in pieces
    ]
    most = max(contents, default=0.0) or 1.0
    candidates = []
    for order in _worth_a_look(pieces, contents):
        piece = pieces[order]
        identifiers = extract_identifiers(piece.text)
        statement = _statement(piece)
        score = 0.3 + contents[order] / most + statement + _emphasis(piece, identifiers)
        score *= _manner(piece)
        # A short sentence is a fragment, unless it says a fact.
        is_short = _length(piece.text) < _FRAGMENT or len(piece.terms) < _LEAST_TERMS
        if is_short and statement < _FACT:
            score *= 0.6
        candidates.append(
            Candidate(order, piece.part, piece.speaker, piece.text, piece.terms, score)
        )
    return candidates
