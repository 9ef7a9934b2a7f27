"""The alternating layout: which messages become one, and that no word gets lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.invariants import check_alternates
from support.strategies import texts, turns
from turnfold.domain.layouts import (
    ACKNOWLEDGEMENT,
    LAYOUTS,
    PLAIN,
    acknowledged,
    alternated,
    joined,
)
from turnfold.domain.messages import MEMORY_NAME, chat_form, content_texts, is_leading, tool_calls

PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
MEMORY = {"role": "system", "name": MEMORY_NAME, "content": "<memory>Tea.</memory>"}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def user(content: Any, **members: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **members}


def assistant(content: Any, **members: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **members}


RESULT = {"role": "tool", "tool_call_id": "c1", "content": "42"}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], []),
        ([user("a")], [user("a")]),
        ([user("a"), user("b"), user("c")], [user("a\n\nb\n\nc")]),
        ([user("a"), assistant("b"), user("c")], [user("a"), assistant("b"), user("c")]),
        (
            [user("a"), user([PICTURE])],
            [user([{"type": "text", "text": "a"}, PICTURE])],
        ),
        ([user("a", name="Ann"), user("b", name="Ann")], [user("a\n\nb", name="Ann")]),
        ([user("a", name="Ann"), user("b", name="Bo")], [user("Ann: a\n\nBo: b")]),
        ([user("a"), user("b", name="Bo")], [user("a\n\nBo: b")]),
        (
            [user("a"), user([PICTURE], name="Bo")],
            [user([{"type": "text", "text": "a"}, {"type": "text", "text": "Bo:"}, PICTURE])],
        ),
        (
            [user("a"), {**MEMORY, "role": "user"}],
            [user(f"a\n\n{MEMORY['content']}", name=MEMORY_NAME)],
        ),
        ([assistant("a"), assistant("b")], [assistant("a\n\nb")]),
        (
            [assistant("a"), assistant(None, tool_calls=[CALL]), RESULT, assistant("b")],
            [assistant("a", tool_calls=[CALL]), RESULT, assistant("b")],
        ),
        (
            [assistant("a"), assistant(None, refusal="No.")],
            [assistant("a", refusal="No.")],
        ),
        (
            [assistant(None, refusal="No."), assistant(None, refusal="Never.")],
            [assistant(None, refusal="No.\n\nNever.")],
        ),
        (
            [assistant([{"type": "refusal", "refusal": "No."}]), assistant("Or yes.")],
            [assistant([{"type": "text", "text": "No."}, {"type": "text", "text": "Or yes."}])],
        ),
        (
            [assistant(None, audio={"id": "s1"}), assistant("b")],
            [assistant("b", audio={"id": "s1"})],
        ),
        (
            [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}, user("c")],
            [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}, user("c")],
        ),
    ],
)
def test_what_one_side_says_in_a_row_is_one_message(
    messages: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> None:
    assert list(joined(messages)) == expected


@pytest.mark.parametrize("role", ["system", "developer", "user"])
def test_memory_is_told_and_acknowledged(role: str) -> None:
    told, answer = acknowledged({**MEMORY, "role": role})
    assert told == {**MEMORY, "role": "user"}
    assert answer == ACKNOWLEDGEMENT
    assert answer["name"] == MEMORY_NAME


def test_a_list_with_memory_names_the_places_of_its_messages() -> None:
    messages = [user("a"), user("b"), MEMORY, user("c"), assistant("d")]
    laid_out = alternated(messages)
    assert [list(places) for _, places in laid_out] == [[0, 1, 2], [], [3], [4]]
    check_alternates([dict(one) for one, _ in laid_out])
    assert LAYOUTS["openai"].whole(messages) == tuple(
        (message, (at,)) for at, message in enumerate(messages)
    )


def test_the_plain_layout_changes_nothing() -> None:
    messages = [user("a"), user("b"), MEMORY]
    assert PLAIN.spoken(messages) == tuple(messages)
    assert PLAIN.remembered(MEMORY) == (MEMORY,)


def said(messages: Any) -> list[str]:
    """All words of messages: those of texts, refusals and calls."""
    words: list[str] = []
    for message in messages:
        for text in (*content_texts(message), message.get("refusal") or ""):
            words += text.split()
        words += [str(call) for call in tool_calls(message)]
    return words


@given(st.lists(turns(), min_size=1, max_size=4), st.booleans(), texts)
def test_any_turns_alternate_and_no_word_gets_lost(
    kinds: list[list[dict[str, Any]]], remembers: bool, memory: str
) -> None:
    messages = [chat_form(one) for kind in kinds for one in kind if not is_leading(one)]
    if remembers:
        messages.insert(0, {**MEMORY, "content": memory})
    laid_out = [dict(one) for one, _ in alternated(messages)]
    check_alternates(laid_out)
    added = said([ACKNOWLEDGEMENT]) if remembers else []
    assert sorted(said(laid_out)) == sorted([*said(messages), *added])
    used = [at for _, places in alternated(messages) for at in places]
    assert used == list(range(len(messages)))
