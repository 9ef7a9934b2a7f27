"""Text as search compares it: without case, accents, widths and invisible characters."""

import re
import unicodedata

# Latin, Greek and Cyrillic accents, Hebrew points, Arabic vowel signs and stretching, and
# characters without a shape. Signs of other scripts are letters of their own there, and stay.
_DROPPED = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640"
    "\u064b-\u065f\u0670\u06d6-\u06ed\u00ad\u200b-\u200f\u2060\ufe00-\ufe0f\ufeff]"
)
# Letters whose stroke is no accent to Unicode.
_PLAIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
)


def fold(text: str) -> str:
    """The text in the form that is compared. Folding twice changes nothing more."""
    if text.isascii():
        return text.lower()
    while True:
        parted = unicodedata.normalize("NFKD", text).casefold()
        # Casefolding may give letters with accents again, so they are parted once more.
        bare = _DROPPED.sub("", unicodedata.normalize("NFKD", parted)).translate(_PLAIN)
        folded = unicodedata.normalize("NFKC", bare)
        if folded == text:
            return folded
        text = folded
