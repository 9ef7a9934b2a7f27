"""Partitioned memory and session memory, as mm-memory has them, on the real planner."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from support.conformance.notation import Case, Runner
from support.fifo_queue import ManualClock
from support.service import START
from turnfold.adapters.in_memory_archive import InMemoryArchive
from turnfold.adapters.in_memory_store import InMemoryStore
from turnfold.application.compact_session import Ring
from turnfold.application.inline_compaction import EstimatedMeasure
from turnfold.application.ports.memory import Change
from turnfold.application.ports.models import ModelAnswer, ModelRequest
from turnfold.domain.errors import ModelFailedError, StoreUnavailableError
from turnfold.domain.estimators import OverheadEstimator
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.messages import MEMORY_NAME
from turnfold.domain.pins import Pin, PinStatus
from turnfold.domain.planner import Fold, next_step
from turnfold.domain.sessions import Profile, Session
from turnfold.domain.settings import Settings, merge_settings
from turnfold.domain.summaries import Summary, SummaryKind
from turnfold.domain.transcript import make_record
from turnfold.library.session_memory import SessionMemory
from turnfold.library.wiring import in_memory_services

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnfold.domain.turns import Turn

ESTIMATOR = OverheadEstimator()
SETTINGS = {
    "head_size": "head_size",
    "tail_size": "tail_size",
    "expire_days": "expire_days",
    "max_pin_count": "max_pin_count",
    "max_pin_tokens": "max_pin_tokens",
    "tcw_max_size": "window_max_size",
    "tcw_token_threshold": "window_token_threshold",
    "current_round_token_threshold": "round_token_threshold",
    "pin_mode": "pin_mode",
}
"""mm-memory's words for settings, and ours."""

PURPOSES = {
    "pin_judgement": "pin",
    "pin_aggregation": "aggregate",
    "round_summary": "current_round",
    "history_summary": "history",
}
LETTERS = str.maketrans("0123456789", "abcdefghij")
FENCED = re.compile(r"<(conversation|pins)>\n(.*?)\n?</\1>", re.DOTALL)


def settings_of(case: Case) -> dict[str, Any]:
    """The settings of a case, on mm-memory's own schedule."""
    config = dict(case.config)
    config.pop("estimator", None)
    unknown = set(config) - set(SETTINGS)
    assert not unknown, f"the adapter does not know {unknown}"
    settings = {SETTINGS[name]: value for name, value in config.items()}
    if "strategies" in case.given:
        settings["strategies"] = case.given["strategies"]
    return {"schedule": "whole", **settings}


@dataclass
class Script:
    """The model of a case: answers by purpose, and counts what it is asked."""

    llm: dict[str, Any]
    asked: list[str] = field(default_factory=list)
    name: str = "scripted"

    def ask(self, request: ModelRequest) -> ModelAnswer:
        word = PURPOSES[request.purpose]
        self.asked.append(word)
        script = self.llm.get(word)
        if isinstance(script, list) and word != "pin":
            script = script[min(self.asked.count(word), len(script)) - 1]
        if script == "!error":
            raise ModelFailedError("scripted", 500)
        sections = {name: _rows(text) for name, text in FENCED.findall(request.data)}
        text: str | None = script
        if word == "pin":
            text = self._judgement(script, sections)
        elif word == "aggregate":
            text = script and _folding(script, sections["pins"])
        return ModelAnswer(text, "stop", self.name)

    def _judgement(self, script: Any, sections: dict[str, list[dict[str, Any]]]) -> str:
        if script == "":
            return ""
        turns = sorted({row["turn"] for row in sections["conversation"] if "turn" in row})
        known = {row["content"]: row["pin_id"] for row in sections["pins"]}
        facts = [fact for turn in turns if (fact := _fact(script, turn, known))]
        return json.dumps({"facts": facts, "retracted_pin_ids": []})


def _rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _folding(text: str, pins: list[dict[str, Any]]) -> str:
    fact = {"text": text, "folds_pin_ids": [pin["pin_id"] for pin in pins]}
    return json.dumps({"facts": [fact]})


def _fact(script: Any, turn: int, known: dict[str, str]) -> dict[str, Any] | None:
    entry = script
    if isinstance(script, list):
        entry = script[turn - 1] if turn <= len(script) else None
    if entry is None or entry == "never":
        return None
    if isinstance(entry, str):
        entry = {"content": entry.replace("<turn>", str(turn))}
    if "chars" in entry:
        entry = {
            **entry,
            "content": f"pin {str(turn).translate(LETTERS)} ".ljust(entry["chars"], "x"),
        }
    if not entry.get("content"):
        return None
    return {
        "turn": turn,
        "text": entry["content"],
        "confidence": entry.get("confidence", 1.0),
        "said_by": "user",
        "replaces_pin_id": entry.get("negates_id") or known.get(entry.get("negates", "")),
    }


class FaultyArchive(InMemoryArchive):
    """An archive that fails as often as it is told to."""

    failures = 0

    def put_record(self, *args: Any, **kwargs: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("scripted")
        super().put_record(*args, **kwargs)


class FaultyStore(InMemoryStore):
    """A store that fails to write as often as it is told to."""

    failures = 0

    def write(self, change: Change) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("scripted")
        super().write(change)


@dataclass(frozen=True)
class Snapshot:
    """The memory after one turn."""

    head: list[int]
    tail: list[int]
    tcw: list[str]
    tcw_tokens: int
    asked: list[str]
    pins: list[str]
    texts: list[Any]


class SessionRunner(Runner):
    """One session over the library's `SessionMemory`."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.clock = ManualClock(START)
        self.frozen = case.given.get("clock") == "frozen"
        self.model = Script(case.given.get("llm", {}))
        archive, store = FaultyArchive(), FaultyStore(self.clock)
        self.services = in_memory_services(
            model=self.model if "llm" in case.given else None,
            settings=settings_of(case),
            estimator=ESTIMATOR,
            degrades=False,
            clock=self.clock,
            archive=archive,
            store=store,
        )
        self.memory = SessionMemory(
            "s1", self.services, drains=False, drops_incomplete=True, lenient=True
        )
        self._faults(archive, store)
        self.by_text = {one["content"]: ref for ref, one in case.messages.items()}
        self.turn_snapshots: dict[int, Snapshot] = {}
        self.committed: dict[int, list[Any]] = {}
        self.turns_given = dict(case.given.get("turns", {}))
        self._preload(dict(case.given.get("preload", {})))

    def _faults(self, archive: FaultyArchive, store: FaultyStore) -> None:
        for fault in self.case.given.get("faults", ()):
            match fault:
                case "transcript_write_fails_once":
                    archive.failures = 1
                case "working_memory_write_fails_once":
                    store.failures = 1
                case _:
                    raise AssertionError(f"the adapter does not know the fault {fault!r}")

    def _preload(self, preload: dict[str, Any]) -> None:
        pins = preload.pop("pins", ())
        if pins:
            session = Session(
                key=self.memory.key,
                epoch="e1",
                created_at=START,
                updated_at=START,
                settings=self.services.commit.defaults,
            )
            change = Change(key=self.memory.key, creates=session, profile=Profile())
            self.services.store.write(change)
        for text in pins:
            pin = self.memory.add_pin(text.removesuffix("!"))
            if text.endswith("!"):
                self.memory.invalidate_pin(pin.pin_id)
        self.totals = preload.pop("tcw_tokens_after_eviction", ())
        assert not preload, f"the adapter does not know {preload}"

    # --------------------------------------------------------------------------------------- steps

    def op_commit_turns(
        self, from_turn: int, to_turn: int, drain_queue_after_each: bool = False
    ) -> None:
        for number in range(from_turn, to_turn + 1):
            self.committed[number] = self._turn(number)
            self.memory.commit_turn(self.committed[number], idempotency_key=f"turn-{number}")
            if drain_queue_after_each:
                self.memory.drain()
            self.turn_snapshots[number] = self._snapshot()
            if not self.frozen:
                self.clock.advance(1)

    def op_drain(self) -> None:
        self.memory.drain()

    op_drain_queue = op_drain

    def op_append(self, ref: str) -> None:
        self.memory.append(self.case.messages[ref])

    def op_commit(self) -> str:
        try:
            answer = self.memory.commit()
        except StoreUnavailableError:
            return "error"
        return "skipped" if answer is None else "ok"

    def op_commit_again(self, turn: int) -> None:
        self.memory.commit_turn(self.committed[turn], idempotency_key=f"turn-{turn}")

    def op_redeliver_task(self, turn: int) -> None:
        self.services.compact(self.memory.key, Ring(turn))

    def op_assemble(self) -> list[str]:
        context = self.memory.read_context()
        summaries = (
            []
            if context is None
            else [label(one) for one in context.window if isinstance(one, Summary)]
        )
        found: list[str] = []
        for message in self.memory.context():
            if message.get("name") == MEMORY_NAME:
                found += summaries
            else:
                found.append(self._ref(message))
        return found

    def op_read_transcript(self) -> list[str]:
        return [self._ref(one) for one in self.memory.transcript()]

    def op_read_interactions(self) -> list[str]:
        return [self._ref(one) for one in self.memory.interactions()]

    def op_active_pins(self) -> list[str]:
        return [pin.text for pin in self.memory.pins()]

    def op_all_pins(self) -> list[str]:
        return [pin_label(pin) for pin in self.memory.all_pins()]

    def op_build_system_prompt(self) -> str:
        return self.memory.system_prompt()

    def op_advance_days(self, days: float) -> None:
        self.clock.now += timedelta(days=days)

    def op_recover(self) -> None:
        self.memory.recover()

    def op_queued(self) -> list[dict[str, Any]]:
        settings = self.services.commit.defaults
        tasks = []
        for turn in self.memory.waiting():
            evicted = turn - settings.tail_size
            gone = evicted if evicted > settings.head_size else None
            tasks.append({"turn": turn, "evicted": gone})
        return tasks

    def op_check_history_trigger(self) -> list[bool]:
        return [self._is_folded(total) for total in self.totals]

    def op_range(self, offset: int, limit: int) -> list[int]:
        self._commit_given()
        return [turn.number for turn in self.memory.turns(offset, limit)]

    def op_get_all(self) -> list[int]:
        self._commit_given()
        return [turn.number for turn in self.memory.turns()]

    # -------------------------------------------------------------------------------------- checks

    def read(self) -> Any:
        return self.last if isinstance(self.last, list) else self.op_assemble()

    def checked(self) -> dict[str, Callable[[], Any]]:
        transcript = self.op_read_transcript
        return {
            "first": lambda: transcript()[0],
            "last": lambda: transcript()[-1],
            "transcript_message_count": lambda: len(transcript()),
            "active": self.op_active_pins,
            "all": self.op_all_pins,
            "pins": self.op_all_pins,
            "pin": lambda: self._like(self.case.then["pin"], self._pin_view()),
            "pin_count": lambda: len(self.memory.pins()),
            "pin_tokens": lambda: sum(pin.tokens for pin in self.memory.pins()),
            "pins_at_turn": lambda: self._at("pins_at_turn", lambda one: one.pins),
            "aggregate_calls": lambda: self.model.asked.count("aggregate"),
            "llm_calls": lambda: self._calls(self.model.asked, self.case.then["llm_calls"]),
            "llm_call_order_of_turn": self._order_of_calls,
            "tcw": lambda: self._snapshot().tcw,
            "tcw_tokens": lambda: self._snapshot().tcw_tokens,
            "tcw_item": self._tcw_item,
            "at_turn": lambda: self._at("at_turn", lambda one: one.tcw),
            "by_turn": self._by_turn,
            "at_turn_regions": lambda: {
                turn: self._regions(self.turn_snapshots[int(turn)], expected)
                for turn, expected in self.case.then["at_turn_regions"].items()
            },
            "regions": lambda: self._regions(self._snapshot(), self.case.then["regions"]),
            "history_summary_at_turns": self._histories,
            "invariants_every_turn": self._invariants,
            "every_turn_covered": self._covered,
            "contains_in_order": lambda: _in_order(self.last, self.case.then["contains_in_order"]),
            "not_contains": lambda: [
                one for one in self.case.then["not_contains"] if one not in self.last
            ],
            "tasks": lambda: self.last,
            "turn_lists": lambda: self.lists,
        }

    def do(self, step: dict[str, Any]) -> Any:
        value = super().do(step)
        if step["op"] in ("range", "get_all"):
            self.lists = [*getattr(self, "lists", []), value]
        return value

    def flat_values(self, values: list[Any]) -> list[Any]:
        flat: list[Any] = []
        for step, value in zip(self.case.steps, values, strict=True):
            flat += value if step["op"] == "check_history_trigger" else [value]
        return flat

    def _snapshot(self) -> Snapshot:
        regions = self.memory.regions()
        tcw: list[str] = []
        tokens = 0
        for entry in regions.window:
            if isinstance(entry, Summary):
                tcw.append(label(entry))
                tokens += entry.tokens
            else:
                tcw += [self._ref(one) for one in entry.conversation]
                tokens += sum(map(ESTIMATOR.message, entry.conversation))
        return Snapshot(
            head=[turn.number for turn in regions.head],
            tail=[turn.number for turn in regions.tail],
            tcw=tcw,
            tcw_tokens=tokens,
            asked=list(self.model.asked),
            pins=self.op_all_pins(),
            texts=[turn.messages for turn in (*regions.head, *regions.tail)],
        )

    def _at(self, name: str, view: Callable[[Snapshot], Any]) -> dict[str, Any]:
        return {turn: view(self.turn_snapshots[int(turn)]) for turn in self.case.then[name]}

    def _calls(self, asked: Sequence[str], expected: dict[str, int]) -> dict[str, int]:
        return {word: asked.count(word) for word in expected}

    def _by_turn(self) -> list[dict[str, Any]]:
        found = []
        for expected in self.case.then["by_turn"]:
            snapshot = self.turn_snapshots[expected["turn"]]
            regions = self._regions(
                snapshot, {name: one for name, one in expected.items() if name in REGIONS}
            )
            row = {"turn": expected["turn"], **regions}
            if "llm_calls" in expected:
                row["llm_calls"] = self._calls(snapshot.asked, expected["llm_calls"])
            found.append(row)
        return found

    def _regions(self, snapshot: Snapshot, expected: dict[str, Any]) -> dict[str, Any]:
        return {name: getattr(snapshot, name) for name in expected}

    def _histories(self) -> list[int]:
        before: list[str] = []
        found = []
        for turn, snapshot in sorted(self.turn_snapshots.items()):
            histories = [one for one in snapshot.tcw if one.startswith("H")]
            if [one for one in histories if one not in before]:
                found.append(turn)
            before = histories
        return found

    def _order_of_calls(self) -> dict[str, list[str]]:
        found = {}
        for turn in self.case.then["llm_call_order_of_turn"]:
            number = int(turn)
            before = self.turn_snapshots[number - 1].asked if number > 1 else []
            found[turn] = self.turn_snapshots[number].asked[len(before) :]
        return found

    def _tcw_item(self) -> dict[str, Any]:
        expected = self.case.then["tcw_item"]
        item: dict[str, Any] = self.memory.window_messages()[expected["index"]]
        view = {"index": expected["index"], "role": item["role"], "text": item["content"]}
        if "text_contains" in expected and expected["text_contains"] in item["content"]:
            view["text_contains"] = expected["text_contains"]
        if "metadata" in expected:
            view["metadata"] = self._like(expected["metadata"], item.get("metadata", {}))
        return self._like(expected, view)

    def _like(self, expected: dict[str, Any], actual: dict[str, Any]) -> dict[str, Any]:
        return {name: actual.get(name) for name in expected}

    def _pin_view(self) -> dict[str, Any]:
        [pin] = self.memory.pins()
        return {
            "content": pin.text,
            "confidence": pin.confidence,
            "status": pin.status.name,
            "source_message_ids": self.memory.sources_of(pin),
        }

    def _covered(self) -> list[int]:
        regions = self.memory.regions()
        covered = [turn.number for turn in (*regions.head, *regions.raw, *regions.tail)]
        for one in regions.summaries:
            covered += range(one.from_turn, one.to_turn + 1)
        return sorted(covered)

    def _invariants(self) -> list[str]:
        return [
            text
            for text in self.case.then["invariants_every_turn"]
            if all(self._holds(text, turn, one) for turn, one in self.turn_snapshots.items())
        ]

    def _holds(self, text: str, turn: int, snapshot: Snapshot) -> bool:
        if text == "raw text of head and tail unchanged":
            numbers = [*snapshot.head, *snapshot.tail]
            return snapshot.texts == [tuple(self.committed[number]) for number in numbers]
        if match := re.fullmatch(r"(len\(tcw\)|tcw_tokens|len\(pins\)) <= (\d+)", text):
            sizes = {
                "len(tcw)": len(snapshot.tcw),
                "tcw_tokens": snapshot.tcw_tokens,
                "len(pins)": len(snapshot.pins),
            }
            return sizes[match[1]] <= int(match[2])
        if match := re.fullmatch(r"head == (\[[\d, ]*\])", text):
            return snapshot.head == json.loads(match[1])
        if match := re.fullmatch(r"tail == newest min\((\d+), turns-(\d+)\) turns", text):
            size = min(int(match[1]), turn - int(match[2]))
            return snapshot.tail == list(range(turn - size + 1, turn + 1))
        raise AssertionError(f"the adapter does not know the invariant {text!r}")

    def _is_folded(self, total: int) -> bool:
        """Whether a window of that many tokens is folded, by the real planner."""
        settings = merge_settings(Settings(), settings_of(self.case))
        settings = replace(settings, pin_mode="off")
        turns = [self._recorded(number, self._turn(number)) for number in (1, 2, 3, 4)]
        overhead = sum(map(ESTIMATOR.message, self._sized(2, 0, 0)))
        size = int((total - overhead) * ESTIMATOR.characters_per_token)
        turns[1] = self._recorded(2, self._sized(2, size, 0))
        measure = EstimatedMeasure(len, ESTIMATOR, (), settings.round_token_threshold)
        assert measure.tokens(turns[1]) == total
        session = Session(
            key=self.memory.key,
            epoch="e1",
            created_at=START,
            updated_at=START,
            settings=settings,
            next_turn=5,
        )
        memory = WorkingMemory(session, Profile(), tuple(turns), (), ())
        return isinstance(next_step(memory, measure), Fold)

    # ----------------------------------------------------------------------------------- materials

    def _recorded(self, number: int, messages: Sequence[Any]) -> Turn:
        turn, _ = make_record(
            number=number,
            turn_id=f"turn-{number}",
            committed_at=START,
            messages=tuple(messages),
            prev_sha256="0" * 64,
        )
        return turn

    def _turn(self, number: int) -> list[Any]:
        sizes = {**self.turns_given.get("each", {"user_chars": 10, "assistant_chars": 10})}
        unknown = set(self.turns_given) - {"count", "each", "by_turn"}
        assert not unknown, f"the adapter does not know {unknown} of the turns"
        sizes |= self.turns_given.get("by_turn", {}).get(str(number), {})
        return self._sized(number, sizes["user_chars"], sizes["assistant_chars"])

    def _sized(self, number: int, user: int, assistant: int) -> list[Any]:
        return [self._filler("user", number, user), self._filler("assistant", number, assistant)]

    def _filler(self, role: str, number: int, size: int) -> dict[str, Any]:
        """A message of that size, of letters that tell its label."""
        letter = role[0]
        mark = f"{letter}{str(number).translate(LETTERS)}"
        text = mark.ljust(size, "x")[:size] if size else ""
        self.by_text[text] = f"{letter}{number}"
        return {"role": role, "content": text, "id": f"{letter}{number}"}

    def _commit_given(self) -> None:
        if not self.committed:
            self.op_commit_turns(1, self.turns_given["count"])

    def _ref(self, message: Any) -> str:
        return str(
            message.get("id") or self.by_text.get(message["content"]) or self._by_call(message)
        )

    def _by_call(self, message: Any) -> str:
        """The label of a message without a text of its own, by its calls."""
        for ref, one in self.case.messages.items():
            if one.get("tool_calls") and one["tool_calls"] == message.get("tool_calls"):
                return ref
        raise AssertionError(f"no label for {message}")


REGIONS = ("head", "tail", "tcw", "pins")


def label(summary: Summary) -> str:
    """C2 for the round summary of turn 2, H2-4 for a history summary of turns 2 to 4."""
    if summary.kind is SummaryKind.ROUND:
        return f"C{summary.from_turn}"
    return f"H{summary.from_turn}-{summary.to_turn}"


def pin_label(pin: Pin) -> str:
    """A pin's text; one that was taken back ends in an exclamation mark."""
    return f"{pin.text}!" if pin.status is PinStatus.INVALIDATED else pin.text


def _in_order(text: str, parts: Sequence[str]) -> list[str]:
    """The parts that stand in the text, each once and after the one before it."""
    found, at = [], 0
    for part in parts:
        place = text.find(part, at)
        if place < 0 or text.count(part) != 1:
            break
        found.append(part)
        at = place + len(part)
    return found
