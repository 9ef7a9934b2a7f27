"""Outcomes of the reports about sizes, numbers, keys and paths."""

from __future__ import annotations

import json
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import quote

from support.reports.checks.stored import text_of
from support.reports.outcomes import outcome
from support.reports.reading import contents

if TYPE_CHECKING:
    from support.reports.run import Run

MOST_ANSWER_BYTES = 6 * 1024 * 1024


@outcome("LIM-01")
def lim_01(run: Run) -> None:
    items = run.last("raw_scan").data["items"]
    assert max(len(text_of(item)) for item in items) < 100_000
    seconds = [call.seconds for call in run.client.calls if call.target.endswith("/turns")]
    assert median(seconds[-50:]) <= 3 * median(seconds[:50])
    assert run.context()["tokens"]["total"] <= 4000


@outcome("LIM-03")
def lim_03(run: Run) -> None:
    # Over 1 MiB (contract). That messages stay small is checked of every case.
    run.all("commit")[0].answer.problem(413, "turn_too_large")
    assert run.last("queue_peek").data


@outcome("LIM-04")
def lim_04(run: Run) -> None:
    assert contents(run.said()) == ["é" * 60_000, "k"] * 100
    # By tokens it is within its budget; without one it is too large for an answer.
    answer = run.last("context").answer
    if answer.status == 200:
        answer = run.session("POST", "/context", {})
    problem = answer.problem(413, "context_too_large")
    assert any(word.isdigit() for word in problem["detail"].split()), "without the size"
    pages = [call for call in run.client.calls if "/transcript?" in call.target]
    assert len(pages) > 2, "pages are limited by bytes"
    for call in run.client.calls:
        assert len(json.dumps(call.answer.text, ensure_ascii=False).encode()) < MOST_ANSWER_BYTES


@outcome("LIM-06")
def lim_06(run: Run) -> None:
    assert run.last("search").data[0]["turn"] == 61
    assert [one["session_id"] for one in run.last("list_sessions").data] == ["s1"]
    assert run.last("get_session").answer.ok()["turns"] == 61


@outcome("LIM-07")
def lim_07(run: Run) -> None:
    usage = run.said()[1]["usage"]
    assert repr(usage["cost"]) == "0.7"
    assert usage["tiny"] == 1e-20
    assert usage["big"] == 1e100
    assert str(usage["neg0"]) == "-0.0"
    metadata = run.case["input"]["ops"][0]["metadata"]
    records = [json.loads(one) for one in run.stack.stores.objects().values()]
    stored = [one["metadata"] for one in records if one.get("metadata")]
    assert json.dumps(stored, sort_keys=True) == json.dumps([metadata], sort_keys=True)


@outcome("LIM-10")
def lim_10(run: Run) -> None:
    run.last("commit").answer.problem(400, "bad_json")
    run.last("http_commit_raw").answer.problem(400, "bad_json")


@outcome("LIM-11")
def lim_11(run: Run) -> None:
    empty, blank, absent, long, wide = (one.answer for one in run.all("create_session"))
    assert 400 <= empty.status < 500
    assert "1 to 256 characters" in blank.problem(422, "invalid_session_id")["detail"]
    # The contract has no ids made by the server: they are part of the path.
    assert absent.status == 201
    long.problem(422, "invalid_session_id")
    wide.problem(422, "invalid_session_id")


@outcome("LIM-12")
def lim_12(run: Run) -> None:
    assert [one.answer.status for one in run.all("create_session")] == [201] * 6
    groups: dict[str, set[str]] = {}
    for message in run.last("queue_peek").data:
        body = json.loads(message["body"])
        groups.setdefault(message["group"], set()).add(body["session"])
    assert len(groups) == 6
    assert all(len(sessions) == 1 for sessions in groups.values())


@outcome("LIM-13")
def lim_13(run: Run) -> None:
    for made, read in zip(run.all("create_session"), run.all("http_get"), strict=True):
        name = made.data
        if made.answer.status not in (200, 201):
            assert 400 <= made.answer.status < 500
            assert 400 <= read.answer.status < 500
            continue
        assert read.answer.status == 200, name
        assert read.answer.body["session_id"] == name[1]
        messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": name[1]}]
        run.client.session(name, "POST", "/turns", {"messages": messages}).ok(201)
    for one, other in (("a%2Fb", "a/b"), ("a+b", "a b"), ("..", "%2E%2E")):
        first = run.client("GET", f"/v1/sessions/{quote(one, safe='')}")
        if first.status == 200:
            run.client("GET", f"/v1/sessions/{quote(other, safe='')}/transcript")
            assert first.body["session_id"] == one
    assert run.client("GET", "/v1/sessions/a%2Fb").status == 404, "a/b is another session"
    for made in run.all("create_session"):
        if made.answer.status in (200, 201):
            said = run.client.pages(made.data, "transcript")
            assert said[0]["messages"][1]["content"] == made.data[1]
            run.client.session(made.data, "DELETE").ok(202)
            run.client.session(made.data, "GET").problem(404, "session_not_found")
