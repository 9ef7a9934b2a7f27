"""Operations on sessions: create, read, list, delete, pins."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from support.reports.config import settings_of
from support.reports.ops.working import catch_up
from support.reports.registry import operation
from support.reports.run import DEFAULT_TENANT, Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.api import Answer
    from support.reports.run import Run

type Op = dict[str, Any]
type Scope = Mapping[str, Any]


@operation("create_session")
def create_session(run: Run, op: Op, _scope: Scope) -> Result:
    """PUT; the contract has no ids made by the server, so without one the client makes it."""
    given = op.get("session_id")
    name = op.get("tenant", DEFAULT_TENANT), str(uuid.uuid4()) if given is None else str(given)
    body: Op = {key: op[key] for key in ("system", "user_id", "metadata") if key in op}
    settings = {**run.settings, **settings_of(op.get("config", {})), **op.get("settings", {})}
    if settings:
        body["settings"] = settings
    answer = run.client.session(name, "PUT", "", body)
    if answer.status in (200, 201):
        run.known.add(name)
    return Result("create_session", op, [answer], name)


@operation("patch_session", "update_session", "configure")
def patch_session(run: Run, op: Op, _scope: Scope) -> Result:
    """Other settings, in the words of a config or of the contract."""
    name = run.name_of(op)
    run.ensure(name)
    settings = {**settings_of({**op, **op.get("config", {})}), **op.get("settings", {})}
    body: Op = {key: op[key] for key in ("system", "user_id", "metadata") if key in op}
    return Result(
        "patch_session",
        op,
        [run.client.session(name, "PATCH", "", body | {"settings": settings})],
    )


@operation("get_session")
def get_session(run: Run, op: Op, _scope: Scope) -> Result:
    return Result("get_session", op, [run.client.session(run.name_of(op), "GET")])


@operation("list_sessions")
def list_sessions(run: Run, op: Op, _scope: Scope) -> Result:
    """All pages."""
    answers, items = all_sessions(run, op)
    return Result("list_sessions", op, answers, items)


def all_sessions(run: Run, op: Op) -> tuple[list[Answer], list[Any]]:
    """The answers, and the sessions on them."""
    tenant = op.get("tenant", DEFAULT_TENANT)
    user = f"&user_id={quote(op['user_id'], safe='')}" if "user_id" in op else ""
    items: list[Any] = []
    answers: list[Answer] = []
    cursor = ""
    while True:
        target = f"/v1/sessions?limit={op.get('limit', 100)}{user}{cursor}"
        answers.append(run.client("GET", target, tenant=tenant))
        if answers[-1].status != 200:
            break
        items += answers[-1].body["items"]
        following = answers[-1].body["next_cursor"]
        if following is None:
            break
        cursor = f"&cursor={quote(following, safe='')}"
    return answers, items


@operation("delete_session")
def delete_session(run: Run, op: Op, _scope: Scope) -> Result:
    name = run.name_of(op)
    answer = run.client.session(name, "DELETE")
    session = run.ledger.of(name)
    if answer.status == 202:
        session.deleted = True
        session.open = []
        run.known.discard(name)
    return Result("delete_session", op, [answer])


@operation("delete_user")
def delete_user(run: Run, op: Op, _scope: Scope) -> Result:
    target = f"/v1/users/{quote(op['user_id'], safe='')}"
    return Result("delete_user", op, [run.client("DELETE", target)])


@operation("pins")
def pins(run: Run, op: Op, _scope: Scope) -> Result:
    """The active pins, once the workers have seen every turn."""
    catch_up(run)
    name = run.name_of(op)
    if run.ledger.of(name).turns:
        run.known.add(name)
    run.ensure(name)
    status = op.get("status", "active")
    answer = run.client.session(name, "GET", f"/pins?limit=100&status={status}")
    return Result("pins", op, [answer], answer.body.get("items"))


@operation("pin_add")
def pin_add(run: Run, op: Op, _scope: Scope) -> Result:
    name = run.name_of(op)
    run.ensure(name)
    body = {key: op[key] for key in ("text", "sources", "replaces", "confidence") if key in op}
    return Result("pin_add", op, [run.client.session(name, "POST", "/pins", body)])


@operation("http", "http_get", "http_post", "http_put", "http_patch", "http_delete")
def http(run: Run, op: Op, _scope: Scope) -> Result:
    """A request by path; `{urlencoded x}` was replaced before."""
    tenant = op.get("tenant", DEFAULT_TENANT)
    method = op["op"].removeprefix("http").removeprefix("_").upper() or op.get("method", "GET")
    answer = run.client(method, op["path"], op.get("body"), tenant=tenant)
    return Result(op["op"], op, [answer])
