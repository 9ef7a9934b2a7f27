"""Outcomes of the reports about summaries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from support.reports.model import entries_of, kind_of
from support.reports.ops.turns import commit_messages
from support.reports.ops.working import drain
from support.reports.outcomes import outcome
from support.reports.reading import (
    check_coverage,
    check_verbatim_or_summary,
    contents,
    spoken,
    summaries,
    summary_texts,
)

if TYPE_CHECKING:
    from support.reports.run import Run

ERRORS = ("429", "500", "401", "error", "Error", "failed with", "Invalid schema")


def summary_requests(run: Run) -> list[dict[str, Any]]:
    return [body for body in run.stack.model.chat_requests() if kind_of(body) == "summary"]


def instruction(body: dict[str, Any]) -> str:
    return str(body["messages"][0]["content"])


def check_rounds_kept(run: Run, turns: int) -> dict[str, Any]:
    """Nothing is lost, and no error text got into the context."""
    body: dict[str, Any] = run.session("POST", "/context", {}).ok()
    check_coverage(body)
    assert len(run.transcript()) == turns
    whole = "\n".join(str(one) for one in contents(body["messages"]))
    assert not [word for word in ERRORS if word in whole]
    return body


@outcome("SUM-01")
def sum_01(run: Run) -> None:
    # With the model down, the deterministic summariser keeps the window bounded (invariant I5);
    # the doorbell is obeyed, so no message goes to the dead letters.
    body = check_rounds_kept(run, 5)
    assert all(one["degraded"] for one in summaries(body))
    assert all(one["text"].strip() for one in summaries(body))
    assert body["watermark"]["degraded"] == bool(summaries(body))
    assert not run.stack.dead_letters


@outcome("SUM-02")
def sum_02(run: Run) -> None:
    body = check_rounds_kept(run, 5)
    assert all(one["text"].strip() for one in summaries(body))
    assert "ok summary of rounds" in summary_texts(body)


@outcome("SUM-03")
def sum_03(run: Run) -> None:
    body = check_rounds_kept(run, 5)
    assert "can't" not in summary_texts(body)
    assert all(one["text"].strip() for one in summaries(body))
    # The last reply is longer than the turn that it is for, so it is not taken either (I13).
    assert len(summary_requests(run)) == 4


@outcome("SUM-06")
def sum_06(run: Run) -> None:
    assert "good" in summary_texts(check_rounds_kept(run, 5))


@outcome("SUM-07")
def sum_07(run: Run) -> None:
    asked = [body for body in run.stack.model.chat_requests() if "response_format" in body]
    assert asked
    for body in asked:
        assert body["response_format"]["json_schema"]["strict"] is True
        check_strict(body["response_format"]["json_schema"]["schema"])
    # A refused request is not repeated for ever: the rules judge, and a metric counts it.
    assert run.last("metrics").data["ModelFailures"] >= 1
    assert len(run.stack.model.chat_requests()) <= 20
    assert not run.stack.dead_letters
    check_rounds_kept(run, 5)


def check_strict(schema: dict[str, Any]) -> None:
    """Every object of a schema is closed and has all its members required."""
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) == set(schema["properties"])
        for one in schema["properties"].values():
            check_strict(one)
    if "items" in schema:
        check_strict(schema["items"])


@outcome("SUM-08")
def sum_08(run: Run) -> None:
    body = check_rounds_kept(run, 60)
    assert body["tokens"]["window"] <= 300
    assert sum(one["tokens"] for one in body["regions"]["window"]) <= 300
    for one in summaries(body):
        assert one["tokens"] < one["source_tokens"], "an over-long reply was taken"


@outcome("SUM-09")
def sum_09(run: Run) -> None:
    whole = "\n".join(str(one) for one in contents(run.messages()))
    for value in ("eu-south-7", "INC-40417", "2027-02-03", "Mira Test", "ab-9f3"):
        assert value in whole
    assert summary_requests(run)
    for body in summary_requests(run):
        assert "exactly as they are written" in instruction(body)
    assert run.last("search").data[0]["turn"] == 1


@outcome("SUM-11")
def sum_11(run: Run) -> None:
    assert summary_requests(run)
    for body in summary_requests(run):
        assert "in the language of the conversation" in instruction(body)
    for one in summaries(run.context()):
        assert not re.match(r"\s*(summary|conversation|the user)\b", one["text"], re.IGNORECASE)


@outcome("SUM-12")
def sum_12(run: Run) -> None:
    assert run.refused_settings is not None
    run.refused_settings.problem(422, "invalid_settings")
    # The tightest settings that are taken: the queue gets empty, and calls are bounded.
    before = len(run.stack.model.chat_requests())
    name = ("local", "tight")
    settings = {"round_token_threshold": 1, "window_token_threshold": 100, "window_max_size": 1}
    run.client.session(name, "PUT", "", {"settings": settings}).ok(201)
    run.known.add(name)
    for number in range(10):
        messages = [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": f"answer {number}"},
        ]
        commit_messages(run, name, messages, {})
        drain(run)
    asked = [
        body for body in run.stack.model.chat_requests()[before:] if kind_of(body) == "summary"
    ]
    assert len(asked) <= 2 * 10 + 10, f"{len(asked)} calls for ten commits"


@outcome("SUM-14")
def sum_14(run: Run) -> None:
    body = run.context()
    check_coverage(body)
    assert body["regions"]["head"] == [{"turn": 1}]
    assert body["regions"]["tail"] == [{"turn": 5}, {"turn": 6}]
    shown = contents(spoken(run))
    assert shown[:2] == ["question 0", "answer 0"]
    assert shown[-4:] == ["question 4", "answer 4", "question 5", "answer 5"]
    check_verbatim_or_summary(body, {number + 1: f"question {number}" for number in range(6)})


@outcome("SUM-16")
def sum_16(run: Run) -> None:
    # The picture is in the head, which is never summarised; pins are judged from it.
    asked = [one.content for body in run.stack.model.chat_requests() for one in entries_of(body)]
    assert not [one for one in asked if re.search(r"[A-Za-z0-9+/]{200,}", one)]
    assert [one for one in asked if "see chart" in one and "image" in one], "no stand-in"


@outcome("SUM-18")
def sum_18(run: Run) -> None:
    before, after = run.context(0), run.context(1)
    assert before["messages"] == after["messages"]
    check_coverage(after)
    check_verbatim_or_summary(after, {number + 1: f"question {number}" for number in range(20)})
