"""The in-process library: managers, histories, windows and sessions."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

import turnfold
from support.fifo_queue import ManualClock
from support.policy_checks import asks, assistant, check_valid, result_of, system, user
from support.service import START, ScriptedModel, WordCounter, down
from turnfold import (
    CallableCondenser,
    ChatMemories,
    InMemoryDriver,
    MemoryManager,
    MessageHistory,
    MessageWindowMemory,
    OverheadEstimator,
    PolicyKit,
    SessionMemory,
    StoreDriver,
    TokenWindowMemory,
    file_messages,
    in_memory_messages,
    in_memory_services,
)
from turnfold.domain.errors import IncompleteTurnError, InvalidMessagesError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def turn(number: int) -> list[dict[str, Any]]:
    return [user(f"question {number}"), assistant(f"answer {number}")]


def without_times(messages: Sequence[Any]) -> list[dict[str, Any]]:
    return [{name: one[name] for name in one if name != "created_at"} for one in messages]


class TestImports:
    def test_every_name_can_be_imported(self) -> None:
        for name in turnfold.__all__:
            assert getattr(turnfold, name) is not None
        assert set(turnfold.__all__) <= set(dir(turnfold))

    def test_an_unknown_name_is_an_attribute_error(self) -> None:
        with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
            _ = turnfold.Nothing

    def test_importing_loads_nothing_that_is_not_used(self) -> None:
        script = (
            "import sys, turnfold; assert not [m for m in sys.modules if m.startswith('turnfold.')]"
            "; from turnfold import MemoryManager, MessageWindowMemory, TokenWindowMemory"
            "; MessageWindowMemory(3); MemoryManager(policy='limit_count')"
            "; slow = {'boto3', 'botocore', 'openai', 'tiktoken', 'pydantic'}"
            "; assert not slow & set(sys.modules)"
        )
        paths = [one for one in sys.path if one.endswith("core")]
        code = f"import sys; sys.path[:0] = {paths!r}; {script}"
        subprocess.run([sys.executable, "-c", code], check=True)


class TestManagers:
    def test_the_time_window_goes_by_when_messages_were_added(self) -> None:
        manager = MemoryManager(policy={"name": "time_window", "window_minutes": 5})
        manager.add({**user("old"), "created_at": "2020-01-01T00:00:00Z"}).add(user("new"))
        assert without_times(manager.processed_messages()) == [user("new")]

    def test_what_is_handed_out_can_be_changed_without_harm(self) -> None:
        manager = MemoryManager().add(user("a"))
        manager.processed_messages()[0]["content"] = "changed"  # type: ignore[index]  # changed against the types
        manager.messages().clear()
        assert without_times(manager.processed_messages()) == [user("a")]

    def test_a_driver_over_a_store_outlives_its_manager(self, tmp_path: Path) -> None:
        store = file_messages(tmp_path)
        MemoryManager(StoreDriver(store, "x", 2)).add_system(system()).add(user("1")).add(user("2"))
        again = MemoryManager(StoreDriver(store, "x", 2)).add(user("3"))
        assert without_times(again.processed_messages()) == [system(), user("2"), user("3")]
        again.clear()
        assert MemoryManager(StoreDriver(store, "x")).messages() == []

    def test_policies_of_a_name_use_the_kit(self) -> None:
        kit = PolicyKit(condenser=CallableCondenser(lambda messages, _: f"{len(messages)} said"))
        manager = MemoryManager(policy={"name": "summarization", "threshold": 2}, kit=kit)
        for number in range(4):
            manager.add(turn(number)[0]).add(turn(number)[1])
        assert "3 said" in str(manager.processed_messages()[0]["content"])

    @pytest.mark.parametrize("maximum", [0, -1, None, "5", True])
    def test_a_maximum_below_one_is_refused(self, maximum: Any) -> None:
        for make in (InMemoryDriver, MessageHistory, MessageWindowMemory):
            with pytest.raises(ValueError, match="at least 1"):
                make(maximum)
        with pytest.raises(ValueError, match="at least 1"):
            TokenWindowMemory(maximum, 3.5)

    @pytest.mark.parametrize("blank", ["", "  ", "a\nb"])
    def test_a_blank_conversation_id_is_refused(self, blank: str) -> None:
        history = MessageHistory()
        for call in (history.get, history.clear, history.manager):
            with pytest.raises(ValueError, match="must"):
                call(blank)

    def test_a_history_knows_its_conversations(self) -> None:
        history = MessageHistory().add("a", user("1")).add_all("b", turn(2))
        assert (list(history), len(history)) == (["a", "b"], 2)
        history.clear("a")
        assert history.get("a") == []
        assert list(history) == ["b"]


class TestWindows:
    def test_a_window_over_files_is_read_by_another(self, tmp_path: Path) -> None:
        MessageWindowMemory(3, memory_id="x", store=file_messages(tmp_path)).add(
            *turn(1), user("2")
        )
        again = MessageWindowMemory(2, memory_id="x", store=file_messages(tmp_path))
        assert again.messages() == [assistant("answer 1"), user("2")]

    def test_a_late_result_leaves_with_its_request(self) -> None:
        window = MessageWindowMemory(3)
        for message in (asks("t1", "t2"), result_of("t1"), user("u1"), result_of("t2")):
            window.add(message)
        assert window.messages() == [user("u1")]

    def test_reading_repairs_in_both_directions(self) -> None:
        store = in_memory_messages()
        broken = [result_of("gone"), user("a"), asks("t1"), user("b"), asks("t2")]
        store.update_messages("default", broken)
        window = MessageWindowMemory(10, store=store)
        assert window.messages() == [user("a"), user("b"), asks("t2")]
        assert store.get_messages("default") == broken

    def test_what_is_dead_leaves_before_what_lives(self) -> None:
        store = in_memory_messages()
        store.update_messages("default", [user("a"), result_of("gone"), user("b")])
        window = MessageWindowMemory(3, store=store)
        window.add(user("c"))
        assert store.get_messages("default") == [user("a"), user("b"), user("c")]

    def test_a_preview_stores_nothing(self) -> None:
        window = MessageWindowMemory(2)
        window.add(user("a"))
        assert window.preview(user("b"), user("c")) == [user("b"), user("c")]
        assert window.messages() == [user("a")]

    def test_the_system_message_may_stand_first(self) -> None:
        window = TokenWindowMemory(1000, OverheadEstimator(), system_first=True)
        window.add(user("a"), system("one"), user("b"), system("two"))
        assert window.messages() == [system("two"), user("a"), user("b")]
        window.set([user("c"), system("three"), system("four")])
        assert window.messages() == [system("four"), user("c")]

    def test_a_turn_runs_the_tools_that_the_model_asks_for(self) -> None:
        memories = ChatMemories(
            lambda memory_id: MessageWindowMemory(10, memory_id=memory_id),
            store_retrieved_content=False,
        )
        sent: list[list[Any]] = []

        def ask(messages: Sequence[Any]) -> dict[str, Any]:
            sent.append(list(messages))
            return asks("t1") if len(sent) == 1 else assistant("rain")

        memories.turn(
            "x", user("q"), ask, augmented=user("q + docs"), run_tools=lambda _: [result_of("t1")]
        )
        assert [one[0] for one in sent] == [user("q + docs")] * 2
        stored = memories.get_or_create("x").messages()
        assert stored == [user("q"), asks("t1"), result_of("t1"), assistant("rain")]


class TestSessions:
    def session(self, **options: Any) -> SessionMemory:
        services = in_memory_services(counter=WordCounter())
        return SessionMemory("s1", services, **options)

    def test_without_a_model_a_long_session_stays_small_and_whole(self) -> None:
        memory = self.session()
        for number in range(1, 31):
            memory.commit_turn(turn(number))
        context = memory.context()
        check_valid(context, begins_with_user=True)
        assert context[:2] == turn(1)
        assert context[-4:] == [*turn(29), *turn(30)]
        assert len(context) < 15
        assert memory.transcript() == [one for number in range(1, 31) for one in turn(number)]
        assert [one.number for one in memory.turns(7, 5)] == [8, 9, 10, 11, 12]
        assert memory.waiting() == []

    def test_an_open_turn_is_built_step_by_step(self) -> None:
        memory = self.session()
        memory.append(user("q"))
        memory.append(asks("t1"))
        with pytest.raises(IncompleteTurnError):
            memory.commit()
        memory.append(result_of("t1"))
        assert memory.context() == []
        answer = memory.commit(assistant("a"))
        assert answer is not None
        assert answer.body["turn"] == 1
        assert memory.open_messages == []
        assert memory.context(incoming=[user("next")])[-1] == user("next")
        assert memory.interactions() == [user("q"), assistant("a")]

    def test_a_malformed_message_is_refused_at_once(self) -> None:
        memory = self.session()
        with pytest.raises(InvalidMessagesError):
            memory.append({"role": "moderator", "content": "x"})
        assert memory.open_messages == []
        memory.append(user("x"))
        memory.discard()
        assert memory.open_messages == []

    def test_the_same_key_commits_once(self) -> None:
        memory = self.session()
        first = memory.commit_turn(turn(1), idempotency_key="k")
        again = memory.commit_turn(turn(1), idempotency_key="k")
        assert first is not None
        assert again is not None
        assert again.replayed
        assert len(memory.turns()) == 1

    def test_pins_stand_in_the_system_prompt(self) -> None:
        memory = self.session()
        memory.commit_turn(turn(1))
        assert memory.system_prompt("You are a clerk.") == "You are a clerk."
        pin = memory.add_pin("The user lives in Oslo.")
        prompt = memory.system_prompt("You are a clerk.")
        assert prompt.startswith("You are a clerk.\n\n")
        assert "- The user lives in Oslo." in prompt
        memory.invalidate_pin(pin.pin_id)
        assert memory.system_prompt() == ""
        assert [one.text for one in memory.all_pins()] == ["The user lives in Oslo."]

    def test_sessions_of_one_store_are_apart(self) -> None:
        services = in_memory_services(counter=WordCounter())
        one, other = SessionMemory("a", services), SessionMemory("b", services)
        one.commit_turn(turn(1))
        assert other.context() == []
        assert SessionMemory("a", services).context() == turn(1)

    def test_an_expired_memory_reads_empty_and_comes_back(self) -> None:
        clock = ManualClock(START)
        services = in_memory_services(counter=WordCounter(), clock=clock)
        memory = SessionMemory("a", services, settings={"expire_days": 2})
        memory.commit_turn(turn(1))
        clock.now += timedelta(days=3)
        assert (memory.context(), memory.pins(), memory.all_pins()) == ([], [], [])
        assert memory.transcript() == turn(1)
        memory.recover()
        assert memory.context() == turn(1)

    def test_a_model_that_is_down_leaves_turns_as_they_are(self) -> None:
        model = ScriptedModel(always=down)
        services = in_memory_services(
            model=model, counter=WordCounter(), degrades=False, settings={"schedule": "whole"}
        )
        memory = SessionMemory("a", services)
        for number in range(1, 9):
            memory.commit_turn(turn(number))
        assert memory.context() == [one for number in range(1, 9) for one in turn(number)]

    def test_without_a_model_s_answer_the_extractive_summary_stands_in(self) -> None:
        services = in_memory_services(model=ScriptedModel(always=down), counter=WordCounter())
        memory = SessionMemory("a", services)
        for number in range(1, 9):
            memory.commit_turn(turn(number))
        assert memory.regions().summaries
        assert all(one.degraded for one in memory.regions().summaries)
        [message] = memory.window_messages()[:1]
        assert message["metadata"]["summary"] is True

    @pytest.mark.parametrize("blank", ["", " ", "a\x00b"])
    def test_a_blank_id_is_refused(self, blank: str) -> None:
        with pytest.raises(ValueError, match="session_id"):
            SessionMemory(blank)

    def test_offsets_below_zero_are_refused(self) -> None:
        memory = self.session()
        for offset, limit in ((-1, 5), (0, -1)):
            with pytest.raises(ValueError, match="below 0"):
                memory.turns(offset, limit)
        assert memory.turns(0, 0) == []
