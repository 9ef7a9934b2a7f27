"""A limit on how long a call may take in all.

Timeouts of sockets limit the silence between two bytes, and looking up a name has none. A server
that sends a blank every second (some model providers do, while a request waits in their queue)
would hold a Lambda until it is killed. So the call runs in a thread of its own and is given up.
"""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue


class DeadlinePassedError(Exception):
    """The call did not end in time. Its thread ends when the call does; its result is dropped."""


def run_within[Result](seconds: float, call: Callable[[], Result]) -> Result:
    """What the call returns or raises, if that happens within the time.

    Raises `DeadlinePassedError` otherwise. The thread that is given up does not keep the process
    alive.
    """
    outcome: SimpleQueue[tuple[Result | None, BaseException | None]] = SimpleQueue()

    def work() -> None:
        try:
            outcome.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            outcome.put((None, error))

    threading.Thread(target=work, name="model-call", daemon=True).start()
    try:
        result, error = outcome.get(timeout=max(0.0, seconds))
    except Empty:
        raise DeadlinePassedError from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # a Result where there is no error
