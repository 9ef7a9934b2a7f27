"""The notation of the conformance cases: reading, running, and checking what must hold then."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
REFUSALS = (ValueError, TypeError)
"""The language's usual errors for a bad argument."""


def load_cases(path: Path) -> list[dict[str, Any]]:
    """The cases of a file that have to pass."""
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return [case for case in cases if case["profile"] != "compat"]


def as_message(given: dict[str, Any]) -> dict[str, Any]:
    """A message of the notation in OpenAI's chat format; `id` is its label."""
    message: dict[str, Any] = {"id": given["ref"]}
    if given["role"] is not None:
        message["role"] = given["role"]
    message["content"] = given["text"]
    for name in ("tool_call_id", "name", "is_error", "tokens", "created_at"):
        if name in given:
            message[name] = given[name]
    if given.get("tool_calls"):
        message["tool_calls"] = [as_call(call) for call in given["tool_calls"]]
    if "minutes_ago" in given:
        moment = NOW - timedelta(minutes=given["minutes_ago"])
        message["created_at"] = moment.isoformat()
    return message


def as_call(given: dict[str, Any]) -> dict[str, Any]:
    """A tool call in OpenAI's form."""
    arguments = given.get("arguments", {})
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    function = {"name": given["name"], "arguments": arguments}
    return {"id": given["id"], "type": "function", "function": function}


def labels(messages: Iterable[Any]) -> list[str]:
    """The labels of messages."""
    return [message["id"] for message in messages]


@dataclass
class Case:
    """One case."""

    raw: dict[str, Any]
    folder: Path

    def __post_init__(self) -> None:
        self.given: dict[str, Any] = self.raw["given"]
        self.config: dict[str, Any] = self.given.get("config") or {}
        self.steps: list[dict[str, Any]] = self.raw["when"]
        self.then: dict[str, Any] = self.raw["then"]
        self.messages = {one["ref"]: as_message(one) for one in self.given.get("messages", ())}

    def picked(self, refs: Iterable[str] | None) -> list[dict[str, Any]]:
        """Messages by their labels."""
        return [self.messages[ref] for ref in refs or ()]

    def known(self, step: dict[str, Any], *names: str) -> None:
        """Fail on a step that says more than this adapter understands."""
        unknown = set(step) - {"op", *names}
        assert not unknown, f"the adapter does not know {unknown} of {step}"


class Runner:
    """Runs the steps of one component. Subclasses have a method `op_<name>` for each step."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.last: Any = None

    def do(self, step: dict[str, Any]) -> Any:
        """One step; its value, or None if it has none."""
        method: Callable[..., Any] | None = getattr(self, f"op_{step['op']}", None)
        assert method is not None, f"the adapter does not know the step {step['op']!r}"
        return method(**{name: value for name, value in step.items() if name != "op"})

    def op_construct(self) -> None:
        """Nothing more: the component is made already."""

    def read(self) -> Any:
        """The labels of what the component shows now: for most, what the last step returned."""
        return self.last

    def after_step(self, step: dict[str, Any], value: Any) -> Any:
        """What `after_each` compares with."""
        return value

    def flat_values(self, values: list[Any]) -> list[Any]:
        """What `values` compares with; some steps give several."""
        return values

    def checked(self) -> dict[str, Callable[[], Any]]:
        """Further members of `then`, by what to compare with them."""
        return {}


def run_case(case: Case, make_runner: Callable[[Case], Runner]) -> None:
    """Run a case and check everything that its `then` says."""
    then = dict(case.then)
    error, at_step = then.pop("error", None), then.pop("at_step", None)
    if error is not None:
        assert error == "invalid_argument", f"the adapter does not know the error {error!r}"
    try:
        runner = make_runner(case)
    except REFUSALS:
        _expect(0, error, at_step)
        return
    trace = Trace(runner, then)
    for number, step in enumerate(case.steps):
        try:
            trace.step(number, step)
        except REFUSALS:
            _expect(number, error, at_step)
            trace.finish(failed=True)
            return
    assert error is None, "nothing was refused"
    trace.finish(failed=False)


def _expect(number: int, error: str | None, at_step: int | None) -> None:
    """Fail unless something was to be refused, and here."""
    assert error, f"step {number} was refused"
    assert at_step in (None, number), f"step {number} was refused, not step {at_step}"


class Trace:
    """The steps so far, and the checks of each and of the end."""

    def __init__(self, runner: Runner, then: dict[str, Any]) -> None:
        self.runner = runner
        self.then = then
        self.values: list[Any] = []
        self.after_each = then.pop("after_each", None)
        self.expected_values = then.pop("values", None)
        self.store_calls = then.pop("store_calls", None)
        self.of_step = then.pop("store_calls_of_step", {})
        self.totals = then.pop("total_tokens_after_each", None)

    def step(self, number: int, step: dict[str, Any]) -> None:
        """Run one step and check what is said of it."""
        before = self._calls()
        value = self.runner.do(step)
        calls = {name: count - before[name] for name, count in self._calls().items()}
        self.runner.last = value
        self.values.append(value)
        expected_calls = self.store_calls[number] if self.store_calls else None
        expected_calls = self.of_step.get(str(number), expected_calls)
        if expected_calls is not None:
            assert calls == {**dict.fromkeys(calls, 0), **expected_calls}, f"step {number}"
        expected = _at(self.after_each, number)
        if expected is not None:
            assert self.runner.after_step(step, value) == expected, f"after step {number}"
        total = _at(self.totals, number)
        if total is not None:
            assert self.runner.checked()["total_tokens"]() == total, f"after step {number}"

    def finish(self, *, failed: bool) -> None:
        """Check what is said of the end."""
        if failed:
            self.then.pop("messages", None)
        if self.expected_values is not None:
            values = self.runner.flat_values(self.values)
            pairs = zip(values, self.expected_values, strict=True)
            for number, (value, expected) in enumerate(pairs):
                assert expected is None or value == expected, f"value of step {number}"
        checks = {
            "messages": self.runner.read,
            "value": lambda: self.runner.last,
            "count": lambda: len(self.runner.read()),
            "first": lambda: self.runner.read()[0],
            "last": lambda: self.runner.read()[-1],
            **self.runner.checked(),
        }
        for name, expected in self.then.items():
            assert name in checks, f"the adapter does not know then.{name}"
            assert matches(checks[name](), expected), (name, checks[name](), expected)

    def _calls(self) -> dict[str, int]:
        calls = getattr(self.runner, "calls", None)
        return dict(calls) if calls is not None else {}


class Among:
    """Compares as equal to anything that is contained in what it was made of."""

    def __init__(self, whole: Any) -> None:
        self.whole = whole

    def __repr__(self) -> str:
        return f"Among({self.whole!r})"


def matches(actual: Any, expected: Any) -> bool:
    """Whether an outcome is as expected; of `Among` only what is expected must be there."""
    if isinstance(actual, Among):
        if isinstance(expected, dict):
            return all(
                name in actual.whole and actual.whole[name] == value
                for name, value in expected.items()
            )
        return set(expected) <= set(actual.whole)
    return bool(actual == expected)


def _at(entries: list[Any] | None, number: int) -> Any:
    return entries[number] if entries and number < len(entries) else None
