"""How many answers are still in a context, when a conversation has been folded without a model.

Each user's message is committed as a turn to the service in this process, which compacts as it
goes. Then every question's accepted answers are looked for in the context of `BUDGET` tokens: once
as it is, and once asked for with the question as its query.
"""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.service import Service
from turnfold.adapters.tiktoken_counter import TiktokenCounter
from turnfold.application.read_context import ContextRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

BUDGET = 4000
REPLY = "Noted."


def survival(conversations: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The share of the questions whose answer stands in the context, without and with query."""
    kept: list[tuple[bool, bool]] = []
    counter = TiktokenCounter(Path(os.environ["TIKTOKEN_CACHE_DIR"]))
    for conversation in conversations:
        service = Service(counter=counter)
        for session in conversation["sessions"]:
            for message in session["messages"]:
                service.commit(
                    [
                        {"role": "user", "content": message["content"]},
                        {"role": "assistant", "content": REPLY},
                    ]
                )
                service.drain()
        plain = _context(service, None)
        for qa in conversation["qa"]:
            answers = qa["answer"] if isinstance(qa["answer"], list) else [qa["answer"]]
            asked = _context(service, qa["question"])
            kept.append((_holds(plain, answers), _holds(asked, answers)))
    return {
        "answers": len(kept),
        "answers_survive": _share(one for one, _ in kept),
        "answers_survive_with_query": _share(one for _, one in kept),
    }


def _context(service: Service, query: str | None) -> str:
    request = ContextRequest(max_tokens=BUDGET, query=query)
    context = service.context.assemble(service.memory(), request)
    return _normal("\n".join(str(one["content"]) for one in context.messages))


def _holds(context: str, answers: Iterable[str]) -> bool:
    return any(_normal(str(one)) in context for one in answers)


def _normal(text: str) -> str:
    """Lower case, and punctuation as blanks: answers are looked for as parts of such a text."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.findall(r"\w+", folded))


def _share(outcomes: Iterable[bool]) -> float:
    found = list(outcomes)
    return round(sum(found) / len(found), 4)
