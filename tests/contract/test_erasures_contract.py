"""What every `Erasures` promises, and every `SessionObjects`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from contract.conftest import MINISTACK, MOTO, Stores
from support.sessions import A_USAGE, START, a_pin, a_record
from turnfold.application.ports.memory import Change
from turnfold.application.ports.models import ModelAnswer
from turnfold.domain.erasures import Erasure, ErasureStatus, Removed
from turnfold.domain.errors import GuardFailedError
from turnfold.domain.pins import PinStatus
from turnfold.domain.sessions import Session, SessionKey, SessionStatus

pytestmark = pytest.mark.parametrize("backend", ["in-memory", MOTO, MINISTACK])


def erasure_of(stores: Stores, erasure_id: str = "e1", **members: object) -> Erasure:
    return replace(Erasure(stores.tenant, erasure_id, START), **members)  # type: ignore[arg-type]  # any member, by name


def user_erasure(stores: Stores, erasure_id: str = "e1", user: str = "u") -> Erasure:
    return erasure_of(stores, erasure_id, user_id=user, listed=False, open_sessions=0)


def session_of(stores: Stores, key: SessionKey | None = None) -> Session:
    session, _ = stores.store.read_session(key or stores.key(), None)
    assert session is not None
    return session


def begun(stores: Stores, erasure_id: str = "e1") -> Session:
    stores.erasures.begin(erasure_of(stores, erasure_id), session_of(stores))
    return session_of(stores)


def filled(stores: Stores, turns: int = 3) -> None:
    writer = stores.writer()
    for _ in range(turns):
        writer.commit()
    session = session_of(stores)
    stores.store.write(
        Change(
            key=stores.key(),
            epoch=session.epoch,
            sets={"pin_count": 1},
            pins=(a_pin("p1"), a_pin("p2", PinStatus.INVALIDATED)),
            idempotency=a_record(),
        )
    )
    answer = ModelAnswer("text", "stop", "model")
    stores.store.put_model_answer(
        stores.key(), "step", answer, START + timedelta(days=1), "e1", A_USAGE
    )


def gone(stores: Stores) -> None:
    """Erase the session to its end."""
    session = begun(stores)
    while stores.erasures.remove_items(session):
        pass
    stores.erasures.finish(session, erasure_of(stores), START)


def test_the_tombstone_and_the_receipt_come_together(stores: Stores) -> None:
    filled(stores)
    before = session_of(stores)
    session = begun(stores)
    assert session.status is SessionStatus.ERASING
    assert session.erasure_id == "e1"
    assert session.erasing_since == session.due_at == stores.clock()
    assert session.revision == before.revision + 1
    assert stores.erasures.get(stores.tenant, "e1") == erasure_of(stores)
    memory = stores.store.load(stores.key())
    assert memory is not None
    assert (memory.turns, memory.pins, memory.summaries) == ((), (), ())


@pytest.mark.parametrize("why", ["erasing", "epoch", "held", "missing"])
def test_a_session_that_may_not_be_erased_is_not(stores: Stores, why: str) -> None:
    filled(stores)
    session = session_of(stores)
    if why == "erasing":
        stores.erasures.begin(erasure_of(stores, "e0"), session)
    elif why == "epoch":
        session = replace(session, epoch="another")
    elif why == "held":
        change = Change(key=session.key, epoch=session.epoch, sets={"legal_hold": True})
        stores.store.write(change)
    else:
        session = replace(session, key=stores.key("other"))
    with pytest.raises(GuardFailedError):
        stores.erasures.begin(erasure_of(stores), session)
    assert stores.erasures.get(stores.tenant, "e1") is None


def test_nothing_is_written_to_a_session_that_is_being_erased(stores: Stores) -> None:
    filled(stores)
    session = begun(stores)
    with pytest.raises(GuardFailedError):
        stores.store.write(Change(key=session.key, epoch=session.epoch, sets={"degraded": True}))
    with pytest.raises(GuardFailedError):
        stores.store.write(Change(key=session.key, creates=replace(session, epoch="e2")))


def test_all_items_go_and_are_counted(stores: Stores) -> None:
    filled(stores, turns=120)
    session = begun(stores)
    removed = 0
    while batch := stores.erasures.remove_items(session):
        removed += batch
    # The turns, the profile, two pins, the record, the model's answer and what it has cost.
    assert removed == 120 + 1 + 2 + 1 + 1 + 1
    receipt = stores.erasures.get(stores.tenant, "e1")
    assert receipt is not None
    assert receipt.removed == Removed(items=removed)
    assert stores.store.get_pin(stores.key(), "p2") is None
    assert stores.store.get_turn(stores.key(), 1) is None
    assert session_of(stores).status is SessionStatus.ERASING


def test_the_end_removes_the_session_and_frees_its_id(stores: Stores) -> None:
    filled(stores)
    session = begun(stores)
    while stores.erasures.remove_items(session):
        pass
    stores.erasures.note_objects(session, Removed(objects=2, versions=5, vectors=1))
    end = START + timedelta(seconds=40)
    stores.erasures.finish(session, erasure_of(stores), end)
    assert stores.store.read_session(stores.key(), "k1") == (None, None)
    receipt = stores.erasures.get(stores.tenant, "e1")
    assert receipt is not None
    assert (receipt.status, receipt.finished_at) == (ErasureStatus.ERASED, end)
    assert replace(receipt.removed, items=0) == Removed(0, 2, 5, 1)
    assert receipt.open_sessions == 0
    stores.writer().commit()
    assert session_of(stores).committed_through == 1


def test_a_late_eraser_removes_nothing_of_a_new_session(stores: Stores) -> None:
    filled(stores)
    late = begun(stores)
    while stores.erasures.remove_items(late):
        pass
    stores.erasures.finish(late, erasure_of(stores), START)
    stores.writer().commit()
    for act in (
        lambda: stores.erasures.remove_items(late),
        lambda: stores.erasures.note_objects(late, Removed(objects=1)),
        lambda: stores.erasures.finish(late, erasure_of(stores), START),
    ):
        with pytest.raises(GuardFailedError):
            act()
    again = begun(stores, "e2")
    with pytest.raises(GuardFailedError):
        stores.erasures.remove_items(late)
    assert stores.erasures.remove_items(again)


def test_a_repeated_request_finds_the_erasure_for_two_days(stores: Stores) -> None:
    filled(stores)
    assert stores.erasures.of_session(stores.key()) is None
    gone(stores)
    assert stores.erasures.of_session(stores.key()) == "e1"
    assert stores.erasures.of_session(stores.key("other")) is None
    assert stores.erasures.of_session(SessionKey(f"{stores.tenant}-2", "s1")) is None
    stores.clock.now += timedelta(days=2)
    assert stores.erasures.of_session(stores.key()) is None
    assert stores.erasures.get(stores.tenant, "e1") is not None


def test_receipts_belong_to_their_tenant(stores: Stores) -> None:
    filled(stores)
    begun(stores)
    for tenant in (f"{stores.tenant}-2", f"{stores.tenant}#E", ""):
        assert stores.erasures.get(tenant, "e1") is None
    assert stores.erasures.get(stores.tenant, "e#1") is None


def test_a_user_has_one_erasure_at_a_time(stores: Stores) -> None:
    stores.erasures.begin_user(user_erasure(stores))
    assert stores.erasures.of_user(stores.tenant, "u") == "e1"
    assert stores.erasures.of_user(stores.tenant, "v") is None
    with pytest.raises(GuardFailedError):
        stores.erasures.begin_user(user_erasure(stores, "e2"))
    stores.erasures.mark_listed(user_erasure(stores), None, listed=True)
    assert stores.erasures.close_user(user_erasure(stores), START)
    stores.erasures.begin_user(user_erasure(stores, "e2"))
    assert stores.erasures.of_user(stores.tenant, "u") == "e2"


def test_the_erasure_of_a_user_ends_with_its_last_session(stores: Stores) -> None:
    erasure = user_erasure(stores)
    stores.erasures.begin_user(erasure)
    for name in ("s1", "s2"):
        stores.writer(name).commit()
        stores.erasures.begin(erasure, session_of(stores, stores.key(name)))
    found = stores.erasures.get(stores.tenant, "e1")
    assert found is not None
    assert (found.open_sessions, found.user_id) == (2, "u")
    for name in ("s1", "s2"):
        stores.erasures.mark_listed(erasure, START, listed=name == "s2")
        assert not stores.erasures.close_user(erasure, START)
        session = session_of(stores, stores.key(name))
        while stores.erasures.remove_items(session):
            pass
        stores.erasures.finish(session, found, START)
    assert stores.erasures.close_user(erasure, START)
    assert not stores.erasures.close_user(erasure, START)
    done = stores.erasures.get(stores.tenant, "e1")
    assert done is not None
    assert (done.status, done.user_id, done.open_sessions) == (ErasureStatus.ERASED, None, 0)
    # A session is its turn, its profile and itself.
    assert done.removed.items == 6


def test_erasures_of_users_are_due_until_they_are_done(stores: Stores) -> None:
    name = (stores.tenant, "e1")
    stores.erasures.begin_user(user_erasure(stores))
    assert name in stores.erasures.due_users(START, 1000)
    assert name not in stores.erasures.due_users(START - timedelta(seconds=1), 1000)
    later = START + timedelta(seconds=60)
    stores.erasures.mark_listed(user_erasure(stores), later, listed=True)
    assert name not in stores.erasures.due_users(START, 1000)
    assert name in stores.erasures.due_users(later, 1000)
    stores.erasures.close_user(user_erasure(stores), START)
    assert name not in stores.erasures.due_users(later, 1000)


def test_due_sessions_and_due_users_do_not_mix(stores: Stores) -> None:
    filled(stores)
    begun(stores)
    stores.erasures.begin_user(user_erasure(stores, "e2"))
    found = [key for shard in range(8) for key in stores.store.due_sessions(shard, START, 1000)]
    assert stores.key() in found
    assert (stores.tenant, "e1") not in stores.erasures.due_users(START, 1000)


# Objects -----------------------------------------------------------------------------------------


def test_all_versions_under_the_prefix_are_listed_and_go(stores: Stores) -> None:
    for session_id in ("s1", "s", "s11"):
        for number in (1, 2, 3):
            stores.archive.put_record(stores.key(session_id), number, "t", b"{}")
    stores.archive.remove_records(stores.key(), [(1, "t"), (2, "t")])
    stores.archive.put_record(stores.key(), 1, "t", b"[]")
    versions = stores.objects.list_versions(stores.key(), 1000)
    # Three records, two markers, and one record anew.
    assert len(versions) == 6
    assert len({one.name for one in versions}) == 3
    assert len(stores.objects.list_versions(stores.key(), 4)) == 4
    stores.objects.remove_versions(versions[:4])
    stores.objects.remove_versions(versions)
    assert list(stores.objects.list_versions(stores.key(), 1000)) == []
    for session_id in ("s", "s11"):
        assert len(stores.objects.list_versions(stores.key(session_id), 1000)) == 3


def test_only_the_listed_versions_go(stores: Stores) -> None:
    stores.archive.put_record(stores.key(), 1, "t", b"old")
    versions = stores.objects.list_versions(stores.key(), 1000)
    stores.archive.remove_records(stores.key(), [(1, "t")])
    stores.archive.put_record(stores.key(), 1, "t", b"new")
    stores.objects.remove_versions(versions)
    assert stores.archive.get_record(stores.key(), 1, "t") == b"new"
    stores.objects.remove_versions([])


@pytest.mark.parametrize("anew", [False, True])
def test_what_is_written_too_late_is_not_kept(stores: Stores, anew: bool) -> None:
    """By whoever read the session before it was erased, however long ago."""
    filled(stores)
    before = session_of(stores)
    gone(stores)
    if anew:
        stores.store.write(Change(key=before.key, creates=replace(before, epoch="e2")))
    answer, at = ModelAnswer("text", "stop", "model"), START + timedelta(days=1)
    stores.store.put_model_answer(before.key, "step", answer, at, before.epoch, A_USAGE)
    stores.store.add_usage(before.key, before.epoch, A_USAGE)
    with pytest.raises(GuardFailedError):
        stores.store.write(Change(key=before.key, epoch=before.epoch, pins=(a_pin("p9"),)))
    record = a_record("late")
    with pytest.raises(GuardFailedError):
        stores.store.write(Change(key=before.key, epoch=before.epoch, amends=record))
    with pytest.raises(GuardFailedError):
        stores.store.postpone(before, at)
    assert stores.store.get_model_answer(before.key, "step") is None
    assert list(stores.store.read_usage(before.key)) == []
    assert stores.store.get_pin(before.key, "p9") is None
    assert stores.store.read_session(before.key, "late")[1] is None
