"""Outcomes of the reports about order, clocks and expiry."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from support.reports.outcomes import outcome
from support.reports.reading import contents, spoken

if TYPE_CHECKING:
    from support.reports.run import Run


@outcome("TIM-01")
def tim_01(run: Run) -> None:
    assert contents(run.said()) == [f"{who}{number}" for number in range(30) for who in "qa"]
    assert 8 in [one["turn"] for one in run.last("search").data]


@outcome("TIM-03")
def tim_03(run: Run) -> None:
    assert contents(spoken(run)) == ["a", "b", "c", "d"]
    (listed,) = run.last("list_sessions").data
    updated = datetime.fromisoformat(listed["updated_at"])
    assert abs(updated - run.stack.clock.now) < timedelta(hours=1)
    stored = [one.get("timestamp") for one in run.said()]
    assert stored == ["2019-01-01T00:00:00Z", "2031-01-01T00:00:00Z", None, None]


@outcome("TIM-04")
def tim_04(run: Run) -> None:
    # The contract's search has no `since`: members that it does not know are passed over, whatever
    # they hold, and the message is found.
    for result in run.all("search"):
        assert [one["turn"] for one in result.answer.ok()["items"]] == [1], result.op["since"]
    assert run.transcript()[0]["committed_at"].startswith("2026-03-29T02:30:00")


@outcome("TIM-06")
def tim_06(run: Run) -> None:
    upwards, downwards = (one.data for one in run.all("page_all"))
    assert [turn["turn"] for turn in upwards] == list(range(1, 26))
    assert [turn["turn"] for turn in downwards] == list(range(25, 0, -1))


@outcome("TTL-01")
def ttl_01(run: Run) -> None:
    # Expiry puts working memory away; the next read or commit brings it back (design, section 5),
    # and turn numbers go on. The transcript is kept for good.
    assert run.all("context")[0].answer.status == 200
    assert run.statuses == [201] * 5
    assert run.last("commit").answer.body["turn"] == 5
    assert contents(spoken(run))[-2:] == ["back again", "hi"]
    assert len(run.transcript()) == 5


@outcome("TTL-02")
def ttl_02(run: Run) -> None:
    # Expiry is by session, not by item, or old items would vanish under a living session (design,
    # section 5): the session's own time moves with each commit.
    session = run.last("get_session").answer.ok()
    newest = datetime.fromisoformat(run.transcript()[-1]["committed_at"])
    assert datetime.fromisoformat(session["expires_at"]) == newest + timedelta(days=1)
    assert session["settings"]["expire_days"] == 1
    assert session["settings"]["tail_size"] == 3
    for item in run.last("raw_scan").data["items"]:
        expires = item.get("ttl")
        assert expires is None or "N" in expires
