"""Drivers, managers, histories and policies, as Odin has them or announced them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from support.conformance.notation import NOW, Among, Case, Runner, labels
from support.service import ScriptedModel, WordCounter, count_words
from turnfold.adapters.extractive import ExtractiveSummariser
from turnfold.adapters.in_memory_store import InMemoryStore
from turnfold.application.condense import WriterCondenser
from turnfold.application.ports.models import ModelAnswer, ModelRequest
from turnfold.application.prompts import PromptLibrary
from turnfold.application.summary_writer import PaidAnswers, SummaryWriter
from turnfold.domain.errors import ModelFailedError
from turnfold.domain.messages import MEMORY_NAME
from turnfold.domain.policies.policy import Policy, PolicyInput, PolicyResult, Reach
from turnfold.domain.policies.registry import PolicyKit, parse_policy
from turnfold.domain.policies.summarization import summary_inside
from turnfold.domain.sessions import SessionKey
from turnfold.library.drivers import InMemoryDriver
from turnfold.library.memory_manager import MemoryManager
from turnfold.library.message_history import MessageHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_CONTENT = re.compile(r'"content": ("(?:[^"\\]|\\.)*")')


class CountingIdentity:
    """A policy of one's own that changes nothing and counts its runs."""

    name = "counting_identity"
    reach = Reach()

    def __init__(self) -> None:
        self.runs = 0

    def options(self) -> Mapping[str, Any]:
        return {}

    def apply(self, given: PolicyInput) -> PolicyResult:
        self.runs += 1
        places = tuple(range(len(given.messages)))
        return PolicyResult(tuple(given.messages), places, len(places))


def spec_of(given: dict[str, Any]) -> dict[str, Any]:
    """A policy of the notation as the registry names it."""
    spec = {name: value for name, value in given.items() if name != "type"}
    if "children" in spec:
        spec["policies"] = [spec_of(child) for child in spec.pop("children")]
    return {"name": given["type"].removesuffix("_policy"), **spec}


class ScriptedRelevance:
    """Scores that the case gives."""

    def __init__(self, case: Case) -> None:
        self.by_text = {
            one["text"]: one.get("relevance", 0.0) for one in case.given.get("messages", ())
        }

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        return [self.by_text.get(text.strip("\n").split("\n")[0], 0.0) for text in texts]


class DriverRunner(Runner):
    """Odin's in-memory driver."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.driver = InMemoryDriver(**case.config)

    def op_add(self, ref: str) -> None:
        self.driver.add_message(self.case.messages[ref])

    def op_add_many(self, refs: list[str]) -> None:
        for ref in refs:
            self.op_add(ref)

    def op_add_system(self, ref: str) -> None:
        self.driver.add_system_message(self.case.messages[ref])

    def op_get_messages(self) -> list[str]:
        return labels(self.driver.get_messages())

    def op_get_system_messages(self) -> list[str]:
        return labels(self.driver.get_system_messages())

    def op_clear(self) -> None:
        self.driver.clear()

    def op_set_config(self, key: str, value: object) -> None:
        self.driver.set_config(key, value)

    def op_get_config(self, key: str, default: object = None) -> Any:
        return self.driver.get_config(key, default)

    def read(self) -> Any:
        return self.op_get_messages() if self.last is None else self.last


class ManagerRunner(Runner):
    """Odin's memory manager."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        config = dict(case.config)
        self.counting: list[CountingIdentity] = []
        driver = InMemoryDriver(config.pop("max_messages", 200))
        self.manager = MemoryManager(driver, self._policy(config.pop("policy", None)))
        assert not config, f"the adapter does not know {config}"

    def _policy(self, given: dict[str, Any] | None) -> Policy | None:
        if given is None:
            return None
        if given["type"] == "counting_identity":
            self.counting.append(CountingIdentity())
            return self.counting[-1]
        return parse_policy(spec_of(given))

    def op_add(self, ref: str) -> None:
        self.manager.add(self.case.messages[ref])

    def op_add_many(self, refs: list[str]) -> None:
        for ref in refs:
            self.op_add(ref)

    def op_add_system(self, ref: str) -> None:
        self.manager.add_system(self.case.messages[ref])

    def op_get_processed(self) -> list[str]:
        return labels(self.manager.processed_messages())

    def op_get_messages(self) -> list[str]:
        return labels(self.manager.messages())

    def op_get_system_messages(self) -> list[str]:
        return labels(self.manager.system_messages())

    def op_set_policy(self, policy: dict[str, Any] | None) -> None:
        self.manager.set_policy(self._policy(policy))

    def op_apply_policy(self) -> None:
        self.manager.apply_policy()

    def op_clear(self) -> None:
        self.manager.clear()

    def read(self) -> Any:
        return self.op_get_processed() if self.last is None else self.last

    def checked(self) -> dict[str, Callable[[], Any]]:
        return {"policy_runs_total": lambda: sum(one.runs for one in self.counting)}


class HistoryRunner(Runner):
    """Odin's message history."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        config = dict(case.config)
        maximum = config.pop("max_record", None) or config.pop("max_count", 10)
        self.history = MessageHistory(maximum)
        assert not config, f"the adapter does not know {config}"

    def op_add(self, conversation: str, ref: str) -> None:
        self.history.add(conversation, self.case.messages[ref])

    def op_add_many(self, conversation: str, refs: list[str]) -> None:
        self.history.add_all(conversation, self.case.picked(refs))

    def op_set_system(self, conversation: str, ref: str) -> None:
        self.history.set_system(conversation, self.case.messages[ref])

    def op_get(self, conversation: str) -> list[str]:
        return labels(self.history.get(conversation))

    def op_clear(self, conversation: str) -> None:
        self.history.clear(conversation)

    def op_count(self) -> int:
        return len(self.history)


class PolicyRunner(Runner):
    """A policy by itself."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.model = ScriptedModel(always=self._answer)
        answers = PaidAnswers(InMemoryStore(lambda: NOW), self.model, lambda: NOW)
        writer = SummaryWriter(answers, PromptLibrary(), ExtractiveSummariser(count_words))
        self.kit = PolicyKit(
            relevance=ScriptedRelevance(case),
            condenser=WriterCondenser(writer, SessionKey("tenant", "policy"), WordCounter().count),
        )
        self.spec = spec_of({"type": case.given["component"], **case.config})
        self.policy = parse_policy(self.spec, self.kit)
        self.result: PolicyResult | None = None

    def _answer(self, _request: ModelRequest) -> Any:
        script = self.case.given.get("llm", {})
        summary = script.get("summary")
        if script.get("error") or summary == "!error":
            return ModelFailedError("scripted", 500)
        return ModelAnswer(summary, "stop", "scripted")

    def op_process(self, refs: list[str]) -> list[str]:
        messages = self.case.picked(refs)
        before = json.dumps(messages)
        self.result = self.policy.apply(PolicyInput(messages, now=NOW))
        assert json.dumps(messages) == before, "the policy changed its input"
        return [self._label(one) for one in self.result.messages]

    def op_configure(self, options: dict[str, Any]) -> None:
        # What is said to a composite does not reach its policies, and says nothing to itself.
        if self.spec["name"] != "composite":
            self.spec |= options
            self.policy = parse_policy(self.spec, self.kit)

    def op_get_options(self) -> dict[str, Any]:
        return dict(self.policy.options())

    def checked(self) -> dict[str, Callable[[], Any]]:
        return {
            "flags": lambda: Among(self.result.flags if self.result else ()),
            "value_includes": lambda: Among(self.last),
            "llm_calls": lambda: len(self.model.requests),
            "llm_input_refs": self._asked_about,
            "summary_role": lambda: next(
                one["role"]
                for one in (self.result.messages if self.result else ())
                if _is_made(one)
            ),
        }

    def _asked_about(self) -> list[str]:
        by_text = {one["content"]: ref for ref, one in self.case.messages.items()}
        texts = [json.loads(one) for one in _CONTENT.findall(self.model.requests[-1].data)]
        return [by_text[text] for text in texts if text in by_text]

    def _label(self, message: Any) -> str:
        if not _is_made(message):
            return str(message["id"])
        text = summary_inside(message)
        refs = self._asked_about()
        return f"{text}({refs[0]}..{refs[-1]})"


def _is_made(message: Any) -> bool:
    return bool(message.get("name") == MEMORY_NAME)
