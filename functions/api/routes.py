"""What a route is: a line in a table. The tables of all subjects together are the API."""

from collections.abc import Callable
from dataclasses import dataclass

from api.problems import JSON_PROBLEM, problem_of
from api.replies import Reply
from api.requests import Request
from turnfold.bootstrap import Turnfold

READ, WRITE = "read", "write"

type Action = Callable[[Request, Turnfold], Reply]

type Refuse = Callable[[Exception, str], Reply]
"""From an error and the request's id."""


def refused(error: Exception, request_id: str) -> Reply:
    """The refusal as a problem document."""
    problem = problem_of(error, request_id)
    return Reply(problem.status, problem.document, problem.headers, content_type=JSON_PROBLEM)


@dataclass(frozen=True, slots=True)
class Route:
    """A method on a path template such as `/v1/sessions/{session_id}`.

    `scope` is what the caller's key needs; None for a route that is open to everyone. `refuse`
    makes the body of a refusal.
    """

    method: str
    template: str
    action: Action
    scope: str | None
    refuse: Refuse = refused

    @property
    def rule(self) -> str:
        """The template as Powertools writes it."""
        return self.template.replace("{", "<").replace("}", ">")

    def matches(self, path: str) -> bool:
        """Whether a canonical path is one of this route, whatever the method."""
        wanted, given = self.template.split("/"), path.rstrip("/").split("/")
        return len(wanted) == len(given) and all(
            bool(part) if name.startswith("{") else part == name
            for name, part in zip(wanted[1:], given[1:], strict=True)
        )

    @property
    def name(self) -> str:
        """What tells the route from others, in logs and of idempotency keys."""
        return f"{self.method} {self.template}"


def read(method: str, template: str, action: Action) -> Route:
    """A route that changes nothing."""
    return Route(method, template, action, READ)


def write(method: str, template: str, action: Action) -> Route:
    """A route that changes something."""
    return Route(method, template, action, WRITE)
