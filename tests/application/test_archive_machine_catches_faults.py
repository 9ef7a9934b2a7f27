"""The archive's state machine can fail: whoever writes too late is caught by I12."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from support.archive_machine import LongConversations
from turnfold.adapters.in_memory_store import InMemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from turnfold.application.ports.models import ModelAnswer
    from turnfold.domain.sessions import SessionKey
    from turnfold.domain.usage import Usage


def answers_without_guard(patch: pytest.MonkeyPatch) -> None:
    def put(
        self: InMemoryStore,
        key: SessionKey,
        step_id: str,
        answer: ModelAnswer,
        expires_at: datetime,
        *_unguarded: object,
    ) -> None:
        self.answers.setdefault(key, {})[step_id] = (answer, expires_at)

    patch.setattr(InMemoryStore, "put_model_answer", put)


def answers_of_any_life(patch: pytest.MonkeyPatch) -> None:
    put = InMemoryStore.put_model_answer

    def put_for_whoever_is_there(
        self: InMemoryStore,
        key: SessionKey,
        step_id: str,
        answer: ModelAnswer,
        expires_at: datetime,
        _epoch: str,
        usage: Usage,
    ) -> None:
        session, _ = self.read_session(key, None)
        if session is not None:
            put(self, key, step_id, answer, expires_at, session.epoch, usage)

    patch.setattr(InMemoryStore, "put_model_answer", put_for_whoever_is_there)


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "paid answers are put without looking": answers_without_guard,
    "paid answers are put into a later life": answers_of_any_life,
}


RARE = {"paid answers are put into a later life"}
"""It takes some hundred examples to meet it: it is left to the deep profile."""

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


@pytest.mark.parametrize("name", FAULTS)
def test_a_late_write_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in RARE and not DEEP:
        pytest.skip("takes long: runs with the deep profile")
    FAULTS[name](monkeypatch)
    few = settings(
        max_examples=500 if DEEP else 100,
        stateful_step_count=20,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        deadline=None,
    )
    with pytest.raises(AssertionError, match="I12"):
        run_state_machine_as_test(LongConversations, settings=few)
