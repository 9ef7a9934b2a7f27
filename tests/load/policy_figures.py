"""What each context policy costs, turn by turn, over one real conversation.

    python tests/load/policy_figures.py CONVERSATIONS.jsonl [ID] > figures.json

Runs the service in this process in the mode without a key, with the real tokenizer, and prints
JSON: for each policy the context's tokens after each turn, and the tokens of the full history.
`make plot` draws them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import service as in_process
from support.conversations import read_conversations, turns_of
from turnfold.adapters.extractive import ExtractiveSummariser
from turnfold.adapters.tiktoken_counter import TiktokenCounter
from turnfold.application.condense import WriterCondenser
from turnfold.application.prompts import PromptLibrary
from turnfold.application.read_context import ContextRequest
from turnfold.application.read_policy_context import ReadPolicyContext
from turnfold.application.summary_writer import SummaryWriter
from turnfold.domain.errors import BudgetTooSmallError
from turnfold.domain.estimators import ExactEstimator
from turnfold.domain.measure import Measure
from turnfold.domain.policies.registry import SERVICE_DEFAULTS, PolicyKit
from turnfold.domain.tokens import PER_LIST, count_messages

if TYPE_CHECKING:
    from turnfold.domain.memory import WorkingMemory

COUNTER = TiktokenCounter(ROOT / "layers" / "vocab" / "vocabulary")
MINUTES_BETWEEN_TURNS = 5
POLICIES: tuple[dict[str, Any], ...] = (
    {"name": "progressive"},
    {"name": "message_window", "max_messages": 20},
    {"name": "token_window", "max_tokens": 4000},
    {"name": "token_limit", "max_tokens": 4000},
    {"name": "limit_count", "max_count": 20, "keep_first_user_message": True},
    {"name": "time_window", "window_minutes": 60},
    {"name": "relevancy", "max_messages": 10, "min_relevance_score": 0.2},
    {"name": "summarization", "summarize_threshold": 15, "keep_recent": 5},
    {
        "name": "composite",
        "policies": [
            {"name": "time_window", "window_minutes": 120},
            {"name": "token_limit", "max_tokens": 3000},
        ],
    },
)


def figures(turns: list[list[dict[str, Any]]]) -> dict[str, list[int | None]]:
    """Tokens after each turn: of the full history, and of each policy's context."""
    service = in_process.Service()
    reader = ReadPolicyContext(service.transcript, service.clock, _kit)
    found: dict[str, list[int | None]] = {"full history": []}
    full = PER_LIST
    for turn in turns:
        service.commit(turn)
        service.clock.advance(MINUTES_BETWEEN_TURNS * 60)
        service.drain()
        full += count_messages(turn, COUNTER.count)
        found["full history"].append(full)
        memory = service.memory()
        for policy in POLICIES:
            tokens = _tokens(service, reader, memory, policy, turn[0]["content"])
            found.setdefault(policy["name"], []).append(tokens)
    return found


def _tokens(
    service: in_process.Service,
    reader: ReadPolicyContext,
    memory: WorkingMemory,
    policy: dict[str, Any],
    question: str,
) -> int | None:
    measure = Measure(COUNTER.count)
    if policy["name"] == "progressive":
        return service.context.assemble(memory, ContextRequest()).tokens.total
    try:
        view = reader.view(memory, measure, policy, ContextRequest(query=question))
    except BudgetTooSmallError:
        return None
    total: int = view["tokens"]["total"]
    return total


def _kit(memory: WorkingMemory, measure: Measure) -> PolicyKit:
    writer = SummaryWriter(None, PromptLibrary(), ExtractiveSummariser(COUNTER.count))
    return PolicyKit(
        estimator=ExactEstimator(measure.count),
        condenser=WriterCondenser(writer, memory.session.key, measure.count),
        defaults=SERVICE_DEFAULTS,
    )


def main() -> None:
    # The service in tests counts by bytes; here the figures have to be real ones.
    vars(in_process)["count_words"] = COUNTER.count
    conversations = read_conversations(Path(sys.argv[1]))
    wanted = sys.argv[2] if len(sys.argv) > 2 else None
    conversation = next(one for one in conversations if wanted in (None, one["id"]))
    json.dump(figures(turns_of(conversation)), sys.stdout)


if __name__ == "__main__":
    main()
