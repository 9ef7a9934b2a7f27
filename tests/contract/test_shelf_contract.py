"""What every `Shelf` promises, and every `Snapshots`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from contract.conftest import MINISTACK, MOTO, Stores
from support.sessions import START, a_pin, a_session, a_summary, big_text
from turnfold.application.ports.memory import Change
from turnfold.domain.errors import GuardFailedError
from turnfold.domain.limits import MAX_INLINE_TURN_BYTES
from turnfold.domain.portable import session_object
from turnfold.domain.sessions import Session, SessionStatus
from turnfold.domain.snapshots import Snapshot, pack_snapshot, unpack_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnfold.domain.memory import WorkingMemory

pytestmark = pytest.mark.parametrize("backend", ["in-memory", MOTO, MINISTACK])

LATER = START + timedelta(days=7)


def memory_of(stores: Stores) -> WorkingMemory:
    memory = stores.store.load(stores.key())
    assert memory is not None
    return memory


def filled(stores: Stores, turns: int = 5, *, large: bool = True) -> WorkingMemory:
    writer = stores.writer()
    for _ in range(turns):
        writer.commit("a\u2028b", "<|endoftext|>")
    if large:
        writer.commit(big_text(MAX_INLINE_TURN_BYTES))
    writer.fold(2)
    session = memory_of(stores).session
    change = Change(
        key=session.key,
        epoch=session.epoch,
        sets={"pin_count": 2, "pin_rev": 1},
        pins=(a_pin("p1"), a_pin("p2", confidence=0.1)),
    )
    stores.store.write(change)
    return memory_of(stores)


def away(stores: Stores, memory: WorkingMemory, *, cleared: bool = True) -> Session:
    stores.shelf.put_away(memory.session, "name", LATER)
    session = memory_of(stores).session
    while cleared and stores.shelf.clear(session):
        pass
    return session


def restoring(stores: Stores, session: Session) -> Session:
    stores.shelf.begin_restore(session)
    return memory_of(stores).session


def snapshot_of(memory: WorkingMemory) -> Snapshot:
    """The snapshot of a complete working memory."""
    return Snapshot(
        profile=memory.profile,
        profile_rev=memory.session.profile_rev,
        turns=memory.turns,
        summaries=memory.summaries,
        pins=memory.pins,
        session=session_object(memory.session, memory.profile),
        revision=memory.session.revision,
    )


def back(stores: Stores, session: Session, snapshot: Snapshot) -> None:
    stores.shelf.fill(session, snapshot)
    stores.shelf.finish_restore(session, LATER, LATER + timedelta(days=7))


def test_a_memory_goes_and_comes_back_as_it_was(stores: Stores) -> None:
    memory = filled(stores)
    snapshot = unpack_snapshot(pack_snapshot(memory))
    assert snapshot == snapshot_of(memory)
    session = away(stores, memory)
    assert session.status is SessionStatus.EXPIRED
    assert (session.snapshot, session.due_at) == ("name", LATER)
    assert session.revision == memory.session.revision, "nobody can see a difference"
    assert memory_of(stores).turns == ()
    assert stores.store.get_turn(stores.key(), 1) is None
    back(stores, restoring(stores, session), snapshot)
    again = memory_of(stores)
    assert replace(again, session=memory.session) == memory
    assert again.session.status is SessionStatus.LIVE
    assert (again.session.snapshot, again.session.restored_at) == (None, LATER)
    assert again.session.next_turn == memory.session.next_turn


def test_a_session_that_was_used_meanwhile_is_not_put_away(stores: Stores) -> None:
    memory = filled(stores)
    stores.writer().commit()
    with pytest.raises(GuardFailedError):
        stores.shelf.put_away(memory.session, "name", LATER)
    with pytest.raises(GuardFailedError):
        stores.shelf.put_away(replace(memory.session, epoch="earlier"), "name", LATER)
    with pytest.raises(GuardFailedError):
        stores.shelf.put_away(replace(memory.session, key=stores.key("no")), "name", LATER)
    assert memory_of(stores).session.status is SessionStatus.LIVE


def test_further_fields_go_with_it(stores: Stores) -> None:
    memory = filled(stores)
    sets = {"manifest": (), "compacted_through": 0, "summary_rev": 9}
    stores.shelf.put_away(memory.session, "name", LATER, sets)
    session = memory_of(stores).session
    assert (session.manifest, session.compacted_through, session.summary_rev) == ((), 0, 9)


def test_nothing_is_written_to_one_that_is_away(stores: Stores) -> None:
    memory = filled(stores)
    session = away(stores, memory)
    change = Change(key=session.key, epoch=session.epoch, sets={"degraded": True})
    for _ in range(2):
        with pytest.raises(GuardFailedError):
            stores.store.write(change)
        session = restoring(stores, session) if session.status is SessionStatus.EXPIRED else session


@pytest.mark.parametrize("state", ["live", "expired", "restoring", "another snapshot"])
def test_each_step_happens_only_in_its_state(stores: Stores, state: str) -> None:
    memory = filled(stores)
    snapshot = snapshot_of(memory)
    session = memory.session
    allowed: set[str] = set()
    if state != "live":
        session = away(stores, memory, cleared=False)
        allowed = {"clear all", "rest", "begin"}
    if state == "restoring":
        session = restoring(stores, session)
        allowed = {"clear some", "fill", "finish"}
    if state == "another snapshot":
        session, allowed = replace(session, snapshot="other"), set()
    smaller = replace(snapshot, turns=snapshot.turns[:1])
    steps: dict[str, Callable[[], object]] = {
        "rest": lambda: stores.shelf.rest(session),
        "clear all": lambda: stores.shelf.clear(session),
        "clear some": lambda: stores.shelf.clear(session, smaller),
        "fill": lambda: stores.shelf.fill(session, snapshot),
        "begin": lambda: stores.shelf.begin_restore(session),
        "finish": lambda: stores.shelf.finish_restore(session, LATER, LATER),
    }
    for name in sorted(steps.keys() - allowed):
        with pytest.raises(GuardFailedError):
            steps[name]()
    for name in ("rest", "clear all", "clear some", "fill", "begin", "finish"):
        if name in allowed:
            steps[name]()


def test_what_is_not_of_the_snapshot_is_cleared_while_it_comes_back(stores: Stores) -> None:
    memory = filled(stores)
    snapshot = snapshot_of(memory)
    smaller = replace(
        snapshot,
        turns=snapshot.turns[:1],
        summaries=(a_summary(2, 2, level=1, text="anew"),),
        pins=snapshot.pins[:1],
    )
    sets = {"next_turn": 3, "pin_count": 1}
    stores.shelf.put_away(memory.session, "name", LATER, sets)
    session = restoring(stores, memory_of(stores).session)
    while stores.shelf.clear(session, smaller):
        pass
    back(stores, session, smaller)
    again = memory_of(stores)
    assert [turn.number for turn in again.turns] == [1]
    assert [summary.text for summary in again.summaries] == ["anew"]
    assert [pin.pin_id for pin in again.pins] == ["p1"]
    assert again.profile == memory.profile


def test_former_pins_and_answers_stay_while_it_is_away(stores: Stores) -> None:
    from turnfold.domain.pins import PinStatus

    memory = filled(stores)
    former = a_pin("p9", PinStatus.FOLDED)
    stores.store.write(Change(key=stores.key(), epoch=memory.session.epoch, pins=(former,)))
    away(stores, memory_of(stores))
    assert stores.store.get_pin(stores.key(), "p9") == former


def test_one_that_rests_is_not_due(stores: Stores) -> None:
    from turnfold.adapters.dynamo_keys import shard_of

    session = away(stores, filled(stores))
    shard = shard_of(session.key)
    assert session.key in stores.store.due_sessions(shard, LATER, 1000)
    stores.shelf.rest(session)
    assert session.key not in stores.store.due_sessions(shard, LATER, 1000)
    assert [one.key for one in stores.store.list_sessions(stores.tenant, None, 10, None).items] == [
        session.key
    ]


# Snapshots ---------------------------------------------------------------------------------------


def test_snapshots_are_kept_by_session_and_name(stores: Stores) -> None:
    for session_id, name in (("s1", "000-b"), ("s1", "000-a"), ("s", "000-c")):
        stores.snapshots.put(stores.key(session_id), name, name.encode())
    assert list(stores.snapshots.names(stores.key())) == ["000-a", "000-b"]
    assert stores.snapshots.get(stores.key(), "000-a") == b"000-a"
    assert stores.snapshots.get(stores.key(), "000-c") is None
    stores.snapshots.put(stores.key(), "000-a", b"anew")
    assert stores.snapshots.get(stores.key(), "000-a") == b"anew"
    stores.snapshots.remove(stores.key(), ["000-a", "absent"])
    stores.snapshots.remove(stores.key(), [])
    assert list(stores.snapshots.names(stores.key())) == ["000-b"]
    assert stores.snapshots.get(stores.key("s"), "000-c") == b"000-c"
    # An erasure finds what was removed only by name.
    assert len(stores.objects.list_versions(stores.key(), 100)) >= 4


# Segments ----------------------------------------------------------------------------------------


def test_segments_are_kept_beside_the_records(stores: Stores) -> None:
    from turnfold.domain.segments import Segment, pack_segment, unpack_segment

    stores.archive.put_record(stores.key(), 1, "t", b"{}")
    first, second = Segment(1, 2), Segment(3, 3)
    for segment in (second, first):
        data = pack_segment([b'{"n":%d}' % number for number in range(segment.turns)])
        stores.archive.put_segment(stores.key(), segment, data)
    stores.archive.put_segment(stores.key(), first, b"other")
    assert list(stores.archive.list_segments(stores.key())) == [first, second]
    assert list(stores.archive.list_segments(stores.key("s"))) == []
    data_of_first = stores.archive.get_segment(stores.key(), first)
    assert data_of_first is not None
    assert unpack_segment(data_of_first, first) == [b'{"n":0}', b'{"n":1}']
    assert stores.archive.get_segment(stores.key(), Segment(1, 3)) is None
    stores.archive.remove_segments(stores.key(), [first, Segment(7, 8)])
    stores.archive.remove_segments(stores.key(), [])
    assert list(stores.archive.list_segments(stores.key())) == [second]
    assert list(stores.archive.list_records(stores.key(), 1, 9)) == [(1, "t")]
    stores.archive.remove_records(stores.key(), [(1, "t"), (2, "t")])
    assert list(stores.archive.list_records(stores.key(), 1, 9)) == []


def test_a_large_turn_is_found_in_its_segment(stores: Stores) -> None:
    """Working memory that was built anew has turns whose single record is gone."""
    from turnfold.domain.segments import Segment, pack_segment

    writer = stores.writer()
    turns = [writer.commit(), writer.commit(big_text(MAX_INLINE_TURN_BYTES)), writer.commit()]
    raws = [stores.archive.get_record(stores.key(), one.number, one.turn_id) for one in turns]
    stores.archive.put_segment(stores.key(), Segment(1, 3), pack_segment(filter(None, raws)))
    names = [(one.number, one.turn_id) for one in turns]
    stores.archive.remove_records(stores.key(), names)
    assert memory_of(stores).turns == tuple(turns)


# Sessions that are being made --------------------------------------------------------------------


@pytest.mark.parametrize("status", [SessionStatus.FORKING, SessionStatus.REBUILDING])
def test_a_session_that_is_being_made_opens_by_one_write(
    stores: Stores, status: SessionStatus
) -> None:
    made = a_session(stores.key(), status=status, rebuild=True)
    stores.store.write(Change(key=made.key, creates=made))
    assert list(stores.store.list_sessions(stores.tenant, None, 10, None).items) == []
    with pytest.raises(GuardFailedError):
        stores.store.write(Change(key=made.key, epoch=made.epoch, sets={"degraded": True}))
    memory = filled(replace(stores, tenant=f"{stores.tenant}-2"), large=False)
    sets = {
        "next_turn": memory.session.next_turn,
        "last_sha256": memory.session.last_sha256,
        "manifest": memory.session.manifest,
        "compacted_through": memory.session.compacted_through,
        "pin_count": 2,
        "pin_rev": 1,
        "user_id": "u#1",
        "rebuild": False,
    }
    with pytest.raises(GuardFailedError):
        stores.shelf.open(replace(made, epoch="earlier"), "name", LATER, sets)
    stores.shelf.open(made, "name", LATER, sets)
    session = memory_of(stores).session
    assert (session.status, session.snapshot, session.rebuild) == (
        SessionStatus.EXPIRED,
        "name",
        False,
    )
    back(stores, restoring(stores, session), snapshot_of(memory))
    assert memory_of(stores).turns == memory.turns
    listed = stores.store.list_sessions(stores.tenant, "u#1", 10, None)
    assert [one.key for one in listed.items] == [stores.key()]
    with pytest.raises(GuardFailedError):
        stores.shelf.open(made, "name", LATER, sets)


def test_a_lost_snapshot_can_be_given_up(stores: Stores) -> None:
    session = away(stores, filled(stores))
    stores.shelf.give_up(session, LATER)
    given_up = memory_of(stores).session
    assert (given_up.status, given_up.rebuild) == (SessionStatus.REBUILDING, True)
    with pytest.raises(GuardFailedError):
        stores.shelf.begin_restore(session)
    stores.shelf.open(given_up, "other", LATER, {"rebuild": False})
    assert memory_of(stores).session.snapshot == "other"


def test_a_snapshot_of_a_session_that_is_gone_is_removed_with_its_versions(stores: Stores) -> None:
    for name in ("a", "a", "ab"):
        stores.snapshots.put(stores.key(), name, name.encode())
    stores.snapshots.remove(stores.key(), ["a"])
    stores.snapshots.discard(stores.key(), "a")
    stores.snapshots.discard(stores.key(), "never")
    (left,) = stores.objects.list_versions(stores.key(), 100)
    assert left.name.endswith("/ab.json.gz")
