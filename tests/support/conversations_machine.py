"""Whatever may happen to conversations, with all invariants of the design checked after each step.

Clients commit, repeat, race and change settings and pins; the queue loses, repeats and reorders;
the process dies between any two calls; two compactors run at once; the model fails in every way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from support.invariants import check_i5_bounded, check_i10_budget
from support.moody_model import MOODS, MoodyModel
from support.stage import KEYS, Stage, changes_of_settings
from support.strategies import SIZES, STRATEGY_SETS, turns
from turnfold.application.answer import IdempotentRequest
from turnfold.application.commit_turn import TurnToCommit
from turnfold.application.pins_by_hand import PinInput
from turnfold.domain.errors import (
    CommitConflictError,
    IdempotencyMismatchError,
    InvalidPinError,
    PinNotFoundError,
)
from turnfold.domain.pins import PinStatus

if TYPE_CHECKING:
    from turnfold.domain.sessions import SessionKey

keys = st.sampled_from(KEYS)
COMMIT_CALLS, COMPACT_CALLS, FEW_CALLS = 6, 14, 4
"""About how many calls of ports an action makes: at one of them something happens."""


class Conversations(RuleBasedStateMachine):
    """Chooses what happens next on the stage."""

    stage: Stage
    make_stage: type[Stage] = Stage

    @initialize(
        given=st.fixed_dictionaries({}, optional=SIZES),
        mode=st.sampled_from(["async", "async", "sync", "off"]),
        mood=st.sampled_from(["busy", "good", *MOODS, "none"]),
        turns_before=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    )
    def start(
        self, given: dict[str, Any], mode: str, mood: str, turns_before: tuple[int, int]
    ) -> None:
        model = None if mood == "none" else MoodyModel(mood=mood)
        self.stage = self.make_stage(model, pin_mode=mode, **given)
        for key, count in zip(KEYS, turns_before, strict=True):
            self.stage.burst(key, count)

    # Clients -----------------------------------------------------------------------------------

    @rule(key=keys, data=st.data())
    def client_commits(self, key: SessionKey, data: st.DataObject) -> None:
        messages = data.draw(turns(self.stage.next_marker(key)))
        self.stage.disturbed(data, key, COMMIT_CALLS, lambda: self.stage.commit(key, messages))

    @rule(key=keys, count=st.integers(2, 20))
    def client_commits_a_burst(self, key: SessionKey, count: int) -> None:
        self.stage.burst(key, count)

    @precondition(lambda self: self.stage.repeatable())
    @rule(data=st.data())
    def client_repeats(self, data: st.DataObject) -> None:
        key, name = data.draw(st.sampled_from(self.stage.repeatable()))
        messages = self.stage.ledgers[key].sent[name]
        self.stage.disturbed(
            data, key, COMMIT_CALLS, lambda: self.stage.commit(key, messages, name)
        )

    @precondition(lambda self: any(self.stage.requests[one] for one in self.stage.repeatable()))
    @rule(data=st.data())
    def client_repeats_a_key_with_another_body(self, data: st.DataObject) -> None:
        done = [one for one in self.stage.repeatable() if self.stage.requests[one] is not None]
        key, name = data.draw(st.sampled_from(done))
        messages = data.draw(turns(self.stage.next_marker(key)))
        request = IdempotentRequest.of("turns", name, messages)
        try:
            self.stage.service.commit_turn(key, TurnToCommit(messages), request)
        except IdempotencyMismatchError:
            return
        raise AssertionError("I7: another body was taken under the same key")

    @rule(key=keys, data=st.data())
    def client_changes_settings(self, key: SessionKey, data: st.DataObject) -> None:
        changes = data.draw(changes_of_settings)
        self.stage.disturbed(data, key, FEW_CALLS, lambda: self.stage.patch(key, changes))

    @rule(key=keys, data=st.data())
    def client_pins(self, key: SessionKey, data: st.DataObject) -> None:
        text = data.draw(st.sampled_from(["Short fact", "A fact of some length " * 8]))
        self.stage.disturbed(
            data, key, FEW_CALLS, lambda: self.stage.add_pin(key, f"{text} {self.stage.marker}")
        )

    @rule(key=keys, data=st.data())
    def client_edits_a_pin(self, key: SessionKey, data: st.DataObject) -> None:
        items = self.stage.service.raw_store._sessions.get(key)
        known = sorted((items.pins | items.former_pins).keys()) if items else []
        if not known:
            return
        pin_id = data.draw(st.sampled_from(known))
        what = data.draw(st.sampled_from(["reword", "invalidate", "activate", "remove", "replace"]))

        def edit() -> None:
            pins = self.stage.service.pins
            try:
                match what:
                    case "reword":
                        pins.change(key, pin_id, PinInput(text=f"Reworded {self.stage.marker}"))
                    case "invalidate":
                        pins.change(key, pin_id, PinInput(status=PinStatus.INVALIDATED))
                    case "activate":
                        pins.change(key, pin_id, PinInput(status=PinStatus.ACTIVE))
                    case "remove":
                        pins.remove(key, pin_id)
                    case "replace":
                        self.stage.add_pin(key, "A better fact", replaces=pin_id)
            except (PinNotFoundError, InvalidPinError, CommitConflictError):
                pass

        self.stage.disturbed(data, key, FEW_CALLS, edit)

    @rule(key=keys, data=st.data())
    def client_asks_to_compact(self, key: SessionKey, data: st.DataObject) -> None:
        self.stage.disturbed(data, key, COMPACT_CALLS, lambda: self.stage.compact(key, forced=True))

    @rule(key=keys, budget=st.integers(1, 4000))
    def client_reads(self, key: SessionKey, budget: int) -> None:
        if self.stage.exists(key):
            check_i10_budget(self.stage.service, self.stage.service.memory(key), budget)

    # Queue, workers, time ----------------------------------------------------------------------

    @rule(data=st.data(), many=st.integers(1, 10))
    def queue_delivers(self, data: st.DataObject, many: int) -> None:
        self.stage.service.clock.advance(1)
        batch = self.stage.service.queue.receive(many)
        self.stage.disturbed(
            data, data.draw(keys), COMPACT_CALLS, lambda: self.stage.service.deliver(batch)
        )

    @rule(key=keys, data=st.data())
    def worker_compacts(self, key: SessionKey, data: st.DataObject) -> None:
        """A worker at once, as a message that was repeated would have it."""
        self.stage.disturbed(data, key, COMPACT_CALLS, lambda: self.stage.compact(key))

    @rule(key=keys, data=st.data(), count=st.integers(1, 8))
    def worker_compacts_after_a_burst(
        self, key: SessionKey, data: st.DataObject, count: int
    ) -> None:
        self.stage.burst(key, count)
        self.stage.disturbed(data, key, COMPACT_CALLS, lambda: self.stage.compact(key))

    @rule(key=keys, count=st.integers(4, 9), at=st.integers(1, COMPACT_CALLS))
    def judgement_is_switched_on_during_a_compaction(
        self, key: SessionKey, count: int, at: int
    ) -> None:
        self.stage.patch(key, {"pin_mode": "off"})
        self.stage.burst(key, count)
        on = {"pin_mode": "async", "strategies": STRATEGY_SETS[0]}
        self.stage.interference.arm(at, lambda: self.stage.patch(key, on))
        self.stage.compact(key)
        self.stage.interference.disarm()

    @rule(at=st.integers(0, 30))
    def queue_loses_a_message(self, at: int) -> None:
        messages = self.stage.service.queue._messages
        if messages:
            messages.pop(at % len(messages))

    @rule(at=st.integers(0, 30))
    def queue_repeats_a_message(self, at: int) -> None:
        messages = self.stage.service.queue._messages
        if messages:
            one = messages[at % len(messages)]
            self.stage.marker += 1
            self.stage.service.queue.send(one.group, f"again-{self.stage.marker}", one.body)

    @rule(seconds=st.sampled_from([1, 130, 400, 4000, 100_000]))
    def time_passes(self, seconds: int) -> None:
        self.stage.service.clock.advance(seconds)

    @rule(data=st.data())
    def sweeper_runs(self, data: st.DataObject) -> None:
        self.stage.disturbed(data, data.draw(keys), FEW_CALLS, self.stage.service.sweep)

    @precondition(lambda self: self.stage.model)
    @rule(mood=st.sampled_from(MOODS))
    def model_changes_its_mood(self, mood: str) -> None:
        if self.stage.model:
            self.stage.model.mood = mood

    @rule()
    def everything_calms_down(self) -> None:
        """Bells ring and are heard until there is nothing left to do: then I5 holds."""
        for _ in range(60):
            self.stage.service.drain()
            assert not self.stage.faults, self.stage.faults
            due_at = self.stage.next_due()
            if due_at is None:
                break
            self.stage.service.clock.now = max(self.stage.service.clock.now, due_at)
            self.stage.service.sweep()
        else:
            raise AssertionError("I5: never calm")
        for key in KEYS:
            if self.stage.exists(key):
                check_i5_bounded(self.stage.service, key)

    def teardown(self) -> None:
        if hasattr(self, "stage"):
            self.everything_calms_down()
            self.always()

    @invariant()
    def always(self) -> None:
        """All that holds at any moment."""
        if hasattr(self, "stage"):
            self.stage.check()
