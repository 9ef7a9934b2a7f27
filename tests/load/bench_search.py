"""Searches in sessions of 500 and 5,000 turns: AWS calls and time, first and afterwards.

    python tests/load/bench_search.py [--turns 500 5000]

Runs the use cases and the real adapters on moto in this process. The sessions are indexed and
nearly all of their turns are folded, as after a long life. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moto import mock_aws

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "layers" / "core"), str(ROOT / "tests"), str(ROOT)]

from support.aws import Services, aws_environment, make_services
from support.sessions import START, a_session, a_summary, a_turn
from turnfold.adapters.dynamo_memory import DynamoMemoryStore
from turnfold.adapters.s3_archive import S3Archive
from turnfold.adapters.s3_recall_index import S3RecallIndex
from turnfold.application.index_session import IndexSession
from turnfold.application.live_pieces import LivePieces
from turnfold.application.piece_vectors import PieceVectors
from turnfold.application.ports.memory import Change
from turnfold.application.read_index import IndexCaches, ReadIndex
from turnfold.application.read_transcript import Transcript
from turnfold.application.recall import Recall
from turnfold.application.search_session import SearchSession
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from turnfold.application.ports.archive import Archive
    from turnfold.application.ports.memory import MemoryStore
    from turnfold.domain.turns import Turn

VOCABULARY = [f"word{number}" for number in range(4000)]
WORDS_OF_A_TURN = 60
SEARCHES = 40
NEWEST = 4
"""Turns that stand word for word in working memory beside the head."""


def text(rng: random.Random) -> str:
    """Words as frequent as in a language: the n-th about 1/n of the first."""
    weights = [1 / (rank + 5) for rank in range(len(VOCABULARY))]
    return " ".join(rng.choices(VOCABULARY, weights, k=WORDS_OF_A_TURN // 2))


def seed(store: MemoryStore, archive: Archive, key: SessionKey, turns: int) -> None:
    """A session as it is after that many turns."""
    rng = random.Random(turns)
    made: list[Turn] = []
    for number in range(1, turns + 1):
        prev = made[-1].sha256 if made else "0" * 64
        turn, record = a_turn(number, text(rng), text(rng), prev=prev)
        archive.put_record(key, number, turn.turn_id, record)
        made.append(turn)
    summary = a_summary(2, turns - NEWEST, level=2)
    session = a_session(
        key,
        next_turn=turns + 1,
        judged_through=turns,
        compacted_through=turns - NEWEST,
        manifest=(summary.ref,),
        last_sha256=made[-1].sha256,
    )
    store.write(Change(key=key, creates=session, summaries=(summary,)))
    for turn in (made[0], *made[-NEWEST:]):
        store.write(Change(key=key, epoch=session.epoch, turn=turn))


def measure(services: Services, turns: int) -> dict[str, Any]:
    """Index the session, search it by a process that knows nothing of it, and then again."""
    archive = S3Archive(services.s3, services.bucket)
    store = DynamoMemoryStore(services.dynamodb, services.table, archive, lambda: START)
    transcript = Transcript(archive)
    index = S3RecallIndex(services.s3, services.bucket)
    key = SessionKey("bench", f"s{turns}")
    seed(store, archive, key, turns)
    started = time.perf_counter()
    pieces = LivePieces(store, index)
    vectors = PieceVectors(pieces, IndexCaches().vectors)
    IndexSession(pieces, transcript, vectors)(key)
    indexing = time.perf_counter() - started

    search = SearchSession(store, Recall(ReadIndex(transcript, index), vectors))
    rng = random.Random(0)
    queries = [" ".join(rng.choices(VOCABULARY[20:], k=6)) for _ in range(SEARCHES)]
    with services.counted_calls() as first:
        started = time.perf_counter()
        search(key, queries[0])
        first_seconds = time.perf_counter() - started
    calls: list[int] = []
    seconds: list[float] = []
    kinds: Counter[str] = Counter()
    for query in queries[1:]:
        with services.counted_calls() as counted:
            started = time.perf_counter()
            found = search(key, query)
            seconds.append(time.perf_counter() - started)
        assert found["items"]
        calls.append(sum(counted.values()))
        kinds.update(counted)
    return {
        "turns": turns,
        "index_seconds": round(indexing, 2),
        "first_search": {"calls": dict(first), "ms": round(first_seconds * 1000, 1)},
        "searches": len(seconds),
        "calls_at_most": max(calls),
        "calls": dict(kinds),
        "median_ms": round(statistics.median(seconds) * 1000, 2),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, nargs="+", default=[500, 5000])
    sizes = parser.parse_args().turns
    with aws_environment(None), mock_aws():
        services = make_services(None)
        measured = [measure(services, turns) for turns in sizes]
    ratio = measured[-1]["median_ms"] / measured[0]["median_ms"]
    print(json.dumps({"sessions": measured, "time_ratio": round(ratio, 2)}, indent=1))


if __name__ == "__main__":
    main()
