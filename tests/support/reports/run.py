"""One case as it runs: its service, what was done, and what has to hold of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.reports.client import Client
from support.reports.config import settings_of
from support.reports.ledger import Ledger
from support.reports.workers import Workers

if TYPE_CHECKING:
    from pathlib import Path

    from support.api import Answer
    from support.reports.ledger import Name
    from support.reports.stack import Stack

DEFAULT_SESSION = "s1"
DEFAULT_TENANT = "local"


@dataclass
class Result:
    """What one operation gave: answers of the API, or data of another kind."""

    name: str
    op: dict[str, Any]
    answers: list[Answer] = field(default_factory=list)
    data: Any = None

    @property
    def answer(self) -> Answer:
        return self.answers[-1]


@dataclass
class Run:
    """A case under way."""

    case: dict[str, Any]
    stack: Stack
    folder: Path
    client: Client = field(init=False)
    workers: Workers = field(init=False)
    ledger: Ledger = field(default_factory=Ledger)
    results: list[Result] = field(default_factory=list)
    known: set[Name] = field(default_factory=set)
    routes: dict[tuple[Name, str], str] = field(default_factory=dict)
    """Where the first request with an idempotency key went."""
    refused_settings: Answer | None = None
    stale: bool = False
    """Whether anything was committed since the workers were last run."""
    clock_moved: bool = False

    def __post_init__(self) -> None:
        self.client = Client(self.stack)
        self.workers = Workers(self.stack)

    @property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = self.case["input"].get("config") or {}
        return config

    @property
    def settings(self) -> dict[str, Any]:
        settings = settings_of(self.config)
        if _uses(self.case["input"]["ops"], "llm_facts"):
            # Facts are asked for right after the commits, so they are judged with them.
            settings.setdefault("pin_mode", "sync")
        return settings

    def must_not(self, text: str) -> bool:
        return any(text in one for one in self.case["expect"].get("must_not") or ())

    def has_invariant(self, name: str) -> bool:
        return name in (self.case["expect"].get("invariants") or ())

    def name_of(self, op: dict[str, Any]) -> Name:
        """The session that an operation is about."""
        return op.get("tenant", DEFAULT_TENANT), op.get("session_id", DEFAULT_SESSION)

    def ensure(self, name: Name) -> None:
        """Create a session with the case's settings, if it is not there yet."""
        if name in self.known or self.ledger.of(name).deleted:
            return
        self.known.add(name)
        body: dict[str, Any] = {"settings": self.settings} if self.settings else {}
        if "system" in self.config:
            body["system"] = [self.config["system"]]
        answer = self.client.session(name, "PUT", "", body)
        if answer.status == 422 and body:
            self.refused_settings = answer
            answer = self.client.session(name, "PUT", "", {})
        assert answer.status in (200, 201), answer.text[:300]
        for text in self.config.get("pins") or ():
            self.client.session(name, "POST", "/pins", {"text": text}).ok(201)

    # ---------------------------------------------------------------------- for the outcomes

    def all(self, name: str) -> list[Result]:
        """The results of all operations of a name, in order."""
        return [one for one in self.results if one.name == name]

    def last(self, name: str) -> Result:
        return self.all(name)[-1]

    @property
    def statuses(self) -> list[int]:
        """The statuses of all commits."""
        return [one.answer.status for one in self.results if one.name == "commit"]

    def context(self, at: int = -1) -> Any:
        """The body of a context that was read."""
        return self.all("context")[at].answer.ok()

    def messages(self, at: int = -1) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.context(at)["messages"]
        return messages

    def transcript(self, name: Name = (DEFAULT_TENANT, DEFAULT_SESSION)) -> list[Any]:
        """All turns of a session as the transcript has them now."""
        return self.client.pages(name, "transcript", 100)

    def said(self, name: Name = (DEFAULT_TENANT, DEFAULT_SESSION)) -> list[dict[str, Any]]:
        """All messages of the transcript."""
        return [one for turn in self.transcript(name) for one in turn["messages"]]

    def pins(self, status: str = "active") -> list[dict[str, Any]]:
        name = (DEFAULT_TENANT, DEFAULT_SESSION)
        found: list[dict[str, Any]] = self.client.session(
            name, "GET", f"/pins?status={status}&limit=100"
        ).ok()["items"]
        return found

    def session(self, method: str, path: str = "", body: object = None, **more: Any) -> Answer:
        """A further request about the default session."""
        return self.client.session((DEFAULT_TENANT, DEFAULT_SESSION), method, path, body, **more)


def _uses(ops: Any, name: str) -> bool:
    if isinstance(ops, dict):
        return ops.get("op") == name or any(_uses(one, name) for one in ops.values())
    return isinstance(ops, list) and any(_uses(one, name) for one in ops)
