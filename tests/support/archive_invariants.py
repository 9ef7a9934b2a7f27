"""The invariants where sessions are rolled up, put away, made anew and erased."""

from __future__ import annotations

import gzip
import hashlib
import json
from typing import TYPE_CHECKING, Any

from support.invariants import (
    canonical,
    check_i1_coverage,
    check_i2_order,
    check_i7_once,
    check_i11_verbatim,
    check_pins_agree,
    marker_of,
    verbatim,
)
from turnfold.adapters.in_memory_snapshots import InMemorySnapshots
from turnfold.application.restore import Restore
from turnfold.domain.segments import unpack_segment
from turnfold.domain.sessions import SessionStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from support.archive_service import ArchiveService
    from support.invariants import Ledger
    from turnfold.domain.memory import WorkingMemory
    from turnfold.domain.sessions import Session, SessionKey

NEVER_BACK = ("revision", "next_turn", "summary_rev", "pin_rev", "profile_rev", "archived_through")


def check_archived(
    service: ArchiveService, key: SessionKey, ledger: Ledger, gone: Iterable[str]
) -> None:
    """Every invariant that holds at any moment, in whatever state a session is."""
    session, _ = service.raw_store.read_session(key, None)
    if session is None:
        assert not ledger.answered, "I4: an acknowledged session is gone"
        check_i12_gone(service, key, gone)
        return
    if session.status is SessionStatus.ERASING:
        return
    check_i12_gone(service, key, gone)
    committed = check_i4_chain(service, session, ledger)
    check_i7_once(committed, ledger)
    check_monotone(session, ledger)
    if session.status is SessionStatus.REBUILDING:
        return
    memory = stands_for(service, session)
    if session.status is SessionStatus.LIVE:
        check_i1_coverage(service, memory)
        check_pins_agree(service, memory)
    check_i2_order(memory)
    check_i11_verbatim(memory, committed)


def stands_for(service: ArchiveService, session: Session) -> WorkingMemory:
    """The working memory, in the table or in its snapshot; nothing is brought back by looking."""
    if not session.is_away:
        return service.memory(session.key)
    look = Restore(service.raw_shelf, InMemorySnapshots(service.bucket), service.clock)
    memory = look.peek(session)
    assert memory is not None, "I4: the snapshot is not there"
    return memory


def check_i4_chain(
    service: ArchiveService, session: Session, ledger: Ledger
) -> list[dict[str, Any]]:
    """One record for each turn, in a segment or by itself, byte-equal for good. The records."""
    stored = dict(service.raw_archive.records_of(session.key))
    for segment in service.raw_archive.list_segments(session.key):
        data = service.raw_archive.get_segment(session.key, segment) or b""
        for raw in unpack_segment(data, segment):
            body = json.loads(raw)
            stored[body["turn"], body["turn_id"]] = raw
    chain: list[dict[str, Any]] = []
    raws: dict[tuple[int, str], bytes] = {}
    wanted = session.last_sha256
    for number in range(session.committed_through, 0, -1):
        found = []
        for (at, turn_id), raw in stored.items():
            if at != number:
                continue
            body = json.loads(raw)
            digest = body.pop("sha256")
            assert digest == hashlib.sha256(canonical(body)).hexdigest(), "I4: hash"
            if digest == wanted:
                found.append(body)
                raws[number, turn_id] = raw
        assert len(found) == 1, f"I4: {len(found)} records of turn {number} in the chain"
        wanted = found[0]["prev_sha256"]
        chain.append(found[0])
    assert wanted == "0" * 64, "I4: the chain does not close"
    chain.reverse()
    for name, raw in ledger.records.items():
        assert raws.get(name) == raw, "I4: a record changed or vanished"
    ledger.records = raws
    read = service.transcript.turns(session, 1, session.committed_through)
    assert [turn.number for turn in read] == list(range(1, len(chain) + 1)), "I4: missing or double"
    for turn, body in zip(read, chain, strict=True):
        assert verbatim(turn.messages) == verbatim(body["messages"]), "I4: read"
        marker = marker_of(body["messages"])
        assert verbatim(body["messages"]) == verbatim(ledger.sent[marker]), "I4: not what was sent"
    return chain


def check_monotone(session: Session, ledger: Ledger) -> None:
    """No counter goes back within one life of a session."""
    before = ledger.seen
    if before is not None and before.epoch == session.epoch:
        for name in NEVER_BACK:
            assert getattr(before, name) <= getattr(session, name), f"I6: {name} went back"
    ledger.seen = session


def check_i12_gone(service: ArchiveService, key: SessionKey, gone: Iterable[str]) -> None:
    """Nothing that was erased is anywhere."""
    words = tuple(gone)
    if not words:
        return
    store = service.raw_store
    everything = str((store.sessions.get(key), store.answers.get(key)))
    for name in {one.name for one in service.bucket.list_versions(key, 10**6)}:
        data = service.bucket.get(name) or b""
        plain = gzip.decompress(data) if name.endswith(".gz") else data
        everything += plain.decode("utf-8", "replace")
    for word in words:
        assert word not in everything, f"I12: {word} is still there"
