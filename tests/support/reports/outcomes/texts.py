"""Outcomes of the reports about characters and templates."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from support.reports.model import entries_of, kind_of
from support.reports.outcomes import outcome
from support.reports.outcomes.messages import commit, finish
from support.reports.reading import contents

if TYPE_CHECKING:
    from support.reports.run import Run


@outcome("TXT-01")
def txt_01(run: Run) -> None:
    kept = finish(run)
    assert kept[2]["content"] == "bad \ufffd\u2026 errored"
    question, reply = (
        rb'{"role":"user","content":"\ud83d\udc4d"}',
        b'{"role":"assistant","content":"k"}',
    )
    raw = b'{"messages":[' + question + b"," + reply + b"]}"
    answer = run.session("POST", "/turns", raw=raw).ok(201)
    pair = [{"role": "user", "content": "👍"}, {"role": "assistant", "content": "k"}]
    run.ledger.note_turn(("local", "s1"), answer["turn"], pair)
    assert contents(run.said())[-2] == "👍"
    found = run.session("POST", "/search", {"query": "errored"}).ok()["items"]
    assert found[0]["turn"] == 1


@outcome("TXT-04")
def txt_04(run: Run) -> None:
    # NUL is replaced by the documented mark, everything else stays (docs/decisions.md).
    assert run.said()[2]["content"] == "a\ufffdb\x01\x1b[31mred\x1b[0m\ufeff"
    assert [one["turn"] for one in run.last("search").data] == [1]
    run.client("PUT", "/v1/sessions/a%00b", {}).problem(422, "invalid_session_id")
    run.session("GET", "/transcript?cursor=a%00b").problem(422, "invalid_cursor")


@outcome("TXT-05")
def txt_05(run: Run) -> None:
    said = contents(run.said())
    assert len(said) == 4
    for character in "\x0b\x0c\x1c\r":
        assert character in said[0]
    assert run.last("search").data[0]["turn"] == 2
    again = run.session("POST", "/search", {"query": "next"}).ok()["items"]
    assert again[0]["turn"] == 2, "found in the new index as well"


@outcome("TXT-07")
def txt_07(run: Run) -> None:
    text = run.said()[0]["content"]
    commit(run, "one more")
    seen = [one.content for body in run.last("llm_requests").data for one in entries_of(body)]
    assert text in seen, "no prompt has the text as it was committed"
    for body in run.last("llm_requests").data:
        for one in entries_of(body):
            assert "{1; 2}" not in one.content or text in one.content
    assert any(kind_of(body) == "judgement" for body in run.last("llm_requests").data)


@outcome("TXT-08")
def txt_08(run: Run) -> None:
    for result in run.all("search"):
        assert [one["turn"] for one in result.data] == [1], result.op["q"]
    committed = run.ledger.sessions["local", "s1"].turns[1]
    assert contents(run.said()) == contents(committed), "no normalisation"
    decomposed = unicodedata.normalize("NFD", "Café Zoë")
    found = run.session("POST", "/search", {"query": decomposed}).ok()["items"]
    assert [one["turn"] for one in found] == [1]
