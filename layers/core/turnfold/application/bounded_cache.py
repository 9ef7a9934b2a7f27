"""What was read once, kept in this process for as long as there is room."""

import threading
from collections import OrderedDict
from collections.abc import Hashable


class BoundedCache[Value]:
    """Values by name, together of a bounded size; the one that was not used longest goes first.

    Only for what never changes under its name. Safe for use from several threads.
    """

    def __init__(self, max_bytes: int) -> None:
        """Keep at most that many bytes."""
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._bytes = 0

    def get(self, name: Hashable) -> Value | None:
        """A value that is still there."""
        with self._lock:
            found = self._values.get(name)
            if found is None:
                return None
            self._values.move_to_end(name)
            return found[0]

    def put(self, name: Hashable, value: Value, size: int) -> None:
        """Keep a value of that many bytes, unless it alone is too large."""
        with self._lock:
            before = self._values.pop(name, None)
            self._bytes -= before[1] if before else 0
            if size > self._max_bytes:
                return
            self._values[name] = (value, size)
            self._bytes += size
            while self._bytes > self._max_bytes:
                self._bytes -= self._values.popitem(last=False)[1][1]
