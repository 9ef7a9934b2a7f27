"""What a context can be asked for, in a query or in a body."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.requests import (
    MAX_QUERY_CHARACTERS,
    MAX_TOKENS,
    Request,
    flag,
    layout_name,
    max_tokens,
    model_name,
    number,
    text,
)
from turnfold.application.read_context import DEFAULT_RECALL, ContextRequest
from turnfold.domain.layouts import DEFAULT_LAYOUT, LAYOUTS
from turnfold.domain.message_rules import check_messages
from turnfold.domain.messages import Message
from turnfold.domain.policies.registry import check_policy, policy_from_query
from turnfold.domain.transcript import sha256_of

MAX_RECALL = 100


@dataclass(frozen=True, slots=True)
class ContextParameters:
    """The checked parameters."""

    max_tokens: int | None = None
    model: str | None = None
    query: str | None = None
    recall: int | None = None
    policy: Mapping[str, Any] | None = None
    incoming: tuple[Message, ...] = ()
    include_open: bool = False
    layout: str = DEFAULT_LAYOUT
    begun: int = 0
    """How many of the incoming messages are those of the open turn."""

    @property
    def request(self) -> ContextRequest:
        """What the use case is asked for."""
        recall = DEFAULT_RECALL if self.recall is None else self.recall
        return ContextRequest(
            self.max_tokens,
            self.model,
            self.incoming,
            self.query,
            recall,
            self.policy,
            self.begun,
            LAYOUTS[self.layout],
        )

    def etag(self, state: str) -> str:
        """Tells apart contexts of different states or parameters."""
        return sha256_of(
            [
                state,
                self.max_tokens,
                self.model,
                self.query,
                self.recall,
                self.policy,
                list(self.incoming),
                self.include_open,
                self.layout,
            ]
        )[:32]


def from_query(request: Request) -> ContextParameters:
    """The parameters of a GET."""
    policy = request.query("policy")
    return _checked(
        {
            "max_tokens": request.query_number("max_tokens", 1, MAX_TOKENS),
            "recall": request.query_number("recall", 0, MAX_RECALL),
            "policy": None if policy is None else policy_from_query(policy, request.queries),
            "include_open": request.query_flag("include_open"),
            **{name: request.query(name) for name in ("model", "query", "format")},
        }
    )


def from_body(request: Request) -> ContextParameters:
    """The parameters of a POST."""
    body = request.optional_body
    policy = body.get("policy")
    return _checked({**body, "policy": {"name": policy} if isinstance(policy, str) else policy})


def _checked(given: Mapping[str, Any]) -> ContextParameters:
    policy, messages = given.get("policy"), given.get("messages")
    return ContextParameters(
        max_tokens=max_tokens(given.get("max_tokens")),
        model=model_name(given.get("model")),
        query=text("query", given.get("query"), MAX_QUERY_CHARACTERS),
        recall=number("recall", given.get("recall"), 0, MAX_RECALL),
        policy=None if policy is None else check_policy(policy),
        incoming=check_messages(messages) if messages else (),
        include_open=flag("include_open", given.get("include_open")),
        layout=layout_name(given.get("format")),
    )
