"""`python -m infra.local`: what `make run` starts."""

from __future__ import annotations

import queue
import signal
import sys
import threading

from infra.local.definitions import TemplateError
from infra.local.environments import InvocationError
from infra.local.functions import without_key
from infra.local.http_server import PortTakenError
from infra.local.logs import LogPrinter
from infra.local.ministack import MiniStackError
from infra.local.settings import Settings, SettingsError
from infra.local.stack import LocalStack, NotReadyError, StoppedError

STOP = "stop"
START_LEFTOVER_SECONDS = 10.0


def main() -> int:
    """Run the stack until it is told to stop; the exit status says how it ended."""
    logs = LogPrinter()
    events: queue.SimpleQueue[str] = queue.SimpleQueue()

    def stop(_number: int, _frame: object) -> None:
        events.put(STOP)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        print(f"Turnfold: {error}", file=sys.stderr)
        return 1
    stack = LocalStack(settings, logs, events.put)
    starter = threading.Thread(target=_start, args=(stack, logs, events), name="start", daemon=True)
    starter.start()
    reason = events.get()
    failed = reason != STOP
    print(f"Turnfold: {reason}" if failed else "Turnfold is stopping", file=sys.stderr)
    patience = 0.0 if failed else None
    stopper = threading.Thread(target=stack.stop, args=(patience,), name="stop", daemon=True)
    stopper.start()
    while stopper.is_alive():
        stopper.join(0.1)
        if not events.empty() and events.get() == STOP:
            stack.stop(patience=0)  # asked twice: do not wait for anything
    if starter.is_alive():
        starter.join(START_LEFTOVER_SECONDS)
        stack.stop(patience=0)  # what the start had begun meanwhile
    return 1 if failed else 0


def _start(stack: LocalStack, logs: LogPrinter, events: queue.SimpleQueue[str]) -> None:
    try:
        stack.start()
    except StoppedError:
        return
    except InvocationError as error:
        logs.line("start", error.trace.rstrip())
        events.put(f"a function cannot be loaded: {error}")
    except (PortTakenError, MiniStackError, TemplateError, NotReadyError) as error:
        events.put(str(error))
    except Exception as error:  # noqa: BLE001 - the stack ends, whatever it was
        events.put(f"the stack did not start: {type(error).__name__}: {error}")
    else:
        if without_key():
            print("OPENAI_API_KEY is not set: summaries are extractive and chat is off", flush=True)
        print(f"Turnfold is ready at {stack.address}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
