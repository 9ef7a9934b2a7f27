"""What every `MemoryStore` promises."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from contract.conftest import MINISTACK, MOTO, Stores
from support.sessions import (
    A_USAGE,
    START,
    a_pin,
    a_record,
    a_session,
    a_summary,
    a_turn,
    big_text,
)
from turnfold.adapters.dynamo_keys import shard_of
from turnfold.application.ports.memory import Change
from turnfold.application.ports.models import ModelAnswer
from turnfold.domain.errors import GuardFailedError, InvalidCursorError
from turnfold.domain.limits import DUE_SHARDS, MAX_INLINE_TURN_BYTES
from turnfold.domain.pins import PinStatus
from turnfold.domain.sessions import (
    Profile,
    Session,
    SessionKey,
    SessionStatus,
    SummaryRef,
    TurnRange,
)
from turnfold.domain.settings import Settings

if TYPE_CHECKING:
    from turnfold.domain.turns import Turn

pytestmark = pytest.mark.parametrize("backend", ["in-memory", MOTO, MINISTACK])

ODD_IDS = [
    "a#b",
    "a%23b",
    "a%b",
    "a/b",
    "a%2Fb",
    "../x",
    "..",
    "#",
    "S#x",
    "👩🏽‍🚀",
    "e\u0301",
    "\u00e9",
    "a b",
    " a",
    "漢" * 256,
    "👩" * 256,
    "#" * 256,
]


def live_session(stores: Stores, key: SessionKey) -> Session:
    session, _ = stores.store.read_session(key, None)
    assert session is not None
    return session


def failed_parts(stores: Stores, change: Change) -> set[str]:
    with pytest.raises(GuardFailedError) as caught:
        stores.store.write(change)
    return set(caught.value.failed)


# ----------------------------------------------------------------------------------- what is stored


def test_an_unknown_session_is_none(stores: Stores) -> None:
    assert stores.store.read_session(stores.key(), "k1") == (None, None)
    assert stores.store.load(stores.key()) is None
    assert stores.store.get_turn(stores.key(), 1) is None
    assert stores.store.get_pin(stores.key(), "p1") is None
    assert stores.store.get_model_answer(stores.key(), "step") is None


def test_every_field_of_a_session_comes_back(stores: Stores) -> None:
    session = a_session(
        stores.key(),
        settings=Settings(
            policy={"name": "composite", "policies": [{"name": "token_limit", "token_ratio": 0.5}]},
            head_size=3,
            strategies=("PIN_JUDGMENT",),
            model="gpt-4",
        ),
        user_id="u#1",
        next_turn=12,
        judged_through=7,
        compacted_through=5,
        manifest=(SummaryRef(2, 4, 2), SummaryRef(5, 5, 1)),
        degraded=True,
        rejudge=TurnRange(2, 3),
        pins_settled_rev=5,
        revision=40,
        summary_rev=3,
        pin_rev=2,
        pin_count=1,
        profile_rev=4,
        system_sha256="ab",
        last_sha256="cd",
        due_at=START + timedelta(seconds=1),
        sweeps=2,
        archived_through=9,
        snapshot="snapshot",
        restored_at=START,
        legal_hold=True,
        erasure_id="e",
        erasing_since=START,
        rebuild=True,
    )
    default = a_session(stores.key())
    same = [
        one.name
        for one in fields(Session)
        if getattr(session, one.name) == getattr(default, one.name)
    ]
    assert set(same) == {"key", "epoch", "created_at", "updated_at", "status"}
    stores.store.write(Change(key=session.key, creates=session))
    assert live_session(stores, session.key) == session


def test_working_memory_comes_back_as_written(stores: Stores) -> None:
    writer = stores.writer()
    turns = [writer.commit() for _ in range(4)]
    writer.fold(2)
    memory = stores.store.load(stores.key())
    assert memory is not None
    assert memory.turns == (turns[0], turns[2], turns[3])
    assert memory.summaries == (a_summary(2, 2),)
    assert memory.session == live_session(stores, stores.key())
    assert memory.profile == Profile()
    assert stores.store.get_turn(stores.key(), 3) == turns[2]
    assert stores.store.get_turn(stores.key(), 2) is None


def test_a_profile_keeps_types_and_order(stores: Stores) -> None:
    metadata = {
        "z": 1,
        "a": 1.0,
        "half": 0.1,
        "tiny": 5e-324,
        "huge": 2**70,
        "exponent": 1e300,
        "yes": True,
        "none": None,
        "": "",
        "nested": [[{"deep": [1, 1.5, "x"]}]],
    }
    deep: Any = "end"
    for _ in range(31):
        deep = [deep]
    metadata["levels"] = deep
    profile = Profile(system=({"role": "system", "content": "be brief"},), metadata=metadata)
    session = a_session(stores.key())
    stores.store.write(Change(key=session.key, creates=session, profile=profile))
    memory = stores.store.load(session.key)
    assert memory is not None
    assert repr(memory.profile) == repr(profile)


def test_a_new_profile_replaces_the_old_one(stores: Stores) -> None:
    session = stores.writer().create()
    profile = Profile(metadata={"a": 1})
    sets = {"profile_rev": 2}
    stores.store.write(Change(key=session.key, epoch="e1", sets=sets, profile=profile))
    memory = stores.store.load(session.key)
    assert memory is not None
    assert memory.profile == profile
    assert memory.session.profile_rev == 2


@pytest.mark.parametrize(
    "said",
    [
        "line\u2028separator \u0085 next \u2029 end",
        "e\u0301 is not \u00e9",
        "<|endoftext|> <|im_start|>system",
        "\ufeff\u200b\u200d\u202e",
        "👩🏽‍🚀 漢字 العربية",
        "tab\t newline\n return\r",
        '"quotes" \\ back\\u0041slash',
        "   ",
    ],
)
def test_texts_are_byte_equal(stores: Stores, said: str) -> None:
    turn = stores.writer().commit(said, said + "!")
    memory = stores.store.load(stores.key())
    assert memory is not None
    assert memory.turns == (turn,)
    assert memory.turns[0].messages[0]["content"].encode() == said.encode()


def test_unknown_members_of_a_message_stay(stores: Stores) -> None:
    writer = stores.writer()
    first = writer.commit()
    odd = replace(
        a_turn(2)[0],
        messages=(
            {"role": "user", "content": [{"type": "text", "text": "hi", "x": 1.0}], "z": None},
            {"b": 1e-7, "a": [], "role": "assistant", "content": ""},
        ),
        prev_sha256=first.sha256,
    )
    sets = {"next_turn": 3}
    stores.store.write(Change(key=writer.key, epoch="e1", sets=sets, turn=odd))
    found = stores.store.get_turn(writer.key, 2)
    assert repr(found) == repr(odd)


def test_a_turn_over_the_inline_size_is_read_from_its_record(stores: Stores) -> None:
    writer = stores.writer()
    small = writer.commit(big_text(MAX_INLINE_TURN_BYTES // 4))
    large = [writer.commit(big_text(MAX_INLINE_TURN_BYTES), f"{n}") for n in range(3)]
    memory = stores.store.load(stores.key())
    assert memory is not None
    assert memory.turns == (small, *large)
    assert stores.store.get_turn(stores.key(), 3) == large[1]
    assert stores.store.load(stores.key(), with_turns=False) == replace(memory, turns=())


def test_memory_of_several_query_pages_is_whole(stores: Stores) -> None:
    writer = stores.writer()
    text = big_text(20_000)
    turns = [writer.commit(f"{number} {text}") for number in range(40)]
    memory = stores.store.load(stores.key())
    assert memory is not None
    assert memory.turns == tuple(turns)
    assert stores.store.load(stores.key(), with_turns=False) == replace(memory, turns=())


def test_callers_cannot_reach_into_the_store(stores: Stores) -> None:
    metadata: dict[str, Any] = {"list": [1]}
    session = a_session(stores.key())
    profile = Profile(metadata=metadata)
    stores.store.write(Change(key=session.key, creates=session, profile=profile))
    metadata["list"].append(2)
    memory = stores.store.load(session.key)
    assert memory is not None
    memory.profile.metadata["list"].append(3)
    again = stores.store.load(session.key)
    assert again is not None
    assert again.profile.metadata == {"list": [1]}


# ----------------------------------------------------------------------------------------- guards


def test_a_session_is_created_once(stores: Stores) -> None:
    session = stores.writer().create()
    other = Change(key=session.key, creates=replace(session, epoch="e2"), turn=a_turn(1)[0])
    assert failed_parts(stores, other) == {"session"}
    assert live_session(stores, session.key).epoch == "e1"
    assert stores.store.get_turn(session.key, 1) is None


def test_a_change_needs_a_session(stores: Stores) -> None:
    change = Change(key=stores.key(), epoch="e1", sets={"judged_through": 1})
    assert failed_parts(stores, change) == {"session"}
    assert stores.store.read_session(stores.key(), None) == (None, None)


GUARDS: dict[str, tuple[Any, Any]] = {
    # Field: its value in the session, another value.
    "next_turn": (5, 4),
    "judged_through": (2, 3),
    "compacted_through": (1, 0),
    "manifest": ((SummaryRef(1, 1, 1),), (SummaryRef(1, 1, 2),)),
    "summary_rev": (3, 2),
    "pin_rev": (4, 5),
    "profile_rev": (7, 6),
    "degraded": (True, False),
    "rejudge": (TurnRange(1, 2), None),
    "due_at": (START, START + timedelta(microseconds=1)),
    "user_id": (None, "u"),
    "settings": (Settings(tail_size=3), Settings()),
    "last_sha256": ("ab", "ac"),
    "revision": (9, 8),
    "updated_at": (START, START + timedelta(days=1)),
}


@pytest.mark.parametrize("name", GUARDS)
def test_every_guard_holds(stores: Stores, name: str) -> None:
    value, other = GUARDS[name]
    session = a_session(stores.key(), **{name: value})
    stores.store.write(Change(key=session.key, creates=session))
    turn, _ = a_turn(7)
    change = Change(
        key=session.key, epoch="e1", guards={name: other}, sets={"sweeps": 1}, turn=turn
    )
    assert failed_parts(stores, change) == {"session"}
    assert live_session(stores, session.key) == session
    assert stores.store.get_turn(session.key, 7) is None
    stores.store.write(replace(change, guards={name: value}))
    assert live_session(stores, session.key).sweeps == 1
    assert stores.store.get_turn(session.key, 7) == turn


@pytest.mark.parametrize("name", ["next_turn", "due_at"])
def test_a_guard_holds_where_only_the_session_changes(stores: Stores, name: str) -> None:
    value, other = GUARDS[name]
    session = stores.writer().create(**{name: value})
    change = Change(key=session.key, epoch="e1", guards={name: other}, sets={"sweeps": 1})
    assert failed_parts(stores, change) == {"session"}
    stores.store.write(replace(change, guards={name: value}))
    assert live_session(stores, session.key).sweeps == 1


def test_another_epoch_is_refused(stores: Stores) -> None:
    session = stores.writer().create()
    change = Change(key=session.key, epoch="e0", sets={"sweeps": 1})
    assert failed_parts(stores, change) == {"session"}
    assert failed_parts(stores, replace(change, turn=a_turn(1)[0])) == {"session"}


def test_an_erasing_session_refuses_writes(stores: Stores) -> None:
    writer = stores.writer()
    writer.commit()
    key = writer.key
    erasing = {"status": SessionStatus.ERASING}
    stores.store.write(Change(key=key, epoch="e1", sets=erasing))
    before = live_session(stores, key)
    assert before.status is SessionStatus.ERASING
    assert failed_parts(stores, Change(key=key, epoch="e1", sets={"sweeps": 1})) == {"session"}
    assert failed_parts(stores, Change(key=key, epoch="e1", turn=a_turn(2)[0])) == {"session"}
    assert failed_parts(stores, Change(key=key, creates=a_session(key))) == {"session"}
    answer = ModelAnswer("text", "stop", "m")
    stores.store.put_model_answer(key, "step", answer, START + timedelta(days=1), "e1", A_USAGE)
    assert stores.store.get_model_answer(key, "step") is None
    assert live_session(stores, key) == before
    assert stores.store.load(key) is not None


def test_a_turn_is_put_once(stores: Stores) -> None:
    writer = stores.writer()
    first = writer.commit()
    again = Change(key=writer.key, epoch="e1", sets={"next_turn": 9}, turn=a_turn(1, "other")[0])
    assert failed_parts(stores, again) == {"turn"}
    assert live_session(stores, writer.key).next_turn == 2
    assert stores.store.get_turn(writer.key, 1) == first


def test_all_failed_parts_are_named(stores: Stores) -> None:
    writer = stores.writer()
    writer.commit()
    change = Change(key=writer.key, epoch="e1", turn=a_turn(2)[0], idempotency=a_record())
    stores.store.write(change)
    assert failed_parts(stores, change) == {"turn", "idempotency"}
    stale = replace(change, guards={"next_turn": 1})
    assert failed_parts(stores, stale) == {"session", "turn", "idempotency"}


def test_revision_counts_the_visible_changes(stores: Stores) -> None:
    session = stores.writer().create()
    change = Change(key=session.key, epoch="e1", sets={"sweeps": 1})
    stores.store.write(change)
    assert live_session(stores, session.key).revision == 2
    stores.store.write(replace(change, sets={"sweeps": 2}, visible=False))
    stores.store.write(replace(change, sets={}, visible=False, amends=a_record()))
    after = live_session(stores, session.key)
    assert (after.revision, after.sweeps) == (2, 2)
    stores.store.write(replace(change, turn=a_turn(1)[0]))
    assert live_session(stores, session.key).revision == 3


def test_a_field_can_be_set_to_none(stores: Stores) -> None:
    session = stores.writer().create(due_at=START, rejudge=TurnRange(1, 1))
    sets = {"due_at": None, "rejudge": None}
    stores.store.write(Change(key=session.key, epoch="e1", sets=sets))
    after = live_session(stores, session.key)
    assert (after.due_at, after.rejudge) == (None, None)


def test_a_change_of_over_a_hundred_items_is_refused(stores: Stores) -> None:
    writer = stores.writer()
    for _ in range(3):
        writer.commit()
    change = Change(key=writer.key, epoch="e1", removes_turns=tuple(range(1, 100)))
    with pytest.raises(ValueError, match="100"):
        stores.store.write(replace(change, removes_turns=tuple(range(1, 101))))
    assert stores.store.get_turn(writer.key, 1) is not None
    stores.store.write(change)
    assert stores.store.get_turn(writer.key, 1) is None


@pytest.mark.parametrize(
    "change",
    [
        {"sets": {"revision": 3}},
        {"sets": {"created_at": START}},
        {"sets": {"epoch": "e2"}},
        {"sets": {"no_such_field": 1}},
        {"guards": {"no_such_field": 1}},
        {"profile": Profile()},
        {"sets": {"profile_rev": 3}},
        {"idempotency": a_record(), "amends": a_record()},
    ],
)
def test_a_change_that_makes_no_sense_is_refused(stores: Stores, change: dict[str, Any]) -> None:
    session = stores.writer().create()
    with pytest.raises(ValueError, match="change"):
        stores.store.write(Change(key=session.key, epoch="e1", **change))


# ------------------------------------------------------------------------------ summaries and pins


def test_a_summary_of_the_same_coverage_is_replaced(stores: Stores) -> None:
    writer = stores.writer()
    for _ in range(3):
        writer.commit()
    writer.fold(2)
    better = a_summary(2, 2, text="better")
    change = Change(
        key=writer.key, epoch="e1", summaries=(better,), removes_summaries=(better.ref,)
    )
    stores.store.write(change)
    memory = stores.store.load(writer.key)
    assert memory is not None
    assert memory.summaries == (better,)


def test_pins_live_apart_by_status(stores: Stores) -> None:
    session = stores.writer().create()
    key = session.key
    active, other = a_pin("p1"), a_pin("p2", confidence=0.123456789012345678)
    held = a_pin("p3", PinStatus.QUARANTINED, reason="an instruction", replaces="p0")
    put = Change(
        key=key, epoch="e1", sets={"pin_count": 2, "pin_rev": 1}, pins=(active, other, held)
    )
    stores.store.write(put)
    memory = stores.store.load(key)
    assert memory is not None
    assert memory.pins == (active, other)
    assert stores.store.get_pin(key, "p2") == other
    assert stores.store.get_pin(key, "p3") == held

    folded = replace(active, status=PinStatus.FOLDED, rev=2)
    joined = a_pin("p4", folded_from=("p1", "p2"), rev=2)
    gone = ("p2",)
    sets = {"pin_count": 1, "pin_rev": 2}
    fold = Change(key=key, epoch="e1", sets=sets, pins=(folded, joined), removes_pins=gone)
    stores.store.write(fold)
    memory = stores.store.load(key)
    assert memory is not None
    assert memory.pins == (joined,)
    assert stores.store.get_pin(key, "p1") == folded
    assert stores.store.get_pin(key, "p2") is None
    assert stores.store.list_former_pins(key, PinStatus.FOLDED, 10, None).items == (folded,)

    back = replace(folded, status=PinStatus.ACTIVE, rev=3)
    sets = {"pin_count": 2, "pin_rev": 3}
    stores.store.write(Change(key=key, epoch="e1", sets=sets, pins=(back,)))
    assert stores.store.list_former_pins(key, PinStatus.FOLDED, 10, None).items == ()
    memory = stores.store.load(key)
    assert memory is not None
    assert memory.pins == (back, joined)


def test_pins_of_any_status_can_be_removed(stores: Stores) -> None:
    session = stores.writer().create()
    pins = (a_pin("p1"), a_pin("p2", PinStatus.INVALIDATED))
    stores.store.write(
        Change(key=session.key, epoch="e1", sets={"pin_count": 1, "pin_rev": 1}, pins=pins)
    )
    sets = {"pin_count": 0, "pin_rev": 2}
    gone = ("p1", "p2", "p9")
    stores.store.write(Change(key=session.key, epoch="e1", sets=sets, removes_pins=gone))
    assert stores.store.get_pin(session.key, "p1") is None
    assert stores.store.get_pin(session.key, "p2") is None


def test_former_pins_are_listed_in_pages_oldest_first(stores: Stores) -> None:
    key = stores.writer().create().key
    statuses = (PinStatus.FOLDED, PinStatus.INVALIDATED)
    pins = tuple(a_pin(f"p{n:02d}", statuses[n % 2]) for n in range(15))
    stores.store.write(Change(key=key, epoch="e1", pins=pins))
    found: list[str] = []
    position: str | None = None
    for _ in range(20):
        page = stores.store.list_former_pins(key, PinStatus.FOLDED, 4, position)
        assert len(page.items) <= 4
        found += [pin.pin_id for pin in page.items]
        position = page.next_position
        if position is None:
            break
    assert found == [pin.pin_id for pin in pins if pin.status is PinStatus.FOLDED]
    assert position is None


# ------------------------------------------------------------------------ records that expire


def test_an_idempotency_record_is_put_once(stores: Stores) -> None:
    session = stores.writer().create()
    record = a_record()
    change = Change(key=session.key, epoch="e1", sets={"sweeps": 1}, idempotency=record)
    stores.store.write(change)
    assert stores.store.read_session(session.key, "k1")[1] == record
    assert repr(stores.store.read_session(session.key, "k1")[1]) == repr(record)
    assert failed_parts(stores, replace(change, sets={"sweeps": 2})) == {"idempotency"}
    assert live_session(stores, session.key).sweeps == 1
    assert stores.store.read_session(session.key, "k2")[1] is None


def test_an_expired_idempotency_record_counts_as_absent(stores: Stores) -> None:
    session = stores.writer().create()
    change = Change(key=session.key, epoch="e1", sets={"sweeps": 1}, idempotency=a_record())
    stores.store.write(change)
    stores.clock.advance(2 * 24 * 3600 - 0.000001)
    assert stores.store.read_session(session.key, "k1")[1] is not None
    assert failed_parts(stores, change) == {"idempotency"}
    stores.clock.advance(0.000001)
    assert stores.store.read_session(session.key, "k1")[1] is None
    later = a_record(request_hash="r2", expires_at=START + timedelta(days=4))
    stores.store.write(replace(change, idempotency=later))
    assert stores.store.read_session(session.key, "k1")[1] == later


def test_an_amended_record_replaces_the_first(stores: Stores) -> None:
    session = stores.writer().create()
    change = Change(key=session.key, epoch="e1", idempotency=a_record())
    stores.store.write(change)
    amended = a_record(body={"pins": [1]})
    stores.store.write(Change(key=session.key, epoch="e1", amends=amended))
    assert stores.store.read_session(session.key, "k1")[1] == amended


def test_a_paid_answer_is_kept_until_it_expires(stores: Stores) -> None:
    session = stores.writer().create()
    answer = ModelAnswer("漢字\u2028", "stop", "m-1", None, 10, 20)
    stores.store.put_model_answer(
        session.key, "s#1", answer, START + timedelta(hours=1), "e1", A_USAGE
    )
    assert stores.store.get_model_answer(session.key, "s#1") == answer
    empty = ModelAnswer(None, "content_filter", "m-1", "no")
    stores.store.put_model_answer(
        session.key, "s#1", empty, START + timedelta(hours=1), "e1", A_USAGE
    )
    assert stores.store.get_model_answer(session.key, "s#1") == empty
    stores.clock.advance(3600)
    assert stores.store.get_model_answer(session.key, "s#1") is None


def test_a_missing_session_keeps_no_paid_answer(stores: Stores) -> None:
    answer = ModelAnswer("text", "stop", "m")
    stores.store.put_model_answer(
        stores.key(), "step", answer, START + timedelta(days=1), "e1", A_USAGE
    )
    stores.writer().create()
    assert stores.store.get_model_answer(stores.key(), "step") is None


# ------------------------------------------------------------------------------------------ lists


def test_odd_ids_are_sessions_of_their_own(stores: Stores) -> None:
    turns: dict[str, Turn] = {}
    for session_id in ODD_IDS:
        turns[session_id] = stores.writer(session_id).commit(f"of {session_id}")
    for session_id in ODD_IDS:
        memory = stores.store.load(stores.key(session_id))
        assert memory is not None
        assert memory.session.key == stores.key(session_id)
        assert memory.turns == (turns[session_id],)
    page = stores.store.list_sessions(stores.tenant, None, 100, None)
    assert {one.key.session_id for one in page.items} == set(ODD_IDS)


def test_tenants_are_apart(stores: Stores) -> None:
    names = (stores.tenant, f"{stores.tenant}#S#s1", f"{stores.tenant}%23S", f"T#{stores.tenant}")
    for name in names:
        key = SessionKey(name, "s1")
        session = a_session(key, user_id="u", epoch=name)
        stores.store.write(Change(key=key, creates=session, idempotency=a_record()))
    for name in names:
        assert live_session(stores, SessionKey(name, "s1")).epoch == name
        assert [s.key.tenant for s in stores.store.list_sessions(name, None, 9, None).items] == [
            name
        ]
        assert [s.key.tenant for s in stores.store.list_sessions(name, "u", 9, None).items] == [
            name
        ]


def test_sessions_are_listed_in_pages_newest_first(stores: Stores) -> None:
    for number in range(11):
        created = START + timedelta(seconds=number // 2)
        user = "u#1" if number % 3 else None
        session = a_session(stores.key(f"s{number}"), created_at=created, user_id=user)
        stores.store.write(Change(key=session.key, creates=session))
    for user_id in (None, "u#1"):
        found: list[Session] = []
        position: str | None = None
        for _ in range(20):
            page = stores.store.list_sessions(stores.tenant, user_id, 3, position)
            found += page.items
            position = page.next_position
            if position is None:
                break
        assert position is None
        numbers = [int(one.key.session_id[1:]) for one in found]
        assert len(numbers) == len(set(numbers)) == (11 if user_id is None else 7)
        assert all(one.user_id == user_id for one in found if user_id)
        created_at = [one.created_at for one in found]
        assert created_at == sorted(created_at, reverse=True)


def test_a_session_that_gets_a_user_is_listed_for_it(stores: Stores) -> None:
    session = stores.writer().create()
    assert stores.store.list_sessions(stores.tenant, "u", 9, None).items == ()
    stores.store.write(Change(key=session.key, epoch="e1", sets={"user_id": "u"}))
    (found,) = stores.store.list_sessions(stores.tenant, "u", 9, None).items
    assert found.key == session.key


def test_erasing_sessions_are_not_listed_and_leave_no_gap(stores: Stores) -> None:
    for number in range(6):
        session = a_session(stores.key(f"s{number}"), created_at=START + timedelta(seconds=number))
        stores.store.write(Change(key=session.key, creates=session))
    for number in (5, 4, 2):
        sets = {"status": SessionStatus.ERASING}
        stores.store.write(Change(key=stores.key(f"s{number}"), epoch="e1", sets=sets))
    page = stores.store.list_sessions(stores.tenant, None, 2, None)
    assert [one.key.session_id for one in page.items] == ["s3", "s1"]
    rest = stores.store.list_sessions(stores.tenant, None, 2, page.next_position)
    assert [one.key.session_id for one in rest.items] == ["s0"]


@pytest.mark.parametrize(
    "position", ["", "x", "[]", "{}", "[1,2]", '["2026","s"', '["never","s"]', '[null,"s"]', '"ab"']
)
def test_a_forged_position_is_refused(stores: Stores, position: str) -> None:
    with pytest.raises(InvalidCursorError):
        stores.store.list_sessions(stores.tenant, None, 2, position)


def test_a_position_of_another_tenant_shows_nothing_of_it(stores: Stores) -> None:
    other = f"{stores.tenant}-other"
    for tenant in (stores.tenant, other):
        for number in range(4):
            session = a_session(
                SessionKey(tenant, f"s{number}"), created_at=START + timedelta(seconds=number)
            )
            stores.store.write(Change(key=session.key, creates=session))
    position = stores.store.list_sessions(other, None, 2, None).next_position
    page = stores.store.list_sessions(stores.tenant, None, 9, position)
    assert {one.key.tenant for one in page.items} == {stores.tenant}


def test_due_sessions_are_found_in_their_shard_oldest_first(stores: Stores) -> None:
    keys = [stores.key(f"s{number}") for number in range(40)]
    for number, key in enumerate(keys):
        due = None if number % 4 == 0 else START - timedelta(seconds=number)
        session = a_session(key, due_at=due)
        stores.store.write(Change(key=key, creates=session))
    stores.store.write(Change(key=keys[1], epoch="e1", sets={"due_at": None}))
    stores.store.write(Change(key=keys[4], epoch="e1", sets={"due_at": START}))
    stores.store.write(
        Change(key=keys[5], epoch="e1", sets={"due_at": START + timedelta(microseconds=1)})
    )
    found: list[SessionKey] = []
    for shard in range(DUE_SHARDS):
        due_keys = [
            key
            for key in stores.store.due_sessions(shard, START, 1000)
            if key.tenant == stores.tenant
        ]
        assert all(shard_of(key) == shard for key in due_keys)
        expected = [key for key in reversed(keys) if key in due_keys and key != keys[4]]
        assert [key for key in due_keys if key != keys[4]] == expected
        assert len(stores.store.due_sessions(shard, START, 1)) <= 1
        found += due_keys
    absent = {0, 1, 5} | {number for number in range(8, 40) if number % 4 == 0}
    assert set(found) == {key for number, key in enumerate(keys) if number not in absent}


# ------------------------------------------------------------------------------------------ races


def test_twenty_threads_number_turns_without_gaps(stores: Stores) -> None:
    stores.writer().create()
    writers = [stores.writer() for _ in range(20)]

    def commit(number: int) -> int:
        return writers[number].commit(turn_id=f"t{number}").number

    with ThreadPoolExecutor(20) as pool:
        numbers = list(pool.map(commit, range(20)))
    assert sorted(numbers) == list(range(1, 21))
    memory = stores.store.load(stores.key())
    assert memory is not None
    assert [turn.number for turn in memory.turns] == list(range(1, 21))
    previous = "0" * 64
    for turn in memory.turns:
        assert turn.prev_sha256 == previous
        previous = turn.sha256
    assert memory.session.last_sha256 == previous
    assert memory.session.revision == 21


def test_of_twenty_threads_one_creates_the_session(stores: Stores) -> None:
    def create(number: int) -> bool:
        session = a_session(stores.key(), epoch=f"e{number}")
        try:
            stores.store.write(Change(key=session.key, creates=session, turn=a_turn(1)[0]))
        except GuardFailedError as error:
            return "session" not in error.failed
        return True

    with ThreadPoolExecutor(20) as pool:
        created = list(pool.map(create, range(20)))
    assert created.count(True) == 1
    assert live_session(stores, stores.key()).epoch == f"e{created.index(True)}"


def test_of_twenty_threads_one_uses_an_idempotency_key(stores: Stores) -> None:
    session = stores.writer().create()

    other_failures: list[frozenset[str]] = []

    def use(number: int) -> bool:
        record = a_record(request_hash=f"r{number}")
        turn, _ = a_turn(number + 1)
        change = Change(key=session.key, epoch="e1", turn=turn, idempotency=record)
        try:
            stores.store.write(change)
        except GuardFailedError as error:
            if error.failed != {"idempotency"}:
                other_failures.append(error.failed)
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        used = list(pool.map(use, range(20)))
    assert other_failures == []
    assert used.count(True) == 1
    winner = used.index(True)
    record = stores.store.read_session(session.key, "k1")[1]
    assert record is not None
    assert record.request_hash == f"r{winner}"
    turns = [stores.store.get_turn(session.key, number + 1) for number in range(20)]
    assert [turn is not None for turn in turns] == used


def test_no_read_shows_a_mixture_while_a_writer_folds(stores: Stores) -> None:
    writer = stores.writer()
    for _ in range(4):
        writer.commit()
    done = threading.Event()
    problems: list[str] = []
    reads = [0]

    def read() -> None:
        revision = 0
        while not done.is_set():
            memory = stores.store.load(writer.key)
            assert memory is not None
            covered = [turn.number for turn in memory.turns]
            for one in memory.summaries:
                covered += range(one.from_turn, one.to_turn + 1)
            if sorted(covered) != list(range(1, memory.session.next_turn)):
                problems.append(f"covered {sorted(covered)}")
            if memory.session.revision < revision:
                problems.append("an older state after a newer one")
            revision = memory.session.revision
            reads[0] += 1

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for number in range(2, 17):
            writer.fold(number)
            writer.commit()
        done.set()
        for reader in readers:
            reader.result()
    assert problems == []
    assert reads[0] > 0


# What a session has cost --------------------------------------------------------------------


def test_usage_adds_up_by_step_and_model(stores: Stores) -> None:
    session = stores.writer().create()
    answer, at = ModelAnswer("text", "stop", "m"), START + timedelta(hours=1)
    for step in ("s1", "s2"):
        stores.store.put_model_answer(session.key, step, answer, at, session.epoch, A_USAGE)
    stores.store.add_usage(session.key, session.epoch, replace(A_USAGE, model="other#model"))
    costs = replace(A_USAGE, step="chat", calls=1, prompt_tokens=7)
    stores.store.write(Change(key=session.key, epoch=session.epoch, usage=costs, visible=False))
    found = {(one.step, one.model): one for one in stores.store.read_usage(session.key)}
    assert found == {
        ("round_summary", "model-1"): replace(
            A_USAGE, calls=2, prompt_tokens=200, completion_tokens=20
        ),
        ("round_summary", "other#model"): replace(A_USAGE, model="other#model"),
        ("chat", "model-1"): costs,
    }
    assert list(stores.store.read_usage(stores.key("other"))) == []


def test_an_earlier_life_of_a_session_keeps_no_answer_and_costs_nothing(stores: Stores) -> None:
    session = stores.writer().create()
    answer, at = ModelAnswer("text", "stop", "m"), START + timedelta(hours=1)
    stores.store.put_model_answer(session.key, "step", answer, at, "earlier", A_USAGE)
    stores.store.add_usage(session.key, "earlier", A_USAGE)
    assert stores.store.get_model_answer(session.key, "step") is None
    assert list(stores.store.read_usage(session.key)) == []


def test_a_session_can_be_postponed_whatever_its_status(stores: Stores) -> None:
    session = stores.writer().create(due_at=START)
    later = START + timedelta(hours=1)
    stores.store.postpone(session, later)
    assert live_session(stores, session.key).due_at == later
    with pytest.raises(GuardFailedError):
        stores.store.postpone(session, later)
    with pytest.raises(GuardFailedError):
        stores.store.postpone(replace(session, epoch="earlier", due_at=later), later)
    shard = shard_of(session.key)
    assert session.key in stores.store.due_sessions(shard, later, 1000)
    assert session.key not in stores.store.due_sessions(shard, START, 1000)


def test_many_turns_go_in_at_once_or_not_at_all(stores: Stores) -> None:
    session = stores.writer().create()
    turns = tuple(a_turn(number)[0] for number in range(1, 81))
    sets = {"next_turn": 81, "last_sha256": turns[-1].sha256}
    change = Change(key=session.key, epoch=session.epoch, sets=sets, more_turns=turns)
    stores.store.write(change)
    memory = stores.store.load(session.key)
    assert memory is not None
    assert memory.turns == turns
    again = replace(change, more_turns=(a_turn(81)[0], a_turn(80)[0]), sets={"next_turn": 82})
    with pytest.raises(GuardFailedError) as caught:
        stores.store.write(again)
    assert caught.value.failed == {"turn"}
    assert stores.store.get_turn(session.key, 81) is None
