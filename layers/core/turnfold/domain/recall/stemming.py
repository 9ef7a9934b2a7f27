"""English words without their endings, after M. F. Porter's algorithm of 1980.

Irregular forms are led back to their word first, which his algorithm does not do.
"""

import re
from functools import lru_cache

from turnfold.domain.recall.irregular import BASE_FORMS

_SHORTEST = 3
_SECOND = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize",
    "bli": "ble", "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize",
    "ation": "ate", "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful",
    "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_THIRD = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_FOURTH = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ion", "ism", "ate", "iti",
    "ous", "ive", "ize", "al", "er", "ic", "ou",
)  # fmt: skip
_MEASURE = re.compile("v+c+")
_DOUBLED_THAT_STAY = "lsz"


def _shape(word: str) -> str:
    """The word as vowels and consonants; a y after a consonant is a vowel."""
    shape = ""
    for at, letter in enumerate(word):
        vowel = letter in "aeiou" or (letter == "y" and at > 0 and shape[-1] == "c")
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    return len(_MEASURE.findall(_shape(word)))


def _ends_short(word: str) -> bool:
    """Whether it ends in consonant, vowel, consonant, the last not w, x or y."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_participle(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for ending in ("ed", "ing"):
        stem = word.removesuffix(ending)
        if stem != word and "v" in _shape(stem):
            break
    else:
        return word
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _shape(stem).endswith("cc") and stem[-1] == stem[-2] and stem[-1] not in _DOUBLED_THAT_STAY:
        return stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _ends_short(stem) else stem


def _replaced(word: str, endings: dict[str, str]) -> str:
    for ending, other in endings.items():
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            return stem + other if _measure(stem) else word
    return word


def _without_suffix(word: str) -> str:
    for ending in _FOURTH:
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            fits = _measure(stem) > 1 and (ending != "ion" or stem.endswith(("s", "t")))
            return stem if fits else word
    return word


def _tidied(word: str) -> str:
    if word.endswith("e"):
        stem = word[:-1]
        measure = _measure(stem)
        if measure > 1 or (measure == 1 and not _ends_short(stem)):
            word = stem
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of a folded English word; words of other alphabets come back as they are."""
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()):
        return word
    word = BASE_FORMS.get(word, word)
    word = _without_participle(_without_plural(word))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    return _tidied(_without_suffix(_replaced(_replaced(word, _SECOND), _THIRD)))
