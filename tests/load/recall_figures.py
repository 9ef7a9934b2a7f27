"""Recall at 5, 10 and 20 of keyword search: the mean share of a question's evidence that is found.

Single messages are the documents. Each is made a turn and goes through the code of the service.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from turnfold.domain.recall.corpora import DocumentCorpus
from turnfold.domain.recall.documents import turn_document
from turnfold.domain.recall.ranking import Search, parse_query
from turnfold.domain.turns import Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CUTS = (5, 10, 20)
NEVER = datetime(2000, 1, 1, tzinfo=UTC)
DATES = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M", "%B-%d-%Y", "%Y-%m-%d")
UNANSWERABLE = ("adversarial", "abstention")


def conversation_recall(
    conversations: Iterable[dict[str, Any]], role: str | None = None
) -> dict[str, Any]:
    """Over all questions with evidence that have an answer; of one role's messages only."""
    outcomes: list[tuple[str, list[float]]] = []
    for conversation in conversations:
        ids, turns = _documents(conversation, role)
        corpus = DocumentCorpus(map(turn_document, turns))
        known = set(ids)
        for qa in conversation["qa"]:
            gold = [one for one in qa["evidence"] if role is None or one in known]
            if not gold or qa.get("category") in UNANSWERABLE:
                continue
            found = [
                ids[hit.document] for hit in Search(corpus, parse_query(qa["question"])).best(20)
            ]
            outcomes.append((str(qa.get("category")), _recalls(found, gold)))
    by_category = {
        name: _means([recalls for category, recalls in outcomes if category == name])
        for name in sorted({category for category, _ in outcomes})
    }
    return _means([recalls for _, recalls in outcomes]) | {"by_category": by_category}


def memory_recall(
    dialogues: Iterable[dict[str, Any]], memories: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """What the dialogue before the turn under test finds among memories of separate events."""
    turns = [
        _turn(number, {"role": "user", "content": one["event"]}, one["time"])
        for number, one in enumerate(memories, 1)
    ]
    corpus = DocumentCorpus(map(turn_document, turns))
    outcomes = []
    for dialogue in dialogues:
        messages = [one for session in dialogue["sessions"] for one in session["messages"]]
        end = next(at for at, one in enumerate(messages) if one["id"] in dialogue["test_turn"])
        query = parse_query(" ".join(one["content"] for one in messages[:end]))
        # The memories are no conversation, so none has neighbours.
        hits = Search(corpus, query, neighbours={0: 1.0}).best(20)
        found = [memories[hit.document]["id"] for hit in hits]
        outcomes.append(_recalls(found, dialogue["relevant_memory_ids"]))
    return _means(outcomes)


def _documents(conversation: dict[str, Any], role: str | None) -> tuple[list[str], list[Turn]]:
    ids, turns = [], []
    for session in conversation["sessions"]:
        for message in session["messages"]:
            if (role is None or message["role"] == role) and message["content"]:
                ids.append(message["id"])
                turns.append(_turn(len(ids), message, session.get("date")))
    return ids, turns


def _turn(number: int, message: dict[str, Any], date: str | None) -> Turn:
    kept = {name: message[name] for name in ("role", "content", "name") if message.get(name)}
    kept.setdefault("content", "")
    moment = _moment(date) if date else None
    if moment:
        kept["created_at"] = moment.isoformat()
    return Turn(number, str(number), NEVER, (kept,), "", "")


def _moment(date: str) -> datetime | None:
    for form in DATES:
        try:
            return datetime.strptime(date, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return datetime.fromisoformat(date) if "T" in date else None


def _recalls(found: Sequence[str], gold: Sequence[str]) -> list[float]:
    wanted = set(gold)
    return [len(wanted & set(found[:cut])) / len(wanted) for cut in CUTS]


def _means(outcomes: Sequence[Sequence[float]]) -> dict[str, Any]:
    means = {
        f"recall_at_{cut}": round(sum(one[at] for one in outcomes) / len(outcomes), 4)
        for at, cut in enumerate(CUTS)
        if outcomes
    }
    return {"questions": len(outcomes), **means}
