"""Estimators, the pin parser, and the queue of background work."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from support.conformance.notation import Among, Case, Runner
from support.fifo_queue import InMemoryFifoQueue, ManualClock, ReceivedMessage
from support.service import START
from turnfold.application.compact_session import Outcome, Ring
from turnfold.application.drain_batch import DrainBatch, Knock
from turnfold.domain.errors import StoreUnavailableError
from turnfold.domain.estimators import OverheadEstimator, estimate_all
from turnfold.domain.sessions import SessionKey
from turnfold.domain.single_pin import parse_single_pin

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCKED_SECONDS = 10.0


class EstimatorRunner(Runner):
    """mm-memory's estimator."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        config = dict(case.config)
        self.estimator = OverheadEstimator(
            characters_per_token=config.pop("chars_per_token", 2.5),
            message_overhead=config.pop("message_overhead", 5),
            tool_call_overhead=config.pop("tool_call_overhead", 10),
            tool_result_overhead=config.pop("tool_result_overhead", 8),
        )
        assert not config, f"the adapter does not know {config}"

    def op_estimate(self, refs: list[str]) -> int:
        return estimate_all(self.estimator, self.case.picked(refs))


class PinParserRunner(Runner):
    """The parser of a pin judgement in mm-memory's form."""

    def op_parse(self, answer: str) -> Among:
        pin = parse_single_pin(answer)
        return Among(
            {
                "should_pin": pin.should_pin,
                "content": pin.content,
                "confidence": pin.confidence,
                "negates": pin.negates,
                "creates_pin": pin.creates_pin,
            }
        )


class QueueRunner(Runner):
    """The doorbell's queue and the drain behind it, with several workers."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.clock = ManualClock(START)
        self.dead = InMemoryFifoQueue(self.clock)
        self.queue = InMemoryFifoQueue(
            self.clock,
            visibility_seconds=3600,
            max_receive_count=case.config.get("max_receive", 5),
            dead_letters=self.dead,
        )
        self.lock = threading.Lock()
        self.free = threading.Event()
        self.blocking: set[tuple[str, int]] = set()
        self.failures: dict[str | None, int] = {}
        self.processed: dict[str, list[int]] = {}
        self.attempts: dict[str, int] = {}
        self.running: set[str] = set()
        self.parallel: dict[str, int] = {}
        self.most_parallel = 0
        self.drain: Any = DrainBatch(self._compact)  # type: ignore[arg-type]  # the part that a case needs

    def op_submit(self, session: str, turns: list[int], block: bool = False) -> None:
        for turn in turns:
            self.queue.send(session, f"{session}-{turn}", f"{session}:{turn}")
            if block:
                self.blocking.add((session, turn))

    def op_fail_next(self, times: int, session: str | None = None) -> None:
        self.failures[session] = times

    def op_drain(self, workers: int) -> None:
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=0.5 if self.blocking else BLOCKED_SECONDS)

    def _work(self) -> None:
        while not self.free.is_set():
            with self.lock:
                batch = self.queue.receive(1)
                if not batch and not self.running and not self._moved_on():
                    return
            if batch:
                self._deliver(batch[0])
            elif self.blocking:
                return
            else:
                self.free.wait(0.001)

    def _moved_on(self) -> bool:
        """Let time pass until a message that waits can be seen."""
        visible = self.queue.next_visible_at
        if visible is None:
            return False
        self.clock.now = max(self.clock.now, visible)
        return True

    def _deliver(self, message: ReceivedMessage) -> None:
        session, turn = message.body.split(":")
        knock = Knock(
            message.message_id, SessionKey("t", session), Ring(int(turn)), message.receive_count
        )
        with self.lock:
            self.running.add(message.body)
            self.attempts[message.body] = self.attempts.get(message.body, 0) + 1
        failed = self.drain([knock])
        with self.lock:
            self.running.discard(message.body)
            for one in failed:
                self.queue.change_visibility(message.receipt, one.back_off)
            if not failed:
                self.queue.delete(message.receipt)

    def _compact(self, key: SessionKey, ring: Ring, _seconds_left: object) -> Outcome:
        session = key.session_id
        with self.lock:
            self.parallel[session] = self.parallel.get(session, 0) + 1
            self.most_parallel = max(self.most_parallel, self.parallel[session])
        try:
            if (session, ring.turn) in self.blocking:
                self.free.wait(BLOCKED_SECONDS)
                return Outcome.DONE
            self.free.wait(0.002)
            with self.lock:
                for name in (session, None):
                    if self.failures.get(name, 0) > 0:
                        self.failures[name] -= 1
                        raise StoreUnavailableError("scripted")
                self.processed.setdefault(session, []).append(ring.turn)
            return Outcome.DONE
        finally:
            with self.lock:
                self.parallel[session] -= 1

    def checked(self) -> dict[str, Callable[[], Any]]:
        with self.lock:
            seen = {
                "processed_order": Among(dict(self.processed)),
                "max_parallel_per_session": self.most_parallel,
                "still_running": sorted(self.running),
                "attempts": Among(dict(self.attempts)),
                "dead_letters": [one.body for one in self.dead.receive()],
            }
        self.free.set()
        return {name: lambda name=name: seen[name] for name in seen}  # type: ignore[misc]  # mypy infers no lambda with a default
