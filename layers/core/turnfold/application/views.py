"""How sessions, turns, pins and contexts look in the contract (api.md)."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from turnfold.domain.context import Context
from turnfold.domain.elision import Elision
from turnfold.domain.measure import Measure
from turnfold.domain.memory import WorkingMemory
from turnfold.domain.pins import Pin
from turnfold.domain.planner import pending_turns
from turnfold.domain.regions import split_regions
from turnfold.domain.sessions import Session, SessionStatus
from turnfold.domain.summaries import Summary
from turnfold.domain.transcript import format_time
from turnfold.domain.turns import Turn


def watermark_view(session: Session, pending: int) -> dict[str, Any]:
    """How far commits and background work have come."""
    return {
        "committed_through": session.committed_through,
        "judged_through": session.judged_through,
        "compacted_through": session.compacted_through,
        "pending_turns": pending,
        "degraded": session.degraded or session.rejudge is not None,
    }


def listed_session_view(session: Session) -> dict[str, Any]:
    """A session as a list shows it: what its own counters say."""
    return {
        "session_id": session.key.session_id,
        "user_id": session.user_id,
        "status": (SessionStatus.EXPIRED if session.is_away else session.status).value,
        "turns": session.committed_through,
        "created_at": format_time(session.created_at),
        "updated_at": format_time(session.updated_at),
        "expires_at": format_time(session.expires_at),
    }


def session_view(memory: WorkingMemory, measure: Measure) -> dict[str, Any]:
    """A session with settings and watermark. `tokens` are bounds by region, never too low."""
    session = memory.session
    return listed_session_view(session) | {
        "metadata": dict(memory.profile.metadata),
        "legal_hold": session.legal_hold,
        "system": [dict(one) for one in memory.profile.system],
        "settings": session.settings.to_json(),
        "watermark": watermark_view(session, pending_turns(memory, measure)),
        "tokens": region_bounds(memory),
    }


def region_bounds(memory: WorkingMemory) -> dict[str, int]:
    """An upper bound of each region's tokens that needs no tokenizer."""
    regions = split_regions(memory)
    sizes = {
        "head": sum(one.byte_bound for one in regions.head),
        "window": sum(
            one.tokens if isinstance(one, Summary) else one.byte_bound for one in regions.window
        ),
        "tail": sum(one.byte_bound for one in regions.tail),
        "pins": sum(pin.tokens for pin in memory.pins),
    }
    return sizes | {"total": sum(sizes.values())}


def turn_view(turn: Turn) -> dict[str, Any]:
    """A turn word for word, with its place in the hash chain."""
    return {
        "turn": turn.number,
        "turn_id": turn.turn_id,
        "committed_at": format_time(turn.committed_at),
        "messages": [dict(one) for one in turn.messages],
        "sha256": turn.sha256,
        "prev_sha256": turn.prev_sha256,
    }


def pin_view(pin: Pin) -> dict[str, Any]:
    """A pin with its provenance."""
    return {
        "pin_id": pin.pin_id,
        "text": pin.text,
        "status": pin.status.value,
        "confidence": pin.confidence,
        "trust": pin.trust.value,
        "sources": [{"turn": number} for number in pin.sources],
        "created_at": format_time(pin.created_at),
        "updated_at": format_time(pin.updated_at),
        "replaces": pin.replaces,
        "folded_from": list(pin.folded_from),
        "tokens": pin.tokens,
        "reason": pin.reason,
    }


def window_view(entry: Summary | Turn, measure: Measure) -> dict[str, Any]:
    """A window entry; the text of a raw turn is in the messages."""
    if isinstance(entry, Turn):
        return {
            "kind": "raw",
            "from_turn": entry.number,
            "to_turn": entry.number,
            "level": 0,
            "text": "",
            "tokens": measure.tokens(entry),
            "degraded": False,
        }
    return {
        "kind": entry.kind.value,
        "from_turn": entry.from_turn,
        "to_turn": entry.to_turn,
        "level": entry.level,
        "text": entry.text,
        "tokens": entry.tokens,
        "degraded": entry.degraded,
        "source_tokens": entry.source_tokens,
        "model": entry.model,
        "prompt_version": entry.prompt_version,
    }


def elided_view(turn: int, part: Elision) -> dict[str, int]:
    """What was left out of one message of a turn."""
    return {"turn": turn, "message": part.message, "characters": part.characters}


def context_view(memory: WorkingMemory, context: Context, measure: Measure) -> dict[str, Any]:
    """An assembled context."""
    session = memory.session
    elided = context.elided
    return {
        "session_id": session.key.session_id,
        "generation": session.revision,
        "messages": [dict(one) for one in context.messages],
        "regions": {
            "system": [dict(one) for one in context.system],
            "head": [{"turn": turn.number} for turn in context.head],
            "pins": [{"pin_id": pin.pin_id, "text": pin.text} for pin in context.pins],
            "window": [window_view(one, measure) for one in context.window],
            "recall": [{"turn": one.turn.number, "score": one.score} for one in context.recall],
            "tail": [{"turn": turn.number} for turn in context.tail],
        },
        "tokens": asdict(context.tokens),
        "dropped": [asdict(one) | {"reason": "budget"} for one in context.dropped],
        "dropped_pins": list(context.dropped_pins),
        "elided": [elided_view(elided.turn, part) for part in elided.parts] if elided else [],
        "cache": {
            "stable_messages": context.stable_messages,
            "prefix_sha256": context.prefix_sha256,
        },
        "watermark": watermark_view(session, pending_turns(memory, measure)),
    }


def working_memory_view(memory: WorkingMemory, measure: Measure) -> dict[str, Any]:
    """All of working memory with full texts, for people."""
    regions = split_regions(memory)

    def entry(one: Summary | Turn) -> Mapping[str, Any]:
        shown = window_view(one, measure)
        return shown | turn_view(one) if isinstance(one, Turn) else shown

    return {
        "session_id": memory.session.key.session_id,
        "system": [dict(one) for one in memory.profile.system],
        "head": [turn_view(turn) for turn in regions.head],
        "window": [entry(one) for one in regions.window],
        "tail": [turn_view(turn) for turn in regions.tail],
        "pins": [pin_view(pin) for pin in memory.pins],
        "watermark": watermark_view(memory.session, pending_turns(memory, measure)),
        "generation": memory.session.revision,
    }
