"""Outcomes of the reports about windows, budgets and tool exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.reports.outcomes import outcome
from support.reports.reading import contents, spoken

if TYPE_CHECKING:
    from support.reports.run import Run


def _tool_ids(messages: list[dict[str, Any]]) -> list[str]:
    return [one["tool_call_id"] for one in messages if one["role"] == "tool"]


@outcome("WIN-01")
def win_01(run: Run) -> None:
    shown = spoken(run)
    assert len(shown) <= 4
    assert contents(shown)[-2:] == ["And parcel 12?", "Not shipped yet."]
    if "c1" in _tool_ids(shown):
        at = _tool_ids(shown).index("c1")
        assert shown[at]["role"] == "user"


@outcome("WIN-02")
def win_02(run: Run) -> None:
    shown = spoken(run)
    assert len(_tool_ids(shown)) in (0, 60)
    assert "Thanks, close the ticket" in contents(shown)
    assert len(shown) <= 35
    # Removal by priority takes the round as one unit, too.
    policy = {"name": "limit_count", "max_count": 35, "priority_removal": ["tool"]}
    again = run.session("POST", "/context", {"policy": policy}).ok()["messages"]
    assert len(_tool_ids(again)) in (0, 60)


@outcome("WIN-03")
def win_03(run: Run) -> None:
    shown = spoken(run)
    assert sorted(_tool_ids(shown)) in ([], ["a", "b"])
    assert contents(shown)[-1] == "Which one should I visit?"


@outcome("WIN-05")
def win_05(run: Run) -> None:
    messages = run.messages()
    assert messages[0] == {"role": "system", "content": "Answer in French only."}
    assert contents(spoken(run)) == ["derniere question"], "max_count counts the conversation only"


@outcome("WIN-06")
def win_06(run: Run) -> None:
    body = run.context()
    assert run.ledger.sessions["local", "s1"].turns[1] == body["messages"]
    assert body["policy"]["reduced"] is False


@outcome("WIN-08")
def win_08(run: Run) -> None:
    results = run.all("context")
    assert len(results) == 8
    for at, result in enumerate(results):
        shown = spoken(run, at)
        assert shown[0]["role"] == "user"
        assert shown[-1]["content"] == "last question"
        assert len(shown) <= result.op["max_count"]


@outcome("WIN-10")
def win_10(run: Run) -> None:
    problem = run.last("context").answer.problem(422, "budget_too_small")
    assert problem["needed"] > problem["budget"] == 2


@outcome("WIN-11")
def win_11(run: Run) -> None:
    body = run.context()
    shown = spoken(run)
    assert shown[0]["content"] == "dump the log"
    assert body["tokens"]["total"] <= 4000
    if _tool_ids(shown):
        assert "characters left out" in shown[-1]["content"]
        assert body["elided"], "nothing says that it was shortened"
    # The turn waits for its answer, so the result is kept in the open turn (contract).
    kept = run.session("GET", "/open-turn").ok()["messages"]
    assert kept[-1]["content"] == "2026-01-01 ok\n" * 40000


@outcome("WIN-13")
def win_13(run: Run) -> None:
    problem = run.last("context").answer.problem(422, "budget_too_small")
    assert problem["budget"] == 1300
    assert problem["needed"] > 3000
    assert "policy may not drop" in problem["detail"] or "system" in problem["detail"]


@outcome("WIN-14")
def win_14(run: Run) -> None:
    assert run.context()["tokens"]["total"] <= 16000
    assert run.last("timed").data <= 2


@outcome("WIN-16")
def win_16(run: Run) -> None:
    body = run.context()
    shown = spoken(run)
    assert len(shown) <= 6 or "over_limit" in body["policy"]["flags"]
    assert shown[0]["content"] == "go"
    assert len(shown) < 41


@outcome("WIN-17")
def win_17(run: Run) -> None:
    # Without an answer to r2 the turn is not finished: it stays an open turn (contract), word for
    # word, and the turn that was committed meanwhile is not affected.
    assert run.statuses == [201, 201]
    kept = run.session("GET", "/open-turn").ok()["messages"]
    assert _tool_ids(kept) == ["r1", "r3"]
    problem = run.session("POST", "/open-turn/commit", {}).problem(422, "incomplete_turn")
    assert "r2" in str(problem["errors"])
    assert len(run.said()) == 2


@outcome("WIN-19")
def win_19(run: Run) -> None:
    assert set(run.statuses) <= {201, 409}
    said = contents(run.said())
    for answer, question in (("fin A", "A"), ("fin B", "B")):
        assert (answer in said) == (question in said)
    assert [("fin A" in said), ("fin B" in said)].count(True) == run.statuses[1:].count(201)
    if "fin A" in said:
        at = said.index("A")
        assert said[at : at + 4] == ["A", None, "res", "fin A"], "one block"


@outcome("WIN-21")
def win_21(run: Run) -> None:
    kept = run.session("GET", "/open-turn").ok()["messages"]
    assert kept[1]["reasoning_content"] == "because"
    # A context carries what chat completions accept (clarification 2), everywhere the same.
    assert all("reasoning_content" not in one for one in run.messages())
    last = {"role": "assistant", "content": "It is 42."}
    answer = run.session("POST", "/open-turn/commit", {"messages": [last]}).ok(201)
    run.ledger.note_turn(("local", "s1"), answer["turn"], [*kept, last])
    assert run.said()[1]["reasoning_content"] == "because"


@outcome("WIN-23")
def win_23(run: Run) -> None:
    kept = run.session("GET", "/open-turn").ok()["messages"]
    assert [one["role"] for one in kept] == ["user", "assistant", "tool"], "not compressed"
    shown = spoken(run)
    at = next(at for at, one in enumerate(shown) if one["role"] == "tool")
    assert shown[at - 1]["tool_calls"][0]["id"] == "late1"
