"""Chat completions with a session: what the model is asked, and what is remembered when."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_completions import FakeCompletions, calling, result, spoken
from support.interference import Crash, Interference
from support.service import KEY, Service, plain_turn
from turnfold.adapters.in_memory_open_turns import InMemoryOpenTurns
from turnfold.application.answer import IdempotentRequest
from turnfold.application.import_session import ImportSession
from turnfold.application.remember_completions import (
    Completion,
    CompletionRequest,
    CompletionStream,
    RememberCompletions,
)
from turnfold.application.sessions import SessionInput
from turnfold.application.take_history import TakeHistory
from turnfold.domain.errors import (
    BudgetTooSmallError,
    IdempotencyMismatchError,
    IncompleteTurnError,
    InvalidMessagesError,
    ModelFailedError,
    ModelNotConfiguredError,
    SessionErasingError,
    SessionNotFoundError,
    StoreUnavailableError,
    TurnTooLargeError,
)
from turnfold.domain.open_turn import OPEN_MINUTES
from turnfold.domain.sessions import SessionStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

type Json = dict[str, Any]

SYSTEM = {"role": "system", "content": "Be brief."}
_keys = itertools.count(1)


def user(text: str = "How far?") -> Json:
    return {"role": "user", "content": text}


def assistant(text: str = "Fine.") -> Json:
    return {"role": "assistant", "content": text}


@dataclass
class Door:
    """The use case over the in-memory service."""

    service: Service = field(default_factory=lambda: Service(pin_mode="off"))
    model: FakeCompletions = field(default_factory=FakeCompletions)

    def __post_init__(self) -> None:
        service = self.service
        self.raw_drafts = InMemoryOpenTurns(service.raw_store, service.clock)
        imports = ImportSession(
            store=service.store,
            archive=service.archive,
            doorbell=service.doorbell,
            archive_bell=service.archive_bell,
            counter=service.counter,
            clock=service.clock,
            new_id=service.new_id,
            defaults=service.defaults,
        )
        self.use_case = RememberCompletions(
            store=service.store,
            drafts=self.raw_drafts,
            model=self.model,
            commit=service.commit_turn,
            turns=service.turns,
            context=service.context,
            take_history=TakeHistory(imports),
        )

    def request(self, messages: Any, key: str | None, **members: Any) -> tuple[Any, ...]:
        budget = members.pop("max_context_tokens", None)
        body = {"model": "talker", "messages": messages, **members}
        name = key or f"made-{next(_keys)}"
        request = IdempotentRequest.of("POST completions", name, body)
        return KEY, CompletionRequest(body, budget), request

    def ask(self, *messages: Json, key: str | None = None, **members: Any) -> Completion:
        return self.use_case(*self.request(list(messages), key, **members))

    def stream(self, *messages: Json, key: str | None = None, **members: Any) -> CompletionStream:
        return self.use_case.stream(*self.request(list(messages), key, **members))

    @property
    def asked(self) -> list[Json]:
        """The messages of the last request to the model."""
        return list(self.model.asked[-1]["messages"])

    @property
    def turns(self) -> list[list[Mapping[str, Any]]]:
        """All committed turns."""
        memory = self.service.raw_store.load(KEY)
        if memory is None:
            return []
        numbers = range(1, memory.session.committed_through + 1)
        return [list(self.service.turns.one(KEY, number).messages) for number in numbers]

    @property
    def open_turn(self) -> list[Mapping[str, Any]]:
        found, _ = self.raw_drafts.read_open_turn(KEY)
        return list(found.messages) if found else []


@pytest.fixture
def door() -> Door:
    return Door()


def text_of(completion: Completion) -> str:
    text: str = completion.body["choices"][0]["message"]["content"]
    return text


# ----------------------------------------------------------------------------- context and commit


def test_memory_goes_between_the_system_messages_and_what_is_new(door: Door) -> None:
    door.service.commit([{"role": "system", "content": "Old."}, *plain_turn(1)])
    done = door.ask(SYSTEM, user(), temperature=0.5, unknown={"a": [1]})
    assert door.asked == [SYSTEM, *plain_turn(1), user()]
    sent = {name: value for name, value in door.model.asked[0].items() if name != "messages"}
    assert sent == {"model": "talker", "temperature": 0.5, "unknown": {"a": [1]}}
    assert (text_of(done), done.kept, done.replayed) == ("Fine.", True, False)
    assert door.turns[1] == [SYSTEM, user(), assistant()]
    assert door.service.memory().profile.system == (SYSTEM,)


def test_the_sessions_own_system_messages_stand_where_none_are_sent(door: Door) -> None:
    door.service.commit([SYSTEM, *plain_turn(1)])
    door.ask(user())
    assert door.asked == [SYSTEM, *plain_turn(1), user()]
    assert door.turns[1] == [user(), assistant()]


def test_the_answer_is_given_as_it_came(door: Door) -> None:
    door.ask(user())
    whole = {"id": "c", "extra": 1, "choices": [{"message": spoken(), "finish_reason": "stop"}]}
    door.model.replies = [whole]
    assert door.ask(user()).body is whole


def test_the_context_keeps_to_its_budget(door: Door) -> None:
    door.service.commit_plain(5, words=100)
    door.ask(user(), max_context_tokens=300)
    words = sum(len(str(one["content"]).encode()) for one in door.asked)
    assert words < 300 * 4
    for service in (door.service, Service()):
        with pytest.raises(BudgetTooSmallError):
            Door(service).ask(user("long " * 100), max_context_tokens=50)


def test_the_ledger_counts_what_was_asked(door: Door) -> None:
    door.model.replies = [calling("c1"), spoken()]
    door.ask(user("first"))  # there is no session yet that could count it
    door.ask(result("c1"))
    door.model.replies = [calling("c2"), spoken()]
    door.ask(user("second"))
    door.ask(result("c2"))
    (usage,) = door.service.raw_store.read_usage(KEY)
    assert (usage.step, usage.model, usage.calls) == ("chat", "talker", 3)
    assert (usage.prompt_tokens, usage.completion_tokens) == (33, 21)


# ---------------------------------------------------------------------------------- whole history


def test_a_history_that_is_sent_each_time_is_neither_sent_nor_committed_twice(door: Door) -> None:
    history: list[Json] = [SYSTEM]
    for number in range(1, 8):
        door.model.replies = [spoken(f"Answer {number}.")]
        history.append(user(f"Question {number}?"))
        done = door.ask(*history)
        history.append(done.body["choices"][0]["message"])
        texts = [one["content"] for one in door.asked]
        assert [texts.count(f"Question {at}?") for at in range(1, number + 1)] == [1] * number
    assert [turn[-1]["content"] for turn in door.turns] == [f"Answer {n}." for n in range(1, 8)]


def test_a_history_is_known_also_where_its_beginning_was_folded(door: Door) -> None:
    door.service.commit_plain(12, words=80)
    door.service.drain()
    assert door.service.memory().summaries
    history = [message for number in range(1, 13) for message in plain_turn(number, words=80)]
    door.ask(*history, user())
    assert door.asked[-1] == user()
    assert len(door.asked) < len(history)
    assert len(door.turns) == 13


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5])
def test_a_history_may_be_cut_to_its_end(door: Door, cut: int) -> None:
    door.service.commit_plain(3)
    history = [message for number in range(1, 4) for message in plain_turn(number)]
    door.ask(*history[-cut:], user())
    assert len(door.turns) == 4
    assert door.turns[3] == [user(), assistant()]
    assert len(door.asked) == 7


def test_tool_exchanges_that_a_client_leaves_out_of_its_history_do_not_matter(door: Door) -> None:
    exchange = [user("look"), calling("c1"), result("c1"), assistant("Seen.")]
    door.service.commit(exchange)
    door.ask(user("look"), assistant("Seen."), user())
    door.ask(*exchange, user(), assistant(), user("more"))
    assert len(door.turns) == 3


def test_content_in_parts_is_the_same_as_a_text(door: Door) -> None:
    door.service.commit([user("hi"), assistant("hello")])
    parts = [{"type": "text", "text": "hi"}]
    door.ask({"role": "user", "content": parts}, assistant("hello"), user())
    assert len(door.turns) == 2


def test_a_history_that_is_new_is_sent_and_becomes_turns(door: Door) -> None:
    brought = [user("one"), assistant("1"), user("two"), calling("c"), result("c"), assistant("2")]
    door.ask(*brought, user())
    assert door.asked == [*brought[:3], *door.asked[3:4], *brought[4:], user()]
    assert door.turns == [brought[:2], brought[2:], [user(), assistant()]]
    door.ask(*brought, user(), assistant(), user("more"))
    assert len(door.turns) == 4


def test_only_what_follows_the_last_known_turn_is_new(door: Door) -> None:
    door.service.commit_plain(2)
    missed = [user("missed"), assistant("yes")]
    door.ask(*plain_turn(1), *plain_turn(2), *missed, user())
    assert door.asked == [*plain_turn(1), *plain_turn(2), *missed, user()]
    assert door.turns[2:] == [missed, [user(), assistant()]]


def test_a_client_that_is_behind_repeats_folded_turns(door: Door) -> None:
    door.service.commit_plain(12, words=80)
    door.service.drain()
    folded = [turn for number in range(1, 6) for turn in plain_turn(number, words=80)]
    assert door.service.memory().summaries[0].to_turn > 5
    door.ask(*folded, user("a"), assistant("b"), user())
    assert door.turns[12:] == [[user("a"), assistant("b")], [user(), assistant()]]
    assert door.asked[-3:] == [user("a"), assistant("b"), user()]
    assert plain_turn(2, words=80)[0] not in door.asked


def test_many_folded_turns_are_known_again(door: Door) -> None:
    door.service.commit_plain(140)
    door.service.drain()
    door.ask(*(message for number in range(1, 136) for message in plain_turn(number)), user())
    assert len(door.turns) == 141


@pytest.mark.parametrize("begun", [0, 3])
def test_examples_before_each_question_are_committed_once(door: Door, begun: int) -> None:
    """Also where they do not begin the session, and are no longer recognised."""
    door.service.commit_plain(begun, words=80)
    examples = [message for number in range(20, 23) for message in plain_turn(number, words=80)]
    for number in range(8):
        door.ask(*examples, *plain_turn(number + 50, words=80)[:1])
        door.service.drain()
    assert door.service.memory().session.compacted_through > begun + 3
    assert len(door.turns) == begun + 3 + 8


def test_a_history_that_takes_long_goes_in_by_and_by(door: Door) -> None:
    clock = itertools.count(step=11)
    door.use_case = replace(door.use_case, monotonic=lambda: float(next(clock)))
    history = [message for number in range(1, 201) for message in plain_turn(number)]
    done = door.ask(*history, user())
    assert (text_of(done), done.kept) == ("Fine.", False)
    assert 0 < len(door.turns) < 200
    history += [user(), assistant()]
    while not done.kept:
        before = len(door.turns)
        done = door.ask(*history, user("more"))
        assert len(door.turns) > before
    assert door.turns == [plain_turn(number) for number in range(1, 201)] + [
        [user(), assistant()],
        [user("more"), assistant()],
    ]


def test_a_new_history_is_kept_with_an_open_turn(door: Door) -> None:
    brought = [user("one"), assistant("1")]
    door.model.replies = [calling("c1"), spoken("Done.")]
    door.ask(*brought, user())
    assert door.turns == [brought]
    door.ask(*brought, user(), calling("c1"), result("c1"))
    assert [turn[-1]["content"] for turn in door.turns] == ["1", "Done."]


def test_if_the_model_fails_nothing_is_committed_of_a_history_either(door: Door) -> None:
    door.model.replies = [ModelFailedError("down", 500)]
    with pytest.raises(ModelFailedError):
        door.ask(user("one"), assistant("1"), user())
    assert door.service.raw_store.load(KEY) is None


def test_a_greeting_is_sent_but_belongs_to_no_turn(door: Door) -> None:
    greeting = assistant("Welcome!")
    door.ask(greeting, user())
    assert door.asked == [greeting, user()]
    assert door.turns == [[user(), assistant()]]


def test_an_answer_that_said_nothing_is_left_out_of_a_history(door: Door) -> None:
    door.ask(user("one"), assistant(""), user("two"))
    assert door.turns == [[user("one"), user("two"), assistant()]]


# -------------------------------------------------------------------------------------- open turns


@pytest.mark.parametrize("whole", [True, False])
def test_an_answer_with_tool_calls_is_completed_by_the_next_requests(
    door: Door, *, whole: bool
) -> None:
    door.service.commit_plain(1)
    door.model.replies = [calling("c1", "c2"), calling("c3"), spoken("Done.")]
    history: list[Json] = [SYSTEM, user("look")]
    first = door.ask(*history)
    assert first.body["choices"][0]["finish_reason"] == "tool_calls"
    assert len(door.turns) == 1
    history += [calling("c1", "c2"), result("c1"), result("c2", "43")]
    door.ask(*(history if whole else history[-2:]))
    assert len(door.turns) == 1
    history += [calling("c3"), result("c3")]
    door.ask(*(history if whole else history[-1:]))
    assert door.asked[:1] == [SYSTEM]
    assert door.asked[1:3] == plain_turn(1)
    assert [one["role"] for one in door.asked[3:]] == [one["role"] for one in history[1:]]
    (_, turn) = door.turns
    assert [one["role"] for one in turn] == [*(one["role"] for one in history), "assistant"]
    assert turn[-1]["content"] == "Done."
    assert door.open_turn == []


def test_results_without_an_open_call_are_refused_unpaid(door: Door) -> None:
    for messages in ([result("c1")], [user(), assistant(), result("c1")]):
        with pytest.raises(InvalidMessagesError):
            door.ask(*messages)
    door.model.replies = [calling("c1", "c2")]
    door.ask(user())
    for messages in ([result("c9")], [result("c1")], [calling("c9"), result("c9")]):
        with pytest.raises(InvalidMessagesError):
            door.ask(*messages)
    assert len(door.model.asked) == 1
    assert [one["role"] for one in door.open_turn] == ["user", "assistant"]


def test_an_open_turn_that_is_over_is_no_loss_for_a_client_that_sends_all(door: Door) -> None:
    door.model.replies = [calling("c1"), spoken("Done.")]
    door.ask(user())
    door.service.clock.advance(OPEN_MINUTES * 60 + 1)
    with pytest.raises(InvalidMessagesError):
        door.ask(result("c1"))
    door.ask(user(), calling("c1"), result("c1"))
    ((*_, last),) = door.turns
    assert last["content"] == "Done."


def test_another_question_takes_the_place_of_an_open_turn(door: Door) -> None:
    door.model.replies = [calling("c1"), calling("c2"), spoken("Done.")]
    door.ask(user("first"))
    door.ask(user("second"))
    assert [one.get("content") for one in door.open_turn] == ["second", None]
    done = door.ask(user("third"))
    assert done.kept
    assert door.turns == [[user("third"), assistant("Done.")]]
    assert door.open_turn == []


def test_a_repetition_of_the_question_does_not_double_it(door: Door) -> None:
    door.model.replies = [calling("c1"), spoken("Done.")]
    door.ask(user())
    door.ask(user())
    assert door.turns == [[user(), assistant("Done.")]]


def test_an_append_meanwhile_lets_the_commit_fail_but_gives_the_answer(door: Door) -> None:
    door.model.replies = [calling("c1"), spoken("Done.")]
    door.ask(user())

    def append() -> None:
        found, _ = door.raw_drafts.read_open_turn(KEY)
        assert found is not None
        request = IdempotentRequest.of("append", "k", {})
        record = request.record(201, {}, door.service.clock())
        door.raw_drafts.append_open_turn(KEY, found.ref, "id", [result("c1")], record)

    door.model.before = append
    done = door.ask(result("c1"))
    assert (text_of(done), done.kept) == ("Done.", False)
    assert door.turns == []
    assert len(door.open_turn) == 3


def test_results_with_another_question_are_refused_and_leave_the_turn_open(door: Door) -> None:
    door.model.replies = [calling("c1"), spoken("Done.")]
    door.ask(user())
    with pytest.raises(IncompleteTurnError):
        door.ask(result("c1"), user("And then?"))
    assert len(door.model.asked) == 1
    door.ask(result("c1"))
    assert len(door.turns) == 1


def test_an_open_turn_is_shortened_to_a_budget(door: Door) -> None:
    door.service.commit_plain(1)
    door.model.replies = [calling("c1"), calling("c2"), spoken()]
    door.ask(user())
    door.ask(result("c1", "long " * 2000))
    done = door.ask(result("c2"), max_context_tokens=400)
    assert done.kept
    assert len(str(door.asked)) < 2500
    assert door.turns[1][2] == result("c1", "long " * 2000)


# ------------------------------------------------------------------------------------- repetitions


@pytest.mark.parametrize("streamed", [True, False])
def test_a_repetition_is_answered_without_the_model(door: Door, *, streamed: bool) -> None:
    first = door.ask(user(), key="k")
    if streamed:
        stream = door.stream(user(), key="k")
        assert stream.replayed
        chunks = list(stream.chunks)
        assert "".join(one["choices"][0]["delta"].get("content", "") for one in chunks) == "Fine."
    else:
        again = door.ask(user(), key="k")
        assert again.replayed
        assert again.body == first.body
    assert len(door.model.asked) == 1
    assert len(door.turns) == 1
    with pytest.raises(IdempotencyMismatchError):
        door.ask(user("other"), key="k")


def test_a_repetition_of_tool_calls_is_answered_the_same_also_when_they_are_done(
    door: Door,
) -> None:
    door.model.replies = [calling("c1"), spoken("Done.")]
    first = door.ask(user(), key="k")
    assert door.ask(user(), key="k").body == first.body
    door.ask(result("c1"))
    again = door.ask(user(), key="k")
    calls = [one.body["choices"][0]["message"]["tool_calls"] for one in (first, again)]
    assert calls[0] == calls[1]
    assert again.replayed
    assert len(door.turns) == 1


def test_a_request_that_was_answered_meanwhile_gives_that_answer(door: Door) -> None:
    def overtake() -> None:
        door.model.before = lambda: None
        door.ask(user(), key="k")

    door.model.before = overtake
    # The one that overtakes is the second to be asked, and the first to be answered.
    door.model.replies = [spoken("Overtaking."), spoken("Overtaken.")]
    done = door.ask(user(), key="k")
    assert door.turns == [[user(), assistant("Overtaking.")]]
    assert (text_of(done), done.replayed) == ("Overtaking.", True)


@pytest.mark.parametrize("reply", [spoken("Done."), calling("c1")], ids=["answer", "calls"])
@pytest.mark.parametrize("late", [False, True])
def test_a_process_that_dies_anywhere_leaves_one_turn_to_its_repetition(
    reply: Json, *, late: bool
) -> None:
    brought = [user("one"), assistant("1")]
    for at in itertools.count(1):
        interference = Interference()
        door = Door(Service(wrap=interference.wrap, pin_mode="off"))
        door.model.replies = [reply]
        interference.crash_at(at, late=late)
        try:
            door.ask(*brought, user(), key="k")
        except Crash:
            assert len(door.turns) in (0, 1, 2)
        if interference.disarm():
            assert at > 5
            return
        door.ask(*brought, user(), key="k")
        if reply.get("tool_calls"):
            door.model.replies = [spoken("Done.")]
            door.ask(result("c1"))
        assert [turn[-1]["content"] for turn in door.turns] == ["1", "Done."]


# ------------------------------------------------------------------------ what is not committed


@pytest.mark.parametrize(
    "failing", [ModelFailedError("down", 503), {"choices": []}, {"choices": [{"message": None}]}]
)
def test_a_model_that_fails_commits_nothing(door: Door, failing: Any) -> None:
    door.service.commit_plain(1)
    door.model.replies = [failing]
    with pytest.raises(ModelFailedError):
        door.ask(user())
    assert len(door.turns) == 1
    assert len(door.service.raw_archive.list_records(KEY, 1, 9)) == 1


@pytest.mark.parametrize(
    ("reply", "reason", "kept"),
    [
        (spoken("cut o"), "length", True),
        ({"role": "assistant", "content": None, "refusal": "No."}, "stop", True),
        (spoken("Half of"), "content_filter", False),
        (spoken(""), "content_filter", False),
        (spoken("  "), "stop", False),
        (spoken(""), "length", False),
        ({"role": "assistant", "content": 7}, "stop", False),
        ({"role": "assistant", "content": None, "function_call": {"name": "f"}}, "stop", False),
    ],
    ids=str,
)
def test_what_of_odd_answers_is_remembered(
    door: Door, reply: Json, reason: str, *, kept: bool
) -> None:
    door.model.replies, door.model.finish_reason = [reply], reason
    done = door.ask(user())
    assert done.body["choices"][0]["message"] == reply
    assert done.kept == kept
    assert len(door.turns) == kept


def test_tool_calls_that_were_cut_off_are_not_left_open(door: Door) -> None:
    cut = {"choices": [{"message": calling("c1"), "finish_reason": "length"}]}
    door.model.replies = [cut]
    assert not door.ask(user()).kept
    assert door.open_turn == []


@pytest.mark.parametrize("method", ["put_record", "write"])
def test_an_answer_is_given_even_if_it_cannot_be_committed(method: str) -> None:
    interference = Interference()
    door = Door(Service(wrap=interference.wrap))
    door.service.commit_plain(1)

    def fail(_port: str, called: str, _given: tuple[Any, ...]) -> None:
        if called == method:
            raise StoreUnavailableError("away")

    interference.before.append(fail)
    done = door.ask(user(), key="k")
    assert (text_of(done), done.kept) == ("Fine.", False)
    interference.before.clear()
    again = door.ask(user(), key="k")
    assert (again.kept, again.replayed) == (True, False)
    assert len(door.turns) == 2


def test_an_answer_is_given_even_if_the_session_vanishes(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any, **__: Any) -> None:
        raise SessionNotFoundError("gone")

    monkeypatch.setattr(type(door.use_case.commit), "__call__", gone)
    assert not door.ask(user()).kept
    assert door.model.asked


def test_an_answer_that_makes_the_turn_too_large_is_given_all_the_same(door: Door) -> None:
    door.model.replies = [spoken("y" * 600_000)]
    done = door.ask(user("x" * 600_000))
    assert not done.kept
    assert len(text_of(done)) == 600_000


# ---------------------------------------------------------------------------------------- streams


def test_a_stream_is_committed_at_its_end(door: Door) -> None:
    door.service.commit_plain(1)
    stream = door.stream(user())
    first = next(stream.chunks)
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert len(door.turns) == 1
    chunks = list(stream.chunks)
    assert stream.kept
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert door.turns[1] == [user(), assistant()]


@pytest.mark.parametrize("wanted", [True, False])
def test_tokens_are_shown_only_if_asked_for_and_counted_always(door: Door, *, wanted: bool) -> None:
    chunks = list(door.stream(user(), stream_options={"include_usage": wanted}).chunks)
    assert [bool(one.get("usage")) for one in chunks].count(True) == wanted
    (usage,) = door.service.raw_store.read_usage(KEY)
    assert usage.prompt_tokens == 11


def test_a_stream_that_another_request_was_faster_than_is_not_kept(door: Door) -> None:
    door.model.replies = [spoken("One."), spoken("Another.")]
    first, second = door.stream(user(), key="k"), door.stream(user(), key="k")
    list(first.chunks)
    list(second.chunks)
    assert (first.kept, second.kept) == (True, False)
    assert door.turns == [[user(), assistant("One.")]]


def test_streamed_tool_calls_become_an_open_turn(door: Door) -> None:
    door.model.replies = [calling("c1", "c2"), spoken("Done.")]
    list(door.stream(user()).chunks)
    assert door.open_turn[1]["tool_calls"] == calling("c1", "c2")["tool_calls"]
    list(door.stream(result("c1"), result("c2")).chunks)
    assert len(door.turns) == 1


def test_a_stream_that_nobody_takes_to_its_end_commits_nothing(door: Door) -> None:
    stream = door.stream(user())
    next(stream.chunks)
    stream.chunks.close()
    assert door.model.closed == 1
    assert door.turns == []


def test_a_stream_that_breaks_off_commits_nothing(door: Door) -> None:
    door.model.cut_after = 2
    stream = door.stream(user())
    with pytest.raises(ModelFailedError):
        list(stream.chunks)
    assert door.turns == []


# ---------------------------------------------------------------------------------------- refusals


def test_without_a_model_nothing_is_answered(door: Door) -> None:
    door.use_case = RememberCompletions(
        **{
            name: getattr(door.use_case, name)
            for name in ("store", "drafts", "commit", "turns", "context", "take_history")
        },
        model=None,
    )
    with pytest.raises(ModelNotConfiguredError):
        door.ask(user())
    with pytest.raises(ModelNotConfiguredError):
        door.stream(user())


REFUSED: dict[str, tuple[Any, type[Exception]]] = {
    "none": (None, InvalidMessagesError),
    "empty": ([], InvalidMessagesError),
    "an object": ({}, InvalidMessagesError),
    "no message": ([{}], InvalidMessagesError),
    "system only": ([SYSTEM], InvalidMessagesError),
    "an answer only": ([assistant()], InvalidMessagesError),
    "nothing said only": ([assistant("")], InvalidMessagesError),
    "an answer last": ([user(), assistant()], InvalidMessagesError),
    "an empty question": ([user(""), user()], InvalidMessagesError),
    "system last": ([user(), SYSTEM], InvalidMessagesError),
    "system between": ([user(), assistant(), SYSTEM, user()], InvalidMessagesError),
    "calls last": ([user(), calling("c1")], InvalidMessagesError),
    "calls left open": ([user(), calling("c1"), user()], IncompleteTurnError),
    "no answer": ([user(), calling("c1"), result("c1"), user()], IncompleteTurnError),
    "a result before all questions": ([result("c1"), user()], IncompleteTurnError),
    "calls before all questions": ([calling("c1"), user()], IncompleteTurnError),
    "too large a turn before it": (
        [user("x" * (1024 * 1024)), assistant(), user()],
        TurnTooLargeError,
    ),
    "memory": (
        [{"role": "user", "name": "turnfold_memory", "content": "x"}],
        InvalidMessagesError,
    ),
    "too large": ([user("x" * (1024 * 1024))], TurnTooLargeError),
    "too many": ([user()] * 500, InvalidMessagesError),
    "far too many": ([user(), assistant()] * 10_001, InvalidMessagesError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_answered_is_refused_unpaid(door: Door, name: str) -> None:
    messages, error = REFUSED[name]
    with pytest.raises(error):
        door.use_case(*door.request(messages, None))
    assert door.model.asked == []
    assert door.service.raw_store.load(KEY) is None


def test_a_session_that_is_being_erased_is_not_spoken_to(door: Door) -> None:
    door.service.sessions.put(KEY, SessionInput())
    stored = door.service.raw_store.sessions[KEY]
    stored.session = replace(stored.session, status=SessionStatus.ERASING)
    with pytest.raises(SessionErasingError):
        door.ask(user())
    assert door.model.asked == []
