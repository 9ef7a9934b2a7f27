"""Phrases that are looked for in what people write, kept readable as lists of patterns."""

import re
from collections.abc import Iterable
from functools import cached_property


class Phrases:
    """Finds any of several patterns, in whatever case.

    In each pattern a blank stands for one to eight blanks of any kind, and a straight apostrophe
    for both kinds of apostrophe (so neither belongs inside brackets); everything else is a regular
    expression. Nothing is compiled before the first use: a cold start does not pay for it.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        """Keep the patterns."""
        self._patterns = tuple(patterns)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        plain = "|".join(f"(?:{pattern})" for pattern in self._patterns)
        return re.compile(plain.replace(" ", r"\s{1,8}").replace("'", "['’]"), re.IGNORECASE)

    def begin(self, text: str) -> bool:
        """Whether one of them stands at the beginning of the text."""
        return self._compiled.match(text) is not None

    def occur_in(self, text: str) -> bool:
        """Whether one of them stands anywhere in the text."""
        return self._compiled.search(text) is not None
