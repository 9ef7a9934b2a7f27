"""The invariants of the design hold whatever happens (`support.conversations_machine`).

`HYPOTHESIS_PROFILE=deep` runs it for hours and looks for what the repeatable run cannot find.
"""

import os

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from support.conversations_machine import Conversations

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
EXAMPLES = 150
STEPS = 30


@pytest.mark.slow
@pytest.mark.timeout(0 if DEEP else 600)
def test_the_invariants_hold_whatever_happens() -> None:
    many = settings() if DEEP else settings(max_examples=EXAMPLES)
    run_state_machine_as_test(Conversations, settings=settings(many, stateful_step_count=STEPS))
