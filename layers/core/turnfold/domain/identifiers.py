"""Identifiers: the parts of a text that a summary must repeat letter for letter.

Numbers with units, amounts of money, dates and times, addresses, codes, paths, versions and quoted
names, in any script. The work grows with the length of the text alone.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from turnfold.domain import identifier_patterns as patterns
from turnfold.domain.blobs import without_blobs

KEPT_LABEL = "Kept: "
_KEPT_SEPARATOR = "; "
_LONGEST_KEPT = 500
# Beyond the longest prefix that fits, so many later (shorter) identifiers are still tried.
_LATER_TRIES = 24

# Smaller numbers count things that nobody has to look up.
_LEAST_DIGITS = 2
_BARE_PREFIXES = frozenset("+-−~≈<>≤≥v第")
# "B2" is a code, "x2" is not.
_LEAST_CODE = 3
# "Call 020 7946 0958": as many digits as a telephone number has.
_PHONE_DIGITS = range(7, 16)
_MOST_QUOTED_WORDS = 6
_MOST_QUOTED_CJK = 20
_CJK = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef가-힣]")

_FENCE = re.compile(r"^[ \t]{0,3}```[^\n]*\n.*?^[ \t]{0,3}```", re.MULTILINE | re.DOTALL)
_LIST_MARKER = re.compile(r"^[ \t>*-]{0,16}+\(?\d{1,3}[.)、](?![\d])", re.MULTILINE)
_KEPT_LINE = re.compile(rf"^{re.escape(KEPT_LABEL)}(?P<items>[^\n]{{1,20000}}+)", re.MULTILINE)
_CLOSING = ".,;:!?…。，、；：！？'\"’”»*_`)]}>）】」』》"
_OPENERS = {")": "(", "]": "[", "}": "{", "）": "（"}

_Hit = tuple[int, int, str]


def _trim(text: str) -> str:
    while text and text[-1] in _CLOSING:
        opener = _OPENERS.get(text[-1])
        if opener is not None and text.count(opener) >= text.count(text[-1]):
            break
        text = text[:-1]
    return text


def _whole(pattern: re.Pattern[str], text: str) -> Iterator[_Hit]:
    for match in pattern.finditer(text):
        found = _trim(match.group())
        if found:
            yield match.start(), match.start() + len(found), found


def _numbers(text: str, list_markers: frozenset[int]) -> Iterator[_Hit]:
    for match in patterns.NUMERIC.finditer(text):
        prefix, core, unit = match.group("prefix", "core", "unit")
        bare = unit is None and (prefix is None or prefix.strip() in _BARE_PREFIXES)
        too_short = sum(c.isdigit() for c in core) < _LEAST_DIGITS
        if bare and (too_short or match.start("core") in list_markers):
            continue
        yield match.start(), match.end(), match.group().strip()


def _phones(text: str) -> Iterator[_Hit]:
    for match in patterns.PHONE.finditer(text):
        found = match.group()
        if found[0] in "+(0" and sum(c.isdigit() for c in found) in _PHONE_DIGITS:
            yield match.start(), match.end(), found


def _codes(text: str) -> Iterator[_Hit]:
    for match in patterns.CODE.finditer(text):
        found = match.group()
        # isalpha and isdigit settle nearly every word without a look at single letters.
        if found.isalpha() or found.isdigit():
            continue
        has_both = any(map(str.isdigit, found)) and any(map(str.isalpha, found))
        too_short = len(found) < _LEAST_CODE and not found[0].isupper()
        if not has_both or too_short or patterns.ORDINAL.match(found):
            continue
        yield match.start(), match.end(), found
    for match in patterns.SPACED_CODE.finditer(text):
        yield match.start("code"), match.end("code"), match.group("code")


def _quoted(text: str) -> Iterator[_Hit]:
    for match in patterns.QUOTED.finditer(text):
        name = (match.group(match.lastgroup) if match.lastgroup else "").strip()
        wide = len(_CJK.findall(name))
        if not any(c.isalnum() for c in name) or name[-1] in ".!?,。！？，":
            continue
        if wide > _MOST_QUOTED_CJK or len(name.split()) > _MOST_QUOTED_WORDS:
            continue
        yield match.start(), match.end(), name


def _kept(text: str) -> Iterator[_Hit]:
    for match in _KEPT_LINE.finditer(text):
        at = match.start("items")
        for item in match.group("items").split(_KEPT_SEPARATOR):
            if item.strip() and len(item) <= _LONGEST_KEPT:
                yield at, at + len(item), item.strip()
            at += len(item) + len(_KEPT_SEPARATOR)


def _hits(text: str) -> Iterator[_Hit]:
    yield from _kept(text)
    for pattern in (patterns.URL, patterns.EMAIL, patterns.UNIX_PATH, patterns.WINDOWS_PATH):
        yield from _whole(pattern, text)
    # Numbers and strings in program text are not facts of the conversation.
    prose = _FENCE.sub(lambda match: " " * len(match.group()), text) if "```" in text else text
    markers = frozenset(
        match.start() + at
        for match in _LIST_MARKER.finditer(prose)
        for at in [next(i for i, c in enumerate(match.group()) if c.isdigit())]
    )
    for pattern in (patterns.NAMED_DATE, patterns.CJK_DATE, patterns.CJK_TIME, patterns.CJK_AMOUNT):
        yield from _whole(pattern, prose)
    yield from _numbers(prose, markers)
    yield from _phones(prose)
    yield from _codes(prose)
    yield from _quoted(prose)


def extract_identifiers(text: str) -> tuple[str, ...]:
    """Every identifier of the text, in order of first appearance, each once, as it is written.

    Of overlapping findings the one that starts first is taken, and of those the longest. Quoted
    names come without their quotes. Encoded bytes and, but for addresses and paths, fenced program
    text are passed over. The items of a `Kept:` line are identifiers too, so that folding a summary
    again loses none.
    """
    found: dict[str, str] = {}
    end = -1
    for start, stop, identifier in sorted(
        _hits(without_blobs(text)), key=lambda hit: (hit[0], -hit[1])
    ):
        if start < end:
            continue
        end = stop
        key = _comparable(identifier)
        if key:
            found.setdefault(key, identifier)
    return tuple(found.values())


_ENGLISH_MONTHS = re.compile(
    r"\b(jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)(?:uary|ruary|ch|il|e|y|ust|t|tember|ober"
    r"|ember)?\b"
)
_THOUSANDS = re.compile(r"(?<=\d)[,'’ \u00a0\u202f](?=\d{3}(?!\d))")
_OTHER_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−～~", "-"))
_COMPARED = re.compile(
    # A number with everything that joins digits is one word, so 12 is not found inside 123 or 12.5.
    r"(?P<number>(?:(?<![^\W_])-)?\d+(?:[.:/-]\d+)*)(?:(?:st|nd|rd|th)(?![^\W_]))?"
    r"|(?P<wide>[\u2e80-\u9fff\uf900-\ufaff])|(?P<word>[^\W\d_]+)|(?P<sign>[$€£¥₹₽₩%#@+/\\&=?°])"
)


def _ascii_digits(text: str) -> str:
    if text.isascii():
        return text
    return "".join(
        str(unicodedata.decimal(c)) if c.isdecimal() and not c.isascii() else c for c in text
    )


def _words(text: str) -> list[str]:
    plain = _ascii_digits(unicodedata.normalize("NFKC", text).casefold()).translate(_OTHER_DASHES)
    plain = _ENGLISH_MONTHS.sub(r"\1", _THOUSANDS.sub("", plain))
    return [match.group(match.lastgroup or 0) for match in _COMPARED.finditer(plain)]


def _comparable(text: str) -> str:
    words = _words(text)
    return f"\0{'\0'.join(words)}\0" if words else ""


def missing_identifiers(source_identifiers: Iterable[str], text: str) -> tuple[str, ...]:
    """Those of the identifiers that the text does not carry, in the given order.

    Compared are whole words and whole numbers, so "12" is not found inside "123". Case, width,
    blanks, thousands separators, kinds of dashes and quotes, ordinal endings and the length of
    English month names do not matter.
    """
    carried = _comparable(text)
    return tuple(
        identifier
        for identifier in source_identifiers
        if (key := _comparable(identifier)) and key not in carried
    )


def kept_line(identifiers: Iterable[str], max_tokens: int, count: Callable[[str], int]) -> str:
    """`Kept: a; b; c` with as many identifiers as fit, the first ones first; "" if none fits.

    The line has at most `max_tokens` tokens by `count`. Identifiers that do not fit are left out
    whole, never cut.
    """
    wanted = [" ".join(identifier.split()) for identifier in identifiers]
    wanted = [identifier for identifier in wanted if identifier]

    def line(chosen: list[str]) -> str:
        return KEPT_LABEL + _KEPT_SEPARATOR.join(chosen)

    def fits(chosen: list[str]) -> bool:
        return count(line(chosen)) <= max_tokens

    # Doubling, then halving: few counts, each over little more text than fits.
    high = 1
    while high < len(wanted) and fits(wanted[:high]):
        high *= 2
    low, high = high // 2, min(high, len(wanted))
    while low < high:
        middle = (low + high + 1) // 2
        if fits(wanted[:middle]):
            low = middle
        else:
            high = middle - 1
    chosen = wanted[:low]
    for identifier in wanted[low : low + _LATER_TRIES]:
        if fits([*chosen, identifier]):
            chosen.append(identifier)
    # A counter need not be monotone to the token; the cap holds all the same.
    while chosen and not fits(chosen):
        chosen.pop()
    return line(chosen) if chosen else ""
