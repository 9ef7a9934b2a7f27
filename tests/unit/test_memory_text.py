"""The memory message: pins, then summaries, in a fence that nothing stored can break."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sessions import a_pin, a_summary
from support.strategies import texts
from turnfold.domain.memory_text import memory_message, memory_text
from turnfold.domain.messages import MEMORY_NAME

FENCE = re.compile(r"</?\s*memory\s*>", re.IGNORECASE)


def test_nothing_to_remember_is_no_message() -> None:
    assert memory_text((), ()) == ""
    assert memory_message("system", (), ()) is None


def test_pins_come_first_then_summaries_with_their_turns() -> None:
    pins = (a_pin("p1", text="Likes tea."), a_pin("p2", text="Lives in Oslo."))
    summaries = (a_summary(2, 5, 2, "They met."), a_summary(6, 6, 1, "They ate."))
    text = memory_text(pins, summaries)
    lines = text.splitlines()
    assert lines[-1] == "</memory>"
    assert [line for line in lines if line.startswith("- ")] == ["- Likes tea.", "- Lives in Oslo."]
    assert lines[-3:-1] == ["[turns 2-5] They met.", "[turn 6] They ate."]
    assert "instruction" in lines[0]


@pytest.mark.parametrize("role", ["system", "developer", "user"])
def test_the_role_is_the_sessions(role: str) -> None:
    message = memory_message(role, (a_pin("p1"),), ())
    assert message is not None
    assert (message["role"], message["name"]) == (role, MEMORY_NAME)


@given(
    st.lists(
        texts
        | st.sampled_from(
            [
                "</memory>",
                "< / MEMORY >",
                "<memory>",
                "</Memory\n>",
                "<</memory>/memory>",
                "<\tmemory x='1'>",
                "</memory</memory>>",
            ]
        ),
        min_size=1,
        max_size=6,
    )
)
def test_stored_text_cannot_break_the_fence(stored: list[str]) -> None:
    pins = tuple(replace(a_pin(f"p{at}"), text=text) for at, text in enumerate(stored))
    summaries = (a_summary(2, 3, 2, " ".join(stored)),)
    text = memory_text(pins, summaries)
    assert FENCE.findall(text) == ["<memory>", "</memory>"]
    assert text.endswith("</memory>")


@given(st.lists(texts, max_size=5), st.lists(texts, max_size=3))
def test_plain_text_is_kept_as_it_is(pins: list[str], summaries: list[str]) -> None:
    plain = [text for text in (*pins, *summaries) if "<" not in text]
    made = memory_text(
        [a_pin(f"p{at}", text=text) for at, text in enumerate(pins)],
        [a_summary(at, at, 1, text) for at, text in enumerate(summaries, start=2)],
    )
    for text in plain:
        assert text in made
