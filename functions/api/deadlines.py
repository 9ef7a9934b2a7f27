"""How long a request may go on with work that can be cut short."""

import time
from collections.abc import Callable


def seconds_left(seconds: float) -> Callable[[], float]:
    """What is left of that many seconds from now on, each time it is asked."""
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()
