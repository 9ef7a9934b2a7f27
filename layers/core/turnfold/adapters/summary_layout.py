"""How chosen sentences are put on the page, and read back from it."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from turnfold.domain.identifiers import KEPT_LABEL
from turnfold.domain.tokens import CountText

ELLIPSIS = "…"
"""Stands where a sentence was cut, and for a source that is nothing but encoded bytes."""

SPEAKER_LABELS: Mapping[str, dict[str, str]] = {
    "en": {"user": "User: ", "assistant": "Assistant: ", "tool": "Tool: "},
    "zh": {"user": "用户：", "assistant": "助手：", "tool": "工具："},
    "ja": {"user": "ユーザー：", "assistant": "アシスタント：", "tool": "ツール："},
    "ko": {"user": "사용자: ", "assistant": "어시스턴트: ", "tool": "도구: "},
    "de": {"user": "Nutzer: ", "assistant": "Assistent: ", "tool": "Werkzeug: "},
    "fr": {"user": "Utilisateur : ", "assistant": "Assistant : ", "tool": "Outil : "},
    "es": {"user": "Usuario: ", "assistant": "Asistente: ", "tool": "Herramienta: "},
    "it": {"user": "Utente: ", "assistant": "Assistente: ", "tool": "Strumento: "},
    "pt": {"user": "Usuário: ", "assistant": "Assistente: ", "tool": "Ferramenta: "},
    "nl": {"user": "Gebruiker: ", "assistant": "Assistent: ", "tool": "Hulpmiddel: "},
    "ru": {"user": "Пользователь: ", "assistant": "Ассистент: ", "tool": "Инструмент: "},
}
"""Who said it, in the language of the conversation; no label stands before text of any other."""

_SPEAKER_OF_LABEL = {
    label.strip(): speaker
    for labels in SPEAKER_LABELS.values()
    for speaker, label in labels.items()
}
_LABEL = re.compile(
    rf"({'|'.join(sorted(map(re.escape, _SPEAKER_OF_LABEL), key=len, reverse=True))})\s*"
)
_ENDED = re.compile(r"[.!?…。！？；;:：,，।॥؟۔][\"'”’»)\]」』）】]*\Z")
_DENSE = r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]"
_DENSE_END = re.compile(rf"{_DENSE}\Z")
_DENSE_START = re.compile(_DENSE)
_CLAUSE_END = re.compile(r"[,;:—–](?=\s)|[，；：、،。！？]")
_LEAST_SHARE_OF_CLAUSES = 0.6


def _flowing(sentences: Iterable[str]) -> str:
    """Sentences on one line; items that end without a mark are set apart by semicolons."""
    line = ""
    for sentence in sentences:
        if line:
            dense = bool(_DENSE_END.search(line) and _DENSE_START.match(sentence))
            mark = "" if _ENDED.search(line) else "；" if dense else ";"
            line += mark + ("" if dense else " ")
        line += sentence
    return line


def layout(parts: Iterable[tuple[str, str]], labels: Mapping[str, str]) -> str:
    """Pairs of speaker and sentence as text: a line for each run of one speaker, with its label."""
    return "\n".join(
        labels.get(speaker, "") + _flowing(text for _, text in run)
        for speaker, run in groupby(parts, key=lambda part: part[0])
    )


def labelled_lines(text: str, speaker: str) -> Iterator[tuple[str, str]]:
    """The lines of a summary with who said them; `speaker` stands for what has no label.

    Text before the first label and the line of kept identifiers have none.
    """
    first = speaker
    for line in text.split("\n"):
        if line.startswith(KEPT_LABEL):
            yield first, line
            continue
        label = _LABEL.match(line)
        if label:
            speaker = _SPEAKER_OF_LABEL[label.group(1)]
        yield speaker, line[label.end() :] if label else line


def _longest_that_fits(ends: list[int], text: str, max_tokens: int, count: CountText) -> int:
    """The last of the ascending places where the text may be cut; 0 if none."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high + 1) // 2
        if count(_cut(text, ends[middle - 1])) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    # A counter need not be monotone to the token.
    while low and count(_cut(text, ends[low - 1])) > max_tokens:
        low -= 1
    return ends[low - 1] if low else 0


def _cut(text: str, end: int) -> str:
    return text[:end].rstrip(" \t\n,;:—–，；：、،") + ELLIPSIS


def cut_to_fit(text: str, max_tokens: int, count: CountText) -> str:
    """The beginning of the text and an ellipsis, within that many tokens; "" if nothing fits.

    It ends behind a clause where that leaves most of what would fit, else behind a word, else
    behind a character. A text that fits whole is given whole.
    """
    if count(text) <= max_tokens:
        return text
    characters = [at for at in range(1, len(text)) if not unicodedata.combining(text[at])]
    by_character = _longest_that_fits(characters, text, max_tokens, count)
    if not by_character:
        return ""
    fitting = text[:by_character]
    words = [match.start() for match in re.finditer(r"\s+", text[: by_character + 1])]
    words += [at for at in range(1, len(fitting) + 1) if _DENSE_START.match(text, at)]
    clauses = [match.end() for match in _CLAUSE_END.finditer(fitting)]
    end = by_character
    for ends, least in ((clauses, _LEAST_SHARE_OF_CLAUSES), (words, 0.0)):
        allowed = [at for at in sorted(ends) if least * by_character <= at <= by_character and at]
        found = _longest_that_fits(allowed, text, max_tokens, count)
        if found:
            end = found
            break
    return _cut(text, end)
