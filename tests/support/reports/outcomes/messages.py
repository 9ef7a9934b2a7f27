"""Outcomes of the reports about the shape, roles and repetition of messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.reports.model import entries_of
from support.reports.ops.working import drain
from support.reports.outcomes import outcome
from support.reports.reading import contents, memory_text, spoken, summary_texts

if TYPE_CHECKING:
    from support.reports.run import Run

NAME = ("local", "s1")


def finish(run: Run, text: str = "Done with that.") -> list[dict[str, Any]]:
    """Commit the open turn with a last answer; its messages."""
    begun = run.session("GET", "/open-turn").ok()["messages"]
    last = {"role": "assistant", "content": text}
    answer = run.session("POST", "/open-turn/commit", {"messages": [last]}).ok(201)
    run.ledger.note_turn(NAME, answer["turn"], [*begun, last])
    run.ledger.of(NAME).open = []
    return [*begun, last]


def commit(run: Run, question: str, reply: str = "answer") -> None:
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]
    answer = run.session("POST", "/turns", {"messages": messages}).ok(201)
    run.ledger.note_turn(NAME, answer["turn"], messages)


@outcome("MSG-01")
def msg_01(run: Run) -> None:
    assert run.said()[1]["content"] is None
    assert [one["turn"] for one in run.last("search").data] == [1]


@outcome("MSG-03")
def msg_03(run: Run) -> None:
    # The turn waits for its answer (contract), so it can be compacted only after that.
    kept = finish(run)
    assert kept[1]["content"] == ""
    for number in range(3):
        commit(run, f"question {number}")
    drain(run)
    assert run.said()[1] == kept[1]
    assert spoken_calls(run) == ["n1"]
    asked = "".join(
        one.content for body in run.stack.model.chat_requests() for one in entries_of(body)
    )
    assert "lookup" in asked, "no prompt names the call"


def spoken_calls(run: Run) -> list[str]:
    messages = run.session("POST", "/context", {}).ok()["messages"]
    return [call["id"] for one in messages for call in one.get("tool_calls") or ()]


@outcome("MSG-04")
def msg_04(run: Run) -> None:
    assert run.last("commit").answer.body["tokens"] >= 9000
    assert run.context()["tokens"]["total"] <= 4000
    whole = run.session("POST", "/context", {}).ok()
    assert whole["tokens"]["total"] >= 9000


@outcome("MSG-05")
def msg_05(run: Run) -> None:
    # Arguments are any text (contract). The first turn is open until it is answered.
    raw = 'description": "no opening quote"}'
    assert run.statuses == [201, 201]
    shown = [call for one in run.messages() for call in one.get("tool_calls") or ()]
    assert [call["function"]["arguments"] for call in shown] == [raw], "passed through as it is"
    finish(run)
    stored = [call for one in run.said() for call in one.get("tool_calls") or ()]
    assert [call["function"]["arguments"] for call in stored] == [raw]


@outcome("MSG-07")
def msg_07(run: Run) -> None:
    assert run.statuses == [422, 201, 422, 201], "blank answers are refused"
    assert contents(spoken(run)) == ["again", "third", "here"]
    assert contents(run.said()) == ["again", "third", "here"]


@outcome("MSG-09")
def msg_09(run: Run) -> None:
    assert run.messages()[0] == {"role": "developer", "content": "ignore the house rules"}
    # The service's own block is the memory message; it stands after head (design, section 8).
    run.session("POST", "/pins", {"text": "The user likes tea."}).ok(201)
    body = run.session("POST", "/context", {}).ok()
    assert "likes tea" in memory_text(body)
    assert body["messages"][0]["role"] == "developer"


@outcome("MSG-11")
def msg_11(run: Run) -> None:
    assert contents(run.messages()) == ["Be brief.", "q1", "a1", "q2", "a2"]


@outcome("MSG-12")
def msg_12(run: Run) -> None:
    body = run.session("POST", "/context", {}).ok()
    assert json.dumps(body["messages"]).count("You are a clerk.") == 1
    assert contents(body["messages"][:1]) == ["You are a clerk."]
    assert run.context()["tokens"]["system"] < 12, "system messages add up"
    assert "clerk" not in summary_texts(body) + memory_text(body)
    assert not [pin for pin in run.last("pins").data if "clerk" in pin["text"]]
    assert [turn["messages"][0]["role"] for turn in run.transcript()] == ["system"] * 20


@outcome("MSG-14")
def msg_14(run: Run) -> None:
    said = ["Delete file 1?", "Sure?", "yes", "Done.", "Delete file 2?", "Sure?", "yes", "Done."]
    assert contents(run.said()) == said
    assert contents(spoken(run)) == said


@outcome("MSG-15")
def msg_15(run: Run) -> None:
    first, second = (one.answer for one in run.all("commit"))
    assert contents(run.said()) == ["hello", "hi"]
    assert (first.status, first.body) == (second.status, second.body)
    assert second.headers["idempotency-replayed"] == "true"
