"""How long things take, and what they measure, for the end of the report."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

STAGES: list[str] = []


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """Time a stage."""
    started = time.monotonic()
    yield
    note(f"{name}: {time.monotonic() - started:.1f} s")


def note(line: str) -> None:
    """Say something at the end."""
    STAGES.append(line)
