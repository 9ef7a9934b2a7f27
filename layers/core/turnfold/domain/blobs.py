"""Encoded bytes inside a text: data URLs, base64 and hexadecimal dumps. They are not language."""

import re

# A data URL's header is short; its payload is anything but blanks and quotes.
_DATA_URL = re.compile(r"data:[\w.+-]{0,60}+/?[\w.+-]{0,60}+[;,][^\s\"'<>)]*+", re.IGNORECASE)
_RUN = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{60,}+={0,2}+")
_HEX_DUMP = re.compile(r"[0-9a-fA-F]{129,}+")
_LONGEST_WORD_PATH = 24


def _blank_if_encoded(match: re.Match[str]) -> str:
    run = match.group()
    if _HEX_DUMP.search(run):
        return " "
    mixed = any(c.isdigit() for c in run) and not run.islower() and not run.isupper()
    # Long paths and hyphenated names mix as well, but they are made of short words.
    pieces = re.split(r"[/_-]", run)
    longest = max(map(len, pieces))
    return " " if mixed and longest > _LONGEST_WORD_PATH else run


def without_blobs(text: str) -> str:
    """The text with every data URL and every long base64 or hexadecimal run replaced by a blank.

    Runs of up to 59 characters stay, so do digests in hexadecimal up to 128 digits and long paths.
    """
    if "data:" in text or "DATA:" in text:
        text = _DATA_URL.sub(" ", text)
    return _RUN.sub(_blank_if_encoded, text)
