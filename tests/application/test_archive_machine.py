"""The invariants hold in the long run (`support.archive_machine`): I4 and I12 above all."""

import os

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from support.archive_machine import LongConversations

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
EXAMPLES = 40
STEPS = 20


@pytest.mark.slow
@pytest.mark.timeout(0 if DEEP else 900)
def test_the_invariants_hold_in_the_long_run() -> None:
    many = settings() if DEEP else settings(max_examples=EXAMPLES, deadline=None)
    run_state_machine_as_test(
        LongConversations, settings=settings(many, stateful_step_count=STEPS, deadline=None)
    )
