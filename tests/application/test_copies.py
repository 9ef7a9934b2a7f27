"""Export, import, fork and rebuild: what comes out goes in again, whoever dies on the way."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from support.archive_service import ArchiveService
from support.interference import Crash, Interference
from support.invariants import check_i1_coverage, check_i2_order
from support.service import KEY, ScriptedModel, plain_turn
from turnfold.application.answer import Answer, IdempotentRequest
from turnfold.application.export_session import MAX_INLINE_BYTES
from turnfold.application.fork_session import ABANDONED_SECONDS
from turnfold.application.import_content import read_import
from turnfold.application.import_session import PART_TURNS
from turnfold.application.pins_by_hand import pin_input
from turnfold.application.ports.memory import Change
from turnfold.application.sessions import SessionInput
from turnfold.domain.errors import (
    BadJsonError,
    InvalidCursorError,
    InvalidImportError,
    LegalHoldError,
    SessionErasingError,
    SessionExistsError,
    SessionNotFoundError,
    StoreError,
    ThrottledError,
    TurnNotFoundError,
)
from turnfold.domain.pins import PinStatus
from turnfold.domain.sessions import SessionKey, SessionStatus

COPY = SessionKey("tenant", "copy")
ODD_TEXTS = [
    "a\nb",
    "a\r\nb",
    "line\u2028sep",
    "next\u0085line",
    "a\x0bb\x0cc\x1cd",
    "👩🏽‍🚀",
    '"\\n"',
]


def watched(**members: Any) -> tuple[ArchiveService, Interference]:
    interference = Interference()
    return ArchiveService(wrap=interference.wrap, **members), interference


def request(name: str = "k", body: object = None) -> IdempotentRequest:
    return IdempotentRequest.of("POST", name, body)


def filled(service: ArchiveService, turns: int = 12, key: SessionKey = KEY) -> ArchiveService:
    service.sessions.put(
        key,
        SessionInput(
            system=({"role": "system", "content": "Be kind."},),
            user_id="u",
            metadata={"plan": "gold"},
            settings={"head_size": 2},
        ),
    )
    for number in range(1, turns + 1):
        messages = plain_turn(number, words=60)
        messages[0]["content"] += ODD_TEXTS[number % len(ODD_TEXTS)]
        service.commit(messages, key)
    for text in ("first fact", "second fact"):
        given = pin_input({"text": text, "sources": [{"turn": 3}]})
        service.pins.add(key, given, request(text))
    service.pins.change(
        key, service.memory(key).pins[0].pin_id, pin_input({"status": "invalidated"})
    )
    service.drain()
    return service


def messages_of(service: ArchiveService, key: SessionKey) -> list[Any]:
    session = service.raw_store.sessions[key].session
    turns = service.transcript.turns(session, 1, session.committed_through)
    return [list(turn.messages) for turn in turns]


def exported(service: ArchiveService, key: SessionKey = KEY) -> str:
    text = service.export(key).text
    assert text is not None
    return text


def import_text(
    service: ArchiveService, text: str, key: SessionKey = COPY, name: str = "import"
) -> Answer:
    return service.import_session(key, read_import(text), request(name, text))


def assert_sound(service: ArchiveService, key: SessionKey) -> None:
    memory = service.memory(key)
    check_i1_coverage(service, memory)
    check_i2_order(memory)
    assert service.verify(key).ok


# Export ------------------------------------------------------------------------------------------


def test_an_export_has_everything_of_a_session_by_type() -> None:
    service = filled(ArchiveService(model=ScriptedModel()))
    lines = [json.loads(line) for line in exported(service).split("\n") if line]
    kinds = [line["type"] for line in lines]
    assert kinds[0] == "session"
    assert [kind for kind, _ in itertools.groupby(kinds)] == ["session", "pin", "summary", "turn"]
    turns = [line for line in lines if line["type"] == "turn"]
    assert [turn["messages"] for turn in turns] == messages_of(service, KEY)
    assert turns[1]["prev_sha256"] == turns[0]["sha256"]
    assert {line["status"] for line in lines if line["type"] == "pin"} == {"active", "invalidated"}
    assert lines[0]["settings"]["head_size"] == 2
    assert lines[0]["metadata"] == {"plan": "gold"}


def test_an_export_over_the_limit_becomes_a_file() -> None:
    service = ArchiveService(pin_mode="off")
    text = "x" * 600_000
    turn = [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]
    for _ in range(9):
        service.commit(turn)
    done = service.export(KEY)
    assert done.text is None
    assert done.expires_at is not None
    data = service.bucket.get(done.url or "")
    assert data is not None
    assert len(data) > MAX_INLINE_BYTES
    assert sum(json.loads(line)["type"] == "turn" for line in data.split(b"\n") if line) == 9
    service.delete.session(KEY)
    service.drain_archive()
    assert service.objects_of() == []


def test_an_export_holds_few_records_at_a_time() -> None:
    service = ArchiveService(pin_mode="off", auto_compression=False)
    service.commit_plain(500)
    memory = service.memory()
    before = service.bucket.gets
    lines = service.export.lines(memory)
    for _ in range(10):
        next(lines)
    assert service.bucket.gets - before <= 200


def test_an_export_that_takes_long_goes_on_request_by_request() -> None:
    service = filled(ArchiveService(), turns=100)
    whole = exported(service)
    position, requests = None, 0
    while True:
        # Time is up at once, and later in the middle of what is read together.
        left = iter([1.0] * (7 * requests) + [0.0])
        done = service.export(KEY, position, lambda left=left: next(left))  # type: ignore[misc]  # mypy infers no lambda with a default
        requests += 1
        position = done.position
        if position is None:
            break
        assert (done.url, done.text) == (None, None)
        service.commit(plain_turn(100 + requests))
    assert requests > 3
    data = service.bucket.get(done.url or "")
    assert data == whole.encode()


@pytest.mark.parametrize(
    "position", ["", "a", "id1.jsonl:0:1", "../id1.jsonl:1:1", "id1.jsonl:1:9999"]
)
def test_a_position_that_leads_nowhere_is_refused(position: str) -> None:
    service = filled(ArchiveService(), turns=3)
    with pytest.raises(InvalidCursorError):
        service.export(KEY, position)
    with pytest.raises(InvalidCursorError):
        service.export(KEY, "id1.jsonl:1:3")


def test_an_export_is_over_when_its_session_is_erased() -> None:
    service = filled(ArchiveService(), turns=3)
    position = service.export(KEY, None, lambda: 0.0).position
    service.delete.session(KEY)
    with pytest.raises(SessionNotFoundError):
        service.export(KEY, position)
    service.drain_archive()
    assert service.objects_of() == []
    filled(service, turns=3)
    with pytest.raises(InvalidCursorError):
        service.export(KEY, position)


def test_large_turns_are_few_in_memory() -> None:
    service = ArchiveService(pin_mode="off", auto_compression=False)
    text = "x" * 900_000
    turn = [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]
    for _ in range(60):
        service.commit(turn)
    session = service.memory().session
    records = service.transcript.stream(session)
    read = 0
    for record in records:
        before = service.bucket.gets
        read = record.turn.number
        assert before - read <= 16
    assert read == 60


def test_an_export_of_nothing_is_not_found() -> None:
    with pytest.raises(SessionNotFoundError):
        ArchiveService().export(KEY)


# Import ------------------------------------------------------------------------------------------


def test_an_export_comes_in_again() -> None:
    service = filled(ArchiveService())
    answer = import_text(service, exported(service))
    assert answer.status == 201
    assert answer.body["turns_imported"] == 12
    assert answer.body["errors"] == []
    assert messages_of(service, COPY) == messages_of(service, KEY)
    memory, original = service.memory(COPY), service.memory(KEY)
    assert memory.profile == original.profile
    assert memory.session.settings == original.session.settings
    assert memory.session.user_id == "u"
    assert memory.session.judged_through == 12
    assert [pin.text for pin in memory.pins] == [pin.text for pin in original.pins]
    assert memory.pins[0].sources == (3,)
    former = service.raw_store.list_former_pins(COPY, PinStatus.INVALIDATED, 9, None)
    assert len(former.items) == 1
    service.drain()
    assert_sound(service, COPY)
    assert service.commit(plain_turn(13), COPY).body["turn"] == 13


def test_times_of_the_original_are_kept_and_go_forwards() -> None:
    service = ArchiveService()
    for number in range(1, 4):
        service.commit(plain_turn(number))
        service.clock.now += timedelta(hours=1)
    import_text(service, exported(service))
    session = service.memory(COPY).session
    turns = service.transcript.turns(session, 1, 3)
    originals = service.transcript.turns(service.memory().session, 1, 3)
    assert [turn.committed_at for turn in turns] == [turn.committed_at for turn in originals]
    import_text(service, exported(service), name="again")
    turns = service.transcript.turns(service.memory(COPY).session, 1, 6)
    times = [turn.committed_at for turn in turns]
    assert times == sorted(times)


def test_messages_are_cut_into_turns_and_repaired() -> None:
    service = ArchiveService()
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": "How can I help?"},
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "one"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "assistant", "content": "done"},
        {"role": "tool", "tool_call_id": "c9", "content": "to nobody"},
        {"role": "user", "content": "three"},
        {"role": "assistant", "content": "three it is"},
        {"role": "moderator", "content": "?"},
        {"role": "user", "content": "unanswered"},
    ]
    answer = import_text(service, json.dumps({"messages": messages}))
    assert messages_of(service, COPY) == [
        [*messages[1:5], {"role": "tool", "tool_call_id": "c1", "content": ""}, messages[5]],
        messages[7:9],
    ]
    assert [fault["line"] for fault in answer.body["errors"]] == [1, 7, 10, 11]
    assert service.memory(COPY).profile.system == (messages[1],)


def test_langchain_dumps_are_messages() -> None:
    calls = [{"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"}]
    dump = [
        {"type": "system", "data": {"content": "Be kind.", "type": "system"}},
        {"type": "human", "data": {"content": "1 + 1?", "type": "human", "name": "ann"}},
        {"type": "ai", "data": {"content": "", "tool_calls": calls}},
        {"type": "tool", "data": {"content": "2", "tool_call_id": "c1"}},
        {"lc": 1, "id": ["langchain", "AIMessage"], "kwargs": {"content": "It is 2."}},
        {"type": "human", "content": "thanks"},
        {"type": "ai", "content": [{"type": "text", "text": "welcome"}]},
    ]
    for raw in (json.dumps(dump), "\n".join(map(json.dumps, dump))):
        service = ArchiveService()
        answer = import_text(service, raw)
        assert answer.body["errors"] == []
        first, second = messages_of(service, COPY)
        assert [one["role"] for one in first] == [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
        ]
        assert first[1]["name"] == "ann"
        assert first[2]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
        assert second[1]["content"] == [{"type": "text", "text": "welcome"}]


def test_mm_memory_dumps_are_turns() -> None:
    def message(role: str, *blocks: dict[str, Any], **members: Any) -> dict[str, Any]:
        return {"id": "x", "role": role, "content": list(blocks), "status": "NORMAL", **members}

    def text(value: str) -> dict[str, Any]:
        return {"type": "text", "text": value}

    use = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
    result = {"type": "tool_result", "id": "c1", "name": "add", "output": [text("2")]}
    dump = [
        {
            "_id": "1",
            "storageKey": "a:b",
            "timestamp": 1,
            "messagePair": {
                "userMessage": message("USER", text("1 + 1?")),
                "intermediateMessages": [message("ASSISTANT", use), message("TOOL", result)],
                "assistantMessage": message("ASSISTANT", text("It is 2."), name="bot"),
            },
        },
        {
            "userMessage": message("USER", text("a"), text("b")),
            "assistantMessage": message("ASSISTANT", text("c")),
        },
    ]
    service = ArchiveService()
    answer = import_text(service, json.dumps(dump))
    assert answer.body["errors"] == []
    first, second = messages_of(service, COPY)
    assert [one["role"] for one in first] == ["user", "assistant", "tool", "assistant"]
    assert first[3] == {"role": "assistant", "content": "It is 2.", "name": "bot"}
    assert second[0]["content"] == "a\nb"


def test_wrong_lines_are_reported_by_number_and_the_rest_goes_in() -> None:
    service = filled(ArchiveService(), turns=3)
    lines = exported(service).split("\n")
    at = next(number for number, line in enumerate(lines) if '"type":"turn"' in line)
    broken = [
        *lines[: at + 1],
        "{not json",
        '{"type":"turn","messages":[{"role":"user","content":"alone"}]}',
        '["a list"]',
        "",
        '{"type":"pin","text":1}',
        *lines[at + 1 :],
    ]
    answer = import_text(service, "\n".join(broken))
    assert answer.body["turns_imported"] == 3
    wrong = [fault["line"] for fault in answer.body["errors"]]
    assert wrong == [at + 2, at + 3, at + 4, at + 6]
    assert messages_of(service, COPY) == messages_of(service, KEY)


@pytest.mark.parametrize(
    "raw",
    [
        "{}",
        "[]",
        '{"messages": []}',
        '{"messages": [{"role": "moderator"}]}',
        '"text"',
        "1",
        '{"messages": {}}',
        '{"type":"summary"}',
        '{"type":"turn"}',
        '{"type": 7}',
    ],
)
def test_what_holds_nothing_is_refused(raw: str) -> None:
    with pytest.raises(InvalidImportError):
        read_import(raw)


@pytest.mark.parametrize("raw", ["", "not json\n", "\n\n", "NaN", "[" * 100_000])
def test_what_is_no_json_is_refused(raw: str) -> None:
    with pytest.raises(BadJsonError):
        read_import(raw)


def test_a_repeated_import_answers_the_same_and_stores_nothing_more() -> None:
    service = filled(ArchiveService(), turns=3)
    text = exported(service)
    first = import_text(service, text)
    again = import_text(service, text)
    assert again.replayed
    assert again.body == first.body
    assert service.memory(COPY).session.committed_through == 3


def many(turns: int) -> str:
    lines = [
        {"type": "turn", "turn": number, "messages": plain_turn(number)}
        for number in range(1, turns + 1)
    ]
    return "\n".join(map(json.dumps, lines))


def test_an_import_of_many_turns_goes_on_where_time_ran_out() -> None:
    service = ArchiveService(pin_mode="off")
    text = many(2 * PART_TURNS + 5)
    left = iter([1.0, 0.0])
    content = read_import(text)
    answer = service.import_session(COPY, content, request("i", text), lambda: next(left))
    assert (answer.status, answer.body["complete"]) == (202, False)
    assert answer.body["turns_imported"] == PART_TURNS
    answer = service.import_session(COPY, content, request("i", text))
    assert (answer.status, answer.body["complete"]) == (201, True)
    assert len(messages_of(service, COPY)) == 2 * PART_TURNS + 5
    service.drain()
    assert_sound(service, COPY)


IMPORTED = 2 * PART_TURNS + 5


def import_calls() -> int:
    service, interference = watched(pin_mode="off")
    interference.log.clear()
    import_text(service, many(IMPORTED))
    return len([one for one in interference.log if one != "archive.put_record"])


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("call", ["store.read_session", "store.write", "store.get_turn"])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_crash_anywhere_in_an_import_is_made_good_by_the_same_request(
    call: str, at: int, late: bool
) -> None:
    service, interference = watched(pin_mode="off")
    seen = itertools.count(1)

    def crash(name: str, method: str, *_rest: object) -> None:
        if f"{name}.{method}" == call and next(seen) == at:
            raise Crash

    (interference.after if late else interference.before).append(crash)
    text = many(IMPORTED)
    with suppress(Crash):
        import_text(service, text)
    interference.before.clear()
    interference.after.clear()
    import_text(service, text)
    assert messages_of(service, COPY) == [plain_turn(n) for n in range(1, IMPORTED + 1)]
    assert service.verify(COPY).ok


def test_an_import_beside_commits_mixes_whole_parts() -> None:
    service, interference = watched(pin_mode="off")
    service.commit(plain_turn(900), COPY)
    done: list[object] = []

    def commit_too(name: str, method: str, *_rest: object) -> None:
        if (name, method) == ("archive", "put_record") and not done:
            done.append(True)
            service.commit(plain_turn(901), COPY)

    interference.before.append(commit_too)
    import_text(service, many(30))
    texts = [turn[0]["content"].split(":")[0] for turn in messages_of(service, COPY)]
    assert texts == ["Question 900", "Question 901", *[f"Question {n}" for n in range(1, 31)]]
    assert service.verify(COPY).ok


def test_an_import_goes_in_while_the_compactor_judges() -> None:
    service, interference = watched()
    for number in range(1, 41):
        service.commit(plain_turn(number))
    judged = itertools.count(1)

    def judge(name: str, method: str, *_rest: object) -> None:
        if (name, method) == ("archive", "put_record"):
            session = service.raw_store.sessions[KEY].session
            sets = {"judged_through": next(judged), "due_at": session.expires_at}
            service.raw_store.write(Change(key=KEY, epoch=session.epoch, sets=sets))

    interference.before.append(judge)
    lines = [json.dumps({"type": "turn", "messages": plain_turn(n)}) for n in range(3)]
    assert import_text(service, "\n".join(lines), KEY).status == 201
    after = service.raw_store.sessions[KEY].session
    assert (after.committed_through, after.judged_through) == (43, 3)
    assert after.due_at is not None
    assert after.due_at < after.expires_at


def test_pins_that_are_there_are_not_doubled() -> None:
    service = filled(ArchiveService(), turns=3)
    text = exported(service)
    import_text(service, text)
    import_text(service, text, name="another")
    assert len(service.memory(COPY).pins) == 1
    assert service.memory(COPY).session.committed_through == 6


# Fork --------------------------------------------------------------------------------------------


def stated(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]


def fork(service: ArchiveService, at: int | None, name: str = "f") -> Answer:
    return service.fork(KEY, COPY, at, request(name, {"at": at}))


@pytest.mark.parametrize("at", [1, 2, 3, 7, 11, 12, None])
def test_a_fork_is_a_copy_up_to_a_turn(at: int | None) -> None:
    service = filled(ArchiveService(model=ScriptedModel()))
    assert service.memory().summaries
    answer = fork(service, at)
    last = at or 12
    assert (answer.status, answer.body["turns"]) == (201, last)
    context = service.context.memory(COPY)
    assert context.session.committed_through == last
    assert messages_of(service, COPY) == messages_of(service, KEY)[:last]
    assert service.commit(plain_turn(99), COPY).body["turn"] == last + 1
    assert service.commit(plain_turn(13)).body["turn"] == 13
    service.drain()
    assert_sound(service, COPY)
    assert_sound(service, KEY)
    assert service.memory(COPY).session.user_id == "u"


def test_a_fork_that_takes_long_goes_on_request_by_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("turnfold.application.fork_session.SEGMENT_TURNS", 5)
    service = filled(ArchiveService(), turns=23)
    given = request("f", {"at": 22})
    for reads in (1, 2, 3, 4):
        with pytest.raises(ThrottledError):
            service.fork(KEY, COPY, 22, given, lambda: 0.0)
        assert len(service.raw_archive.list_segments(COPY)) == reads
        service.commit(plain_turn(23 + reads))
        service.drain_archive()
    assert service.fork(KEY, COPY, 22, given, lambda: 0.0).body["turns"] == 22
    assert messages_of(service, KEY)[:22] == [
        list(turn.messages)
        for turn in service.transcript.turns(service.context.memory(COPY).session, 1, 22)
    ]
    service.drain()
    assert_sound(service, COPY)


def test_a_fork_knows_no_facts_that_came_later() -> None:
    service = filled(ArchiveService())
    fork(service, 2)
    assert service.context.memory(COPY).pins == ()


def test_a_fork_knows_a_fact_that_was_replaced_later() -> None:
    service = ArchiveService()
    for text in ("I live in Oslo.", "What is 1?", "What is 2?", "I live in Lyon."):
        service.commit(stated(text))
        service.drain()
    assert [pin.text for pin in service.memory().pins] == ["I live in Lyon."]
    fork(service, 3)
    assert [pin.text for pin in service.context.memory(COPY).pins] == ["I live in Oslo."]


def test_a_fork_knows_facts_that_were_folded_with_later_ones() -> None:
    service = ArchiveService(max_pin_count=2)
    for thing in ("tea", "olives", "jazz", "walking", "rain"):
        service.commit(stated(f"I like {thing}."))
        service.drain()
    fork(service, 2)
    pins = service.context.memory(COPY).pins
    assert " ".join(pin.text for pin in pins) == "I like tea. I like olives."
    assert {pin.status for pin in pins} == {PinStatus.ACTIVE}


def test_a_fork_does_not_bring_back_what_was_corrected_by_hand() -> None:
    service = ArchiveService(max_pin_count=1)
    for thing in ("tea", "olives"):
        service.commit(stated(f"I like {thing}."))
        service.drain()
    (pin,) = service.memory().pins
    service.clock.now += timedelta(seconds=1)
    service.pins.change(KEY, pin.pin_id, pin_input({"text": "I like olives."}))
    fork(service, 1)
    assert service.context.memory(COPY).pins == ()


def test_facts_that_name_each_other_are_forked() -> None:
    service = filled(ArchiveService())
    text = exported(service)
    pin = json.loads(next(line for line in text.split("\n") if '"type":"pin"' in line))
    for name, other in (("a", "b"), ("b", "a")):
        members = {"pin_id": name, "replaces": other, "sources": [{"turn": 9}]}
        text += json.dumps(pin | members) + "\n"
    import_text(service, text)
    fork_key = SessionKey("tenant", "fork")
    service.fork(COPY, fork_key, 2, request("f"))
    assert service.context.memory(fork_key).pins == ()


def test_a_fork_mixes_no_two_lives_of_its_original(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnfold.application.fork_session.SEGMENT_TURNS", 5)
    service = filled(ArchiveService())
    given = request("f", {"at": 11})
    with pytest.raises(ThrottledError):
        service.fork(KEY, COPY, 11, given, lambda: 0.0)
    service.delete.session(KEY)
    service.drain_archive()
    filled(service)
    with pytest.raises(SessionErasingError):
        service.fork(KEY, COPY, 11, given)
    with pytest.raises(SessionNotFoundError):
        service.context.memory(COPY)


def test_a_fork_needs_a_free_id_and_turns_that_there_are() -> None:
    service = filled(ArchiveService())
    with pytest.raises(TurnNotFoundError):
        fork(service, 13)
    service.commit(plain_turn(1), COPY)
    with pytest.raises(SessionExistsError):
        fork(service, 3)
    with pytest.raises(SessionNotFoundError):
        service.fork(SessionKey("tenant", "no"), SessionKey("tenant", "x"), 1, request())
    assert len(messages_of(service, COPY)) == 1


def test_a_repeated_fork_answers_the_same() -> None:
    service = filled(ArchiveService())
    first = fork(service, 5)
    service.context.memory(COPY)
    again = fork(service, 5)
    assert again.replayed
    assert again.body == first.body


def fork_calls() -> int:
    service, interference = watched()
    filled(service)
    interference.log.clear()
    fork(service, 7)
    return len(interference.log)


FORK_CALLS = list(itertools.product(range(1, fork_calls() + 1), [False, True]))


@pytest.mark.parametrize(("at", "late"), FORK_CALLS)
def test_a_crash_while_forking_is_made_good_by_the_same_request(at: int, late: bool) -> None:
    service, interference = watched()
    filled(service)
    interference.crash_at(at, late=late)
    with suppress(Crash):
        fork(service, 7)
    interference.disarm()
    service.commit(plain_turn(13))
    assert fork(service, 7).body["turns"] == 7
    assert messages_of(service, COPY) == messages_of(service, KEY)[:7]
    service.context.memory(COPY)
    service.drain()
    assert_sound(service, COPY)


@pytest.mark.parametrize(("at", "late"), FORK_CALLS)
def test_a_fork_that_nobody_finishes_is_cleared_away(at: int, late: bool) -> None:
    service, interference = watched()
    filled(service)
    interference.crash_at(at, late=late)
    with suppress(Crash):
        fork(service, 7)
    interference.disarm()
    with suppress(SessionNotFoundError):
        service.context.memory(COPY)
    for _ in range(3):
        service.clock.now += timedelta(seconds=ABANDONED_SECONDS + 1)
        service.sweep()
        service.drain_archive()
    stored = service.raw_store.sessions.get(COPY)
    if stored is None:
        assert service.objects_of(COPY) == []
        service.commit(plain_turn(1), COPY)
    else:
        assert stored.session.status is not SessionStatus.FORKING
    assert_sound(service, KEY)


# Rebuild -----------------------------------------------------------------------------------------


def rebuild(service: ArchiveService, key: SessionKey = KEY) -> None:
    service.request_rebuild(key)
    service.drain()


@pytest.mark.parametrize("model", [None, ScriptedModel()])
def test_a_rebuild_makes_memory_anew_and_keeps_the_rest(model: ScriptedModel | None) -> None:
    service = filled(ArchiveService(model=model))
    before = service.memory()
    texts = messages_of(service, KEY)
    rebuild(service)
    after = service.memory()
    assert not after.session.rebuild
    assert after.session.committed_through == 12
    assert [pin.text for pin in after.pins] == [pin.text for pin in before.pins]
    assert after.profile == before.profile
    assert after.session.judged_through == 12
    assert messages_of(service, KEY) == texts
    assert_sound(service, KEY)
    assert service.commit(plain_turn(13)).body["turn"] == 13
    service.drain()
    assert_sound(service, KEY)


def test_a_rebuild_applies_other_limits() -> None:
    service = filled(ArchiveService())
    service.sessions.patch(KEY, SessionInput(settings={"tail_size": 8, "window_max_size": 50}))
    service.drain()
    rebuild(service)
    memory = service.memory()
    assert memory.summaries == ()
    assert len(memory.turns) == 12


def test_a_damaged_memory_is_made_whole() -> None:
    service = filled(ArchiveService())
    stored = service.raw_store.sessions[KEY]
    stored.summaries.clear()
    stored.turns.pop(12)
    with pytest.raises(StoreError):
        service.raw_store.load(KEY)
    rebuild(service)
    assert_sound(service, KEY)
    assert service.memory().turns[-1].number == 12


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_damaged_memory_gets_its_judged_facts_again(by_hand: bool) -> None:
    service = ArchiveService()
    walnuts = [{"role": "user", "content": "I am allergic to walnuts."}, plain_turn(1)[1]]
    service.commit(walnuts)
    service.commit_plain(6, start=2)
    if by_hand:
        service.pins.add(KEY, pin_input({"text": "Likes tea."}), request("tea"))
    service.drain()
    wanted = sorted(pin.text for pin in service.memory().pins)
    assert len(wanted) == 1 + by_hand
    service.raw_store.sessions[KEY].turns.pop(7)
    rebuild(service)
    assert sorted(pin.text for pin in service.context.memory(KEY).pins) == wanted
    assert_sound(service, KEY)


def test_a_lost_snapshot_is_made_up_for() -> None:
    service = filled(ArchiveService())
    service.clock.now += timedelta(days=8)
    service.put_away(KEY)
    service.snapshots.remove(KEY, service.snapshots.names(KEY))
    rebuild(service)
    assert service.context.memory(KEY).session.committed_through == 12
    assert_sound(service, KEY)


def test_a_lost_table_is_made_anew_from_the_archive() -> None:
    service = ArchiveService(model=ScriptedModel())
    keys = [SessionKey("tenant", f"s{number}") for number in range(1, 4)]
    for key in keys:
        filled(service, 40, key)
        service.drain_archive()
    texts = {key: messages_of(service, key) for key in keys}
    service.raw_store.sessions.clear()
    for key in keys:
        rebuild(service, key)
    for key in keys:
        memory = service.context.memory(key)
        assert memory.session.committed_through == 40
        assert memory.session.user_id == "u"
        assert messages_of(service, key) == texts[key]
        assert_sound(service, key)
        assert service.commit(plain_turn(41), key).body["turn"] == 41


def test_a_lost_table_gives_back_pins_and_settings_of_a_snapshot() -> None:
    service = filled(ArchiveService())
    service.clock.now += timedelta(days=8)
    service.put_away(KEY)
    service.raw_store.sessions.clear()
    rebuild(service)
    memory = service.context.memory(KEY)
    assert memory.session.settings.head_size == 2
    assert [pin.text for pin in memory.pins] == ["second fact"]
    assert memory.profile.metadata == {"plan": "gold"}
    assert memory.profile.system[0]["content"] == "Be kind."


def test_a_lost_table_gives_back_what_was_changed_by_hand() -> None:
    service = filled(ArchiveService())
    service.sessions.patch(KEY, SessionInput(settings={"tail_size": 3}, legal_hold=True))
    fork(service, None)
    import_text(service, exported(service), SessionKey("tenant", "imported"))
    keys = (KEY, COPY, SessionKey("tenant", "imported"))
    pins = {key: service.context.memory(key).pins for key in keys}
    service.raw_store.sessions.clear()
    for key in keys:
        rebuild(service, key)
        memory = service.context.memory(key)
        assert [pin.text for pin in memory.pins] == [pin.text for pin in pins[key]]
        assert memory.session.settings.tail_size == 3
        assert memory.profile.system[0]["content"] == "Be kind."
    with pytest.raises(LegalHoldError):
        service.delete.session(KEY)
    service.delete.session(COPY)


def test_the_newest_snapshot_counts_when_the_table_is_lost() -> None:
    """What rested and came back was changed since; and the other way round."""
    service = filled(ArchiveService())
    for text in ("third fact", "fourth fact"):
        service.clock.now += timedelta(days=8)
        service.put_away(KEY)
        given = pin_input({"text": text})
        service.pins.add(KEY, given, request(text))
    wanted = [pin.text for pin in service.memory().pins]
    assert "fourth fact" in wanted
    service.raw_store.sessions.clear()
    rebuild(service)
    assert [pin.text for pin in service.context.memory(KEY).pins] == wanted
    pin = service.memory().pins[0]
    service.pins.remove(KEY, pin.pin_id)
    service.clock.now += timedelta(days=8)
    service.put_away(KEY)
    service.raw_store.sessions.clear()
    rebuild(service)
    assert [one.text for one in service.context.memory(KEY).pins] == wanted[1:]


def test_what_is_said_of_a_fork_is_newer_than_its_original() -> None:
    service = filled(ArchiveService(), turns=30)
    fork(service, 11)
    service.pins.add(COPY, pin_input({"text": "of the copy"}), request("hand"))
    service.sessions.patch(COPY, SessionInput(settings={"tail_size": 3}, legal_hold=True))
    service.raw_store.sessions.clear()
    rebuild(service, COPY)
    memory = service.context.memory(COPY)
    assert "of the copy" in [pin.text for pin in memory.pins]
    assert (memory.session.settings.tail_size, memory.session.legal_hold) == (3, True)


def test_system_messages_by_hand_outlive_those_of_earlier_turns() -> None:
    service = ArchiveService()
    service.commit([{"role": "system", "content": "Of turn 1."}, *plain_turn(1)])
    service.sessions.patch(KEY, SessionInput(system=({"role": "system", "content": "By hand."},)))
    service.commit(plain_turn(2))
    service.raw_store.sessions.clear()
    rebuild(service)
    assert service.context.memory(KEY).profile.system[0]["content"] == "By hand."
    service.commit([{"role": "system", "content": "Of turn 3."}, *plain_turn(3)])
    service.raw_store.sessions.clear()
    rebuild(service)
    assert service.context.memory(KEY).profile.system[0]["content"] == "Of turn 3."


@pytest.mark.parametrize("rested", [False, True])
def test_what_is_said_between_two_losses_is_kept(rested: bool) -> None:
    service = filled(ArchiveService())
    if rested:
        service.clock.now += timedelta(days=8)
        service.put_away(KEY)
    for text in ("after one loss", "after two losses"):
        service.raw_store.sessions.clear()
        rebuild(service)
        service.pins.add(KEY, pin_input({"text": text}), request(text))
        service.sessions.patch(KEY, SessionInput(metadata={"said": text}))
    service.raw_store.sessions.clear()
    rebuild(service)
    texts = [pin.text for pin in service.context.memory(KEY).pins]
    assert texts[-2:] == ["after one loss", "after two losses"]


def test_what_is_said_after_a_rebuild_is_newer_than_it() -> None:
    """An import writes many turns at once, a rebuild commits them one by one."""
    service = ArchiveService()
    lines = [json.dumps({"type": "turn", "messages": plain_turn(n)}) for n in range(1, 61)]
    import_text(service, "\n".join(lines), KEY)
    rebuild(service)
    service.context.memory(KEY)
    service.sessions.patch(KEY, SessionInput(settings={"tail_size": 3}))
    service.raw_store.sessions.clear()
    rebuild(service)
    assert service.context.memory(KEY).session.settings.tail_size == 3


@pytest.mark.parametrize("late", [False, True])
def test_of_two_changes_at_once_both_are_kept(late: bool) -> None:
    service, interference = watched()
    filled(service)
    done: list[object] = []

    def change_too(name: str, method: str, *_rest: object) -> None:
        if (name, method) == ("snapshots", "put") and not done:
            done.append(True)
            service.pins.add(KEY, pin_input({"text": "another fact"}), request("another"))

    (interference.after if late else interference.before).append(change_too)
    service.pins.add(KEY, pin_input({"text": "one fact"}), request("one"))
    assert done
    service.raw_store.sessions.clear()
    rebuild(service)
    texts = {pin.text for pin in service.context.memory(KEY).pins}
    assert texts >= {"one fact", "another fact"}


def test_a_change_stands_though_it_cannot_be_kept() -> None:
    service, interference = watched()
    filled(service)

    def fail(name: str, *_rest: object) -> None:
        if name == "snapshots":
            raise StoreError("down")

    interference.before.append(fail)
    service.pins.add(KEY, pin_input({"text": "one fact"}), request("one"))
    assert "one fact" in {pin.text for pin in service.memory().pins}


@pytest.mark.parametrize("lost", [False, True])
def test_a_rebuild_goes_on_where_time_ran_out(lost: bool) -> None:
    model = ScriptedModel()
    service = filled(ArchiveService(model=model), turns=100)
    whole = ArchiveService(model=ScriptedModel())
    filled(whole, turns=100)
    rebuild(whole)
    if lost:
        service.raw_store.sessions.clear()
    service.request_rebuild(KEY)
    runs = 0
    while service.raw_store.sessions[KEY].session.rebuild:
        session = service.raw_store.sessions[KEY].session
        left = iter([1.0, 1.0, 0.0])
        service.rebuild(session, lambda left=left: next(left))  # type: ignore[misc]  # mypy infers no lambda with a default
        runs += 1
        assert runs < 9
    assert runs > 2
    assert_sound(service, KEY)
    memory = service.context.memory(KEY)
    assert memory.session.committed_through == 100
    if not lost:
        assert memory.session.manifest == whole.memory().session.manifest
    assert not [name for name in service.snapshots.names(KEY) if name.startswith("checkpoint")]


def test_what_has_no_transcript_is_not_rebuilt() -> None:
    service = filled(ArchiveService())
    with pytest.raises(SessionNotFoundError):
        service.request_rebuild(COPY)
    service.delete.session(KEY)
    with pytest.raises(SessionNotFoundError):
        service.request_rebuild(KEY)
    service.drain_archive()
    with pytest.raises(SessionNotFoundError):
        service.request_rebuild(KEY)


def test_a_commit_during_a_rebuild_is_not_lost() -> None:
    service, interference = watched()
    filled(service)
    done: list[object] = []

    def commit_too(name: str, method: str, *_rest: object) -> None:
        if (name, method) == ("snapshots", "put") and not done:
            done.append(service.commit(plain_turn(13)))

    interference.before.append(commit_too)
    rebuild(service)
    assert done
    assert service.memory().session.committed_through == 13
    assert not service.memory().session.rebuild
    assert_sound(service, KEY)


def rebuild_calls(*, lost: bool) -> int:
    service, interference = watched()
    filled(service)
    if lost:
        service.raw_store.sessions.clear()
    interference.log.clear()
    service.request_rebuild(KEY)
    service.ring()
    return len(interference.log)


@pytest.mark.parametrize(
    ("at", "late"), list(itertools.product(range(1, rebuild_calls(lost=False) + 1), [False, True]))
)
def test_a_crash_while_rebuilding_is_made_good_by_the_sweeper(at: int, late: bool) -> None:
    crash_while_rebuilding(at, late=late, lost=False)


@pytest.mark.parametrize(
    ("at", "late"), list(itertools.product(range(1, rebuild_calls(lost=True) + 1), [False, True]))
)
def test_a_crash_while_recovering_is_made_good_by_the_sweeper(at: int, late: bool) -> None:
    crash_while_rebuilding(at, late=late, lost=True)


def crash_while_rebuilding(at: int, *, late: bool, lost: bool) -> None:
    service, interference = watched()
    filled(service)
    if lost:
        service.raw_store.sessions.clear()
    interference.crash_at(at, late=late)
    with suppress(Crash):
        service.request_rebuild(KEY)
        service.ring()
    interference.disarm()
    if KEY not in service.raw_store.sessions or not (
        service.raw_store.sessions[KEY].session.rebuild
        or service.raw_store.sessions[KEY].session.is_away
    ):
        with suppress(SessionNotFoundError):
            service.request_rebuild(KEY)
    for _ in range(2):
        service.clock.now += timedelta(seconds=300)
        service.sweep()
        service.drain()
    memory = service.context.memory(KEY)
    assert memory.session.committed_through == 12
    assert not memory.session.rebuild
    service.drain()
    assert_sound(service, KEY)


def test_an_erasure_during_a_rebuild_leaves_nothing() -> None:
    service, interference = watched()
    filled(service)
    interference.log.clear()
    for at in range(1, rebuild_calls(lost=False) + 1, 3):
        service, interference = watched()
        filled(service)
        interference.arm(at, lambda s=service: s.delete.session(KEY))  # type: ignore[misc]  # mypy infers no lambda with a default
        with suppress(StoreError, SessionNotFoundError):
            service.request_rebuild(KEY)
            service.ring()
        if interference.disarm():
            service.delete.session(KEY)
        service.drain_archive()
        service.drain()
        assert KEY not in service.raw_store.sessions
        assert service.objects_of() == []
