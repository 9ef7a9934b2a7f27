"""The invariants of the design as checks of one session, as seen from outside of the use cases.

What a check needs to know of the past is kept in a `Ledger`: what clients sent and were answered,
and what was seen before. The checks read the raw stores and do their own counting.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from support.service import count_words
from turnfold.application.read_context import ContextRequest
from turnfold.domain.errors import BudgetTooSmallError
from turnfold.domain.layouts import ALTERNATING
from turnfold.domain.measure import Measure
from turnfold.domain.messages import MEMORY_NAME, chat_form
from turnfold.domain.pins import PinStatus
from turnfold.domain.planner import next_step, pending_turns
from turnfold.domain.regions import first_turn, last_turn, split_regions
from turnfold.domain.tokens import count_messages
from turnfold.domain.turns import Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from support.service import Service
    from turnfold.domain.memory import WorkingMemory
    from turnfold.domain.messages import Message
    from turnfold.domain.sessions import Session, SessionKey


@dataclass
class Ledger:
    """What is known about one session apart from the service's own word."""

    sent: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Messages by marker; each marker is in the first user message of one request."""
    answered: dict[str, int] = field(default_factory=dict)
    """Turn number by marker, of acknowledged commits."""
    records: dict[tuple[int, str], bytes] = field(default_factory=dict)
    seen: Session | None = None
    prefixes: dict[object, tuple[int, str]] = field(default_factory=dict)


def check_all(service: Service, key: SessionKey, ledger: Ledger, others: Iterable[str]) -> None:
    """Every invariant that holds at any moment."""
    session, _ = service.raw_store.read_session(key, None)
    if session is None:
        assert not ledger.answered, "I4: an acknowledged session is gone"
        return
    memory = service.memory(key)
    check_i1_coverage(service, memory)
    check_i2_order(memory)
    committed = check_i4_archive(service, memory, ledger)
    check_i6_monotone(service, memory, ledger)
    check_i7_once(committed, ledger)
    check_i8_isolation(service, memory, committed, others)
    check_i11_verbatim(memory, committed)
    check_pins_agree(service, memory)
    check_contexts(service, memory, ledger)


def check_i1_coverage(service: Service, memory: WorkingMemory) -> None:
    """Every committed turn is represented exactly once, and nothing else is stored."""
    regions = split_regions(memory)
    covered = [turn.number for turn in (*regions.head, *regions.raw, *regions.tail)]
    for summary in regions.summaries:
        covered += range(summary.from_turn, summary.to_turn + 1)
    assert sorted(covered) == list(range(1, memory.session.committed_through + 1)), "I1"
    items = service.raw_store._sessions[memory.session.key]
    assert sorted(items.turns) == [turn.number for turn in memory.turns], "I1: stray turn items"
    assert set(items.summaries) == set(memory.session.manifest), "I1: stray summaries"


def check_i2_order(memory: WorkingMemory) -> None:
    """The window is contiguous, disjoint and ascending; summaries reach just to the watermark."""
    session = memory.session
    regions = split_regions(memory)
    reached = session.head_end
    for entry in regions.window:
        assert first_turn(entry) == reached + 1, "I2: a gap or an overlap"
        reached = last_turn(entry)
    assert reached + 1 == session.tail_start, "I2: the tail"
    assert max((ref.to_turn for ref in session.manifest), default=0) == session.compacted_through
    assert [one.ref for one in memory.summaries] == list(session.manifest), "I2: manifest"


def check_i4_archive(
    service: Service, memory: WorkingMemory, ledger: Ledger
) -> list[dict[str, Any]]:
    """One record that counts for each turn, byte-equal for good; the chain closes. The records."""
    session = memory.session
    stored = service.raw_archive.records_of(session.key)
    for name, raw in ledger.records.items():
        assert stored.get(name) == raw, "I4: a record changed or vanished"
    ledger.records = dict(stored)
    chain: list[dict[str, Any]] = []
    wanted = session.last_sha256
    for number in range(session.committed_through, 0, -1):
        found = []
        for (at, turn_id), raw in stored.items():
            if at != number:
                continue
            body = json.loads(raw)
            digest = body.pop("sha256")
            assert digest == hashlib.sha256(canonical(body)).hexdigest(), "I4: hash"
            assert (body["turn"], body["turn_id"]) == (number, turn_id), "I4: name"
            if digest == wanted:
                found.append(body)
        assert len(found) == 1, f"I4: {len(found)} records of turn {number} in the chain"
        wanted = found[0]["prev_sha256"]
        chain.append(found[0])
    assert wanted == "0" * 64, "I4: the chain does not close"
    chain.reverse()
    read = service.transcript.turns(session, 1, session.committed_through)
    for turn, body in zip(read, chain, strict=True):
        assert verbatim(turn.messages) == verbatim(body["messages"]), "I4: read"
    for body in chain:
        marker = marker_of(body["messages"])
        assert verbatim(body["messages"]) == verbatim(ledger.sent[marker]), "I4: not what was sent"
    return chain


def canonical(value: object) -> bytes:
    """Canonical JSON, written out here on purpose."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def verbatim(messages: Sequence[Message]) -> str:
    """Messages to compare with the order of their members."""
    return json.dumps([dict(one) for one in messages])


def marker_of(messages: Sequence[Message]) -> str:
    """The marker at the beginning of a turn's first user message."""
    user = next(one for one in messages if one["role"] == "user")
    return str(user["content"]).split(" ", 1)[0]


def check_i6_monotone(service: Service, memory: WorkingMemory, ledger: Ledger) -> None:
    """No counter goes back, and a turn that was there stays."""
    now, before = memory.session, ledger.seen
    if before is not None:
        assert before.epoch == now.epoch, "I6: another session"
        for name in (
            "revision",
            "next_turn",
            "judged_through",
            "compacted_through",
            "summary_rev",
            "pin_rev",
            "profile_rev",
        ):
            assert getattr(before, name) <= getattr(now, name), f"I6: {name} went back"
        visible = replace(now, due_at=before.due_at, sweeps=before.sweeps)
        assert visible == before or now.revision > before.revision, "I6: an unseen change"
    ledger.seen = now
    shown = service.context.working_memory(now.key)[1]["watermark"]
    assert shown["committed_through"] == now.committed_through, "I6"


def check_i7_once(committed: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """No request was committed twice, and every acknowledged one is where its answer said."""
    numbers: dict[str, int] = {}
    for body in committed:
        marker = marker_of(body["messages"])
        assert marker not in numbers, "I7: committed twice"
        numbers[marker] = body["turn"]
    for marker, number in ledger.answered.items():
        assert numbers.get(marker) == number, "I7: an acknowledged turn is not there"


def check_i8_isolation(
    service: Service,
    memory: WorkingMemory,
    committed: Sequence[dict[str, Any]],
    others: Iterable[str],
) -> None:
    """Nothing that another tenant said is in this session, and lists show only the own ones."""
    key = memory.session.key
    text = json.dumps([one["messages"] for one in committed], ensure_ascii=False)
    text += " ".join([*(one.text for one in memory.summaries), *(one.text for one in memory.pins)])
    for other in others:
        assert other not in text, "I8"
    page = service.sessions.list(key.tenant, None, 100, None)
    assert {one.key.tenant for one in page.items} == {key.tenant}, "I8"


def check_i11_verbatim(memory: WorkingMemory, committed: Sequence[dict[str, Any]]) -> None:
    """What stands word for word is what was committed."""
    for turn in memory.turns:
        body = committed[turn.number - 1]
        assert verbatim(turn.messages) == verbatim(body["messages"]), "I11"
        assert turn.turn_id == body["turn_id"], "I11"


def check_pins_agree(service: Service, memory: WorkingMemory) -> None:
    """Every pin is in the place of its status, and the session's counters know them."""
    session = memory.session
    items = service.raw_store._sessions[session.key]
    assert len(items.pins) == session.pin_count, "pins: count"
    assert not items.pins.keys() & items.former_pins.keys(), "pins: in two places"
    assert all(pin.status is PinStatus.ACTIVE for pin in items.pins.values()), "pins: status"
    former = items.former_pins.values()
    assert all(pin.status is not PinStatus.ACTIVE for pin in former), "pins: status"
    everything = (*items.pins.values(), *former)
    assert all(pin.rev <= session.pin_rev for pin in everything), "pins: revision"
    assert all(pin.tokens == count_words(pin.text) for pin in everything), "pins: tokens"


def check_contexts(service: Service, memory: WorkingMemory, ledger: Ledger) -> None:
    """The whole context, and one of a budget that depends on the state alone."""
    whole = service.context.view(memory, ContextRequest())
    check_i9_valid(whole["messages"])
    assert not whole["dropped"], "I1: dropped without a budget"
    assert not whole["elided"], "I11: elided without a budget"
    check_i14_prefix(memory, whole, ledger)
    assert context_of(service, memory, whole["tokens"]["total"])["messages"] == whole["messages"]
    total = whole["tokens"]["total"]
    chance = random.Random(memory.session.revision)
    check_i10_budget(service, memory, chance.randint(1, total + 1))
    check_alternating(service, memory, ledger)


def context_of(service: Service, memory: WorkingMemory, budget: int) -> dict[str, Any]:
    """A context of a budget."""
    return service.context.view(memory, ContextRequest(max_tokens=budget))


def check_i10_budget(service: Service, memory: WorkingMemory, budget: int) -> None:
    """A context within a budget: never over it, valid, in order, and open about what is missing."""
    try:
        view = context_of(service, memory, budget)
    except BudgetTooSmallError:
        return
    messages = view["messages"]
    assert 3 + count_messages(messages, count_words) == view["tokens"]["total"], "I10: total"
    assert view["tokens"]["total"] <= budget, "I10"
    check_i9_valid(messages)
    check_told(memory, view)


def check_told(memory: WorkingMemory, view: dict[str, Any]) -> None:
    """What is shown and what is dropped are all turns, each once; pins are dropped last."""
    regions = view["regions"]
    told = [one["turn"] for one in (*regions["head"], *regions["tail"])]
    for one in (*regions["window"], *view["dropped"]):
        told += range(one["from_turn"], one["to_turn"] + 1)
    assert sorted(told) == list(range(1, memory.session.committed_through + 1)), "I1: in a context"
    shown = [one["from_turn"] for one in regions["window"]]
    assert shown == sorted(shown), "I2: in a context"
    if view["dropped_pins"]:
        kept = len(regions["head"]) + len(regions["window"]) + len(regions["tail"])
        assert kept <= 1, "pins were dropped before turns"


def check_alternating(service: Service, memory: WorkingMemory, ledger: Ledger) -> None:
    """The alternating layout: the same turns and words, strictly by turns, within any budget."""
    whole = service.context.view(memory, ContextRequest(layout=ALTERNATING))
    check_alternates(whole["messages"])
    check_i9_valid(whole["messages"])
    check_i14_prefix(memory, whole, ledger, "alternating")
    total = whole["tokens"]["total"]
    budget = random.Random(memory.session.revision).randint(1, total + 1)
    try:
        view = service.context.view(memory, ContextRequest(budget, layout=ALTERNATING))
    except BudgetTooSmallError:
        return
    check_alternates(view["messages"])
    check_i9_valid(view["messages"])
    assert 3 + count_messages(view["messages"], count_words) == view["tokens"]["total"], "I10"
    assert view["tokens"]["total"] <= budget, "I10"
    check_told(memory, view)


def check_alternates(messages: Sequence[dict[str, Any]]) -> None:
    """User and assistant by turns, the user first; tool results follow the calls they answer."""
    said = "leading"
    for message in messages:
        role = message["role"]
        before, said = said, role
        if role in ("system", "developer"):
            assert before == "leading", "I9: a system message among the others"
            said = "leading"
        elif role == "user":
            assert before in ("leading", "assistant"), "I9: the user twice"
        elif role == "assistant":
            assert before in ("user", "tool"), "I9: the assistant twice, or first"
            said = "calls" if message.get("tool_calls") else role
        else:
            assert before in ("calls", "tool"), "I9: a result of no call"
    assert said != "calls", "I9: calls without results"


CHAT_MEMBERS = {"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio"}


def check_i9_valid(messages: Sequence[dict[str, Any]]) -> None:
    """A chat completions endpoint accepts the messages."""
    leading = True
    waiting: set[str] = set()
    for message in messages:
        role = message["role"]
        assert message.keys() <= CHAT_MEMBERS, "I9: unknown members"
        if leading and role not in ("system", "developer"):
            assert role == "user", "I9: does not start with a user message"
            leading = False
        if role == "tool":
            assert message["tool_call_id"] in waiting, "I9: a result without its call"
            waiting.discard(message["tool_call_id"])
        else:
            assert not waiting, "I9: a call without its result"
            waiting = {one["id"] for one in message.get("tool_calls") or ()}
        check_content(message)
    assert not waiting, "I9: a call without its result"
    if messages and not leading:
        # All turns may be head; then memory comes last.
        last = messages[-1]
        assert last["role"] == "assistant" or last.get("name") == MEMORY_NAME, "I9: the end"


def check_content(message: dict[str, Any]) -> None:
    """No content that a provider refuses."""
    content = message.get("content")
    if message["role"] == "assistant":
        assert content or message.get("tool_calls") or message.get("refusal"), "I9: empty"
        assert content != "" or not message.get("tool_calls"), "I9: empty text beside calls"
    elif message["role"] != "tool":
        assert content, "I9: empty"
    else:
        assert content is not None, "I9: empty"


def check_i14_prefix(
    memory: WorkingMemory, view: dict[str, Any], ledger: Ledger, layout: str = "openai"
) -> None:
    """Until the next compaction the messages before the raw middle stay the same bytes."""
    session = memory.session
    stable = view["cache"]["stable_messages"]
    digest = hashlib.sha256(canonical(view["messages"][:stable])).hexdigest()
    assert digest == view["cache"]["prefix_sha256"], "I14: the hash"
    if session.head_end < session.settings.head_size and not session.manifest:
        return
    state = (layout, session.summary_rev, session.pin_rev, session.profile_rev)
    before = ledger.prefixes.setdefault(state, (stable, digest))
    assert before == (stable, digest), "I14"


def check_i5_bounded(service: Service, key: SessionKey) -> None:
    """With nothing left to do the window is within its limits, and the session says so."""
    memory = service.memory(key)
    # A measure remembers turns by id, and each service begins with the same ids.
    measure = Measure(count_words)
    session, settings = memory.session, memory.session.settings
    assert next_step(memory, measure) is None, "I5: work is left"
    if not settings.auto_compression:
        return
    assert pending_turns(memory, measure) == 0, "I5: pending turns"
    # Due is only when the session expires, or would have, had it not been used since.
    assert session.due_at is not None, "I5: never due"
    rested_at = session.due_at - timedelta(days=settings.expire_days)
    assert session.created_at <= rested_at, "I5: still due"
    if settings.judges_pins:
        assert max(session.judged_through, session.compacted_through) == session.committed_through
    if "HISTORY_SUMMARIZATION" not in settings.strategies:
        return
    window = split_regions(memory).window
    size = sum(len(one.conversation) if isinstance(one, Turn) else 1 for one in window)
    tokens = sum(
        count_messages(map(chat_form, one.conversation), count_words)
        if isinstance(one, Turn)
        else count_words(one.text)
        for one in window
    )
    assert size <= settings.window_max_size, "I5: messages"
    assert tokens <= settings.window_token_threshold, "I5: tokens"
