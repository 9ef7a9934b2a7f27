"""Time, waiting, and ids."""

from collections.abc import Callable
from datetime import datetime

type Clock = Callable[[], datetime]
"""The time now, in UTC."""


type NewId = Callable[[], str]
"""An id that sorts by time and is never repeated."""


type Pause = Callable[[float], None]
"""Waits that many seconds."""
