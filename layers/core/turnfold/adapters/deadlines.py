"""A limit on how long a call may take in all.

Timeouts of sockets limit the silence between two bytes, and looking up a name has none. A server
that sends a blank every second (some model providers do, while a request waits in their queue)
would hold a Lambda until it is killed. So the call runs in a thread of its own and is given up.
"""

import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
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


class _End:
    """Stands in the queue where the items end."""


def iterate_within[Item](
    seconds: float, begin: Callable[[], AbstractContextManager[Iterable[Item]]]
) -> Generator[Item]:
    """The items of what `begin` gives, as they come, if all of it happens within the time.

    Begins at once, and raises here what `begin` raises. The items come from a thread of their own;
    closing the generator lets it leave the context at the next item. Raises `DeadlinePassedError`
    here or between the items.
    """
    queue: SimpleQueue[list[Item] | BaseException | _End] = SimpleQueue()
    given_up = threading.Event()
    end = time.monotonic() + seconds

    def work() -> None:
        try:
            with begin() as items:
                queue.put([])
                for item in items:
                    queue.put([item])
                    if given_up.is_set():
                        return
            queue.put(_End())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            queue.put(error)

    def take() -> list[Item] | _End:
        try:
            got = queue.get(timeout=max(0.0, end - time.monotonic()))
        except Empty:
            given_up.set()
            raise DeadlinePassedError from None
        if isinstance(got, BaseException):
            raise got
        return got

    def items() -> Generator[Item]:
        try:
            while not isinstance(got := take(), _End):
                yield from got
        finally:
            given_up.set()

    threading.Thread(target=work, name="model-stream", daemon=True).start()
    take()
    return items()
