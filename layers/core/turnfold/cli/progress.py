"""A progress bar on standard error, where somebody looks at it."""

import sys
import time
from typing import Self, TextIO

WIDTH = 30
REDRAW_SECONDS = 0.1


class Progress:
    """Counts up to a total; None if it is not known. Use it as a context.

    Draws only on a terminal; elsewhere it says at the end how much it was.
    """

    def __init__(self, what: str, total: int | None, output: TextIO | None = None) -> None:
        """Count `what`, such as "turns"."""
        self._what = what
        self._total = total
        self._output = sys.stderr if output is None else output
        self._done = 0
        self._started = time.monotonic()
        self._drawn = 0.0

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the line."""
        if self._output.isatty():
            self._draw(end="\n")
        else:
            seconds = time.monotonic() - self._started
            print(f"{self._done:,} {self._what} in {seconds:.1f} s", file=self._output)

    def add(self, count: int) -> None:
        """So many more are done."""
        self._done += count
        now = time.monotonic()
        if self._output.isatty() and now - self._drawn >= REDRAW_SECONDS:
            self._drawn = now
            self._draw()

    def _draw(self, end: str = "") -> None:
        if self._total:
            share = min(1.0, self._done / self._total)
            bar = "#" * round(share * WIDTH)
            text = f"[{bar:.<{WIDTH}}] {self._done:,}/{self._total:,} {self._what} {share:4.0%}"
        else:
            text = f"{self._done:,} {self._what}"
        seconds = time.monotonic() - self._started
        print(f"\r{text} {seconds:.0f} s", end=end, file=self._output, flush=True)
