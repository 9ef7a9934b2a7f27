"""Watches every call of a port and disturbs one: a crash, or something that happens meanwhile."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Crash(BaseException):
    """The process is gone. Nothing may catch it, as nothing catches `kill -9`."""


@dataclass
class Interference:
    """Stands between the use cases and their ports (`Service(wrap=interference.wrap)`).

    `before` and `after` are called around every call with the names of port and method and the
    arguments. What is armed happens once, at the n-th call from then on.
    """

    log: list[str] = field(default_factory=list)
    before: list[Callable[[str, str, tuple[Any, ...]], None]] = field(default_factory=list)
    after: list[Callable[[str, str, tuple[Any, ...], Any], None]] = field(default_factory=list)
    _at: int = 0
    _action: Callable[[], object] | None = None
    _late: bool = False
    _calls: itertools.count[int] = field(default_factory=itertools.count)

    def wrap(self, name: str, port: Any) -> Any:
        """The port, watched."""
        return _Watched(self, name, port)

    def arm(self, at: int, action: Callable[[], object], *, late: bool = False) -> None:
        """Run `action` before (or with `late` after) the call of that number, counted from 1."""
        self._calls = itertools.count(1)
        self._at, self._action, self._late = at, action, late

    def crash_at(self, at: int, *, late: bool = False) -> None:
        """Let the process die before (or after) the call of that number."""
        self.arm(at, _die, late=late)

    def disarm(self) -> bool:
        """Forget what is armed; whether it was still to happen."""
        pending, self._action = self._action is not None, None
        return pending

    def call(self, name: str, port: Any, method: str, *given: Any, **named: Any) -> Any:
        """One call of a port, with all that happens around it."""
        number = next(self._calls)
        due = self._action is not None and number == self._at
        if due and not self._late:
            self._happen()
        self.log.append(f"{name}.{method}")
        for watch in self.before:
            watch(name, method, given)
        result = getattr(port, method)(*given, **named)
        for notice in self.after:
            notice(name, method, given, result)
        if due and self._late:
            self._happen()
        return result

    def _happen(self) -> None:
        action, self._action = self._action, None
        if action is not None:
            action()


def _die() -> None:
    raise Crash


class _Watched:
    """A port whose methods report to an `Interference`."""

    def __init__(self, owner: Interference, name: str, port: Any) -> None:
        self._owner = owner
        self._name = name
        self._port = port

    def __getattr__(self, member: str) -> Any:
        value = getattr(self._port, member)
        if not callable(value):
            return value

        def watched(*given: Any, **named: Any) -> Any:
            return self._owner.call(self._name, self._port, member, *given, **named)

        return watched
