"""Operations on turns: commit in all its ways, context, transcript, search, pages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.reports.checks.contexts import check_context
from support.reports.config import budget_of, policy_of
from support.reports.ledger import clean
from support.reports.ops.sessions import all_sessions
from support.reports.registry import operation
from support.reports.run import Result
from support.reports.turn_shape import can_follow, is_whole
from support.reports.values import expand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.api import Answer
    from support.reports.ledger import Name
    from support.reports.run import Run

type Op = dict[str, Any]
type Scope = Mapping[str, Any]

OPTIONS = ("policy", "max_count", "max_messages", "window_s", "window_minutes", "keep_recent")
MEMBERS = ("metadata", "user_id")
TURNS, APPEND, CLOSE = "/turns", "/open-turn/messages", "/open-turn/commit"
BUSY = (409, 429, 503)


@operation("commit")
def commit(run: Run, op: Op, _scope: Scope) -> Result:
    """A finished turn is committed; other messages go to the open turn until it is finished."""
    name = run.name_of(op)
    answer = commit_messages(run, name, op["messages"], op)
    return Result("commit", op, [answer])


def commit_messages(run: Run, name: Name, messages: list[Any], op: Op) -> Answer:
    """Commit messages by the route that the contract has for them."""
    run.ledger.note_texts(messages)
    run.stale = True
    if run.settings or run.config.get("pins"):
        run.ensure(name)
    session = run.ledger.of(name)
    begun = list(session.open)
    key = op.get("idempotency_key")
    headers = {} if key is None else {"Idempotency_Key": key}
    repeated = run.routes.get((name, key or ""))
    route = repeated or _route(begun, messages)
    body: Op = {"messages": messages}
    if route == APPEND:
        run.ensure(name)
    else:
        body |= {member: op[member] for member in MEMBERS if member in op}
    answer = run.client.session(name, "POST", route, body, **headers)
    if answer.status != 201 or repeated:
        # A repetition goes where the first one went, and adds nothing.
        return answer
    if key is not None:
        run.routes[name, key] = route
    if route == APPEND:
        session.open = [*session.open, *clean(messages)]
        return answer
    run.known.add(name)
    whole = [*begun, *messages] if route == CLOSE else messages
    run.ledger.note_turn(name, answer.body["turn"], whole)
    if route == CLOSE:
        session.open = []
    return answer


def _route(begun: list[Any], messages: list[Any]) -> str:
    """Finished turns are committed at once, what is not finished yet goes to the open turn."""
    if begun and can_follow(begun, messages) and is_whole([*begun, *messages]):
        return CLOSE
    return TURNS if is_whole(messages) else APPEND


@operation("commit_turns")
def commit_turns(run: Run, op: Op, scope: Scope) -> Result | None:
    """Plain turns, numbered from 0; each is a commit of its own."""
    name = run.name_of(op)
    question, reply = op.get("user", "question {i}"), op.get("assistant", "answer {i}")
    for number in range(op["n"]):
        inner = {**scope, "i": number}
        messages = [
            {"role": "user", "content": expand(question, inner)},
            {"role": "assistant", "content": expand(reply, inner)},
        ]
        answer = commit_messages(run, name, messages, {})
        assert answer.status in (201, *BUSY), answer.text[:300]
        run.results.append(Result("commit", {**op, "messages": messages}, [answer]))
    return None


@operation("http_commit_raw")
def http_commit_raw(run: Run, op: Op, _scope: Scope) -> Result:
    """A body as it is; where it is an unfinished turn, to the open turn then."""
    name, raw = run.name_of(op), str(op["body"]).encode("utf-8", "surrogatepass")
    answer = run.client.session(name, "POST", "/turns", raw=raw)
    answers = [answer]
    if answer.status == 422 and answer.body["code"] == "incomplete_turn":
        run.ensure(name)
        answers.append(run.client.session(name, "POST", "/open-turn/messages", raw=raw))
        if answers[-1].status == 201:
            run.ledger.of(name).open += clean(json.loads(raw)["messages"])
    elif answer.status == 201:
        run.known.add(name)
        run.ledger.note_turn(name, answer.body["turn"], json.loads(raw)["messages"])
    run.stale = True
    return Result("http_commit_raw", op, answers)


@operation("context")
def context(run: Run, op: Op, _scope: Scope) -> Result:
    """A context, the open turn included."""
    name = run.name_of(op)
    if "expect_status" not in op:
        if run.ledger.of(name).turns:
            run.known.add(name)
        run.ensure(name)
    body: Op = {"include_open": True}
    if any(option in op for option in OPTIONS) and policy_of(run.config, op):
        body["policy"] = policy_of(run.config, op)
    budget = budget_of(run.config, op)
    if budget is not None:
        body["max_tokens"] = budget
    for member in ("model", "query", "recall", "messages", "format"):
        if member in op:
            body[member] = op[member]
    if "query" not in op and "q" in op:
        body["query"] = op["q"]
    answer = run.client.session(name, "POST", "/context", body)
    if answer.status == 200:
        check_context(run, name, op, answer.body)
    return Result("context", op, [answer])


@operation("transcript")
def transcript(run: Run, op: Op, _scope: Scope) -> Result:
    """The whole transcript, page by page. A limit over the contract's is refused, then lowered."""
    name = run.name_of(op)
    limit = op.get("limit")
    answers = []
    if limit is not None and limit > 100:
        refused = run.client.session(name, "GET", f"/transcript?limit={limit}")
        refused.problem(422, "invalid_parameter")
        answers.append(refused)
        limit = 100
    if not run.ledger.of(name).turns:
        answers.append(run.client.session(name, "GET", "/transcript"))
        return Result("transcript", op, answers, [])
    return Result("transcript", op, answers, run.client.pages(name, "transcript", limit or 100))


@operation("search")
def search(run: Run, op: Op, _scope: Scope) -> Result:
    """A search in the session."""
    name = run.name_of(op)
    if run.ledger.of(name).open and not run.ledger.of(name).turns:
        run.ensure(name)
    body = {"query": op.get("q", op.get("query"))}
    for member in ("k", "mode", "since", "until"):
        if member in op:
            body[member] = op[member]
    if op.get("scope") in ("tenant", "user") or op.get("all_sessions"):
        body |= {"user_id": op["user_id"]} if "user_id" in op else {}
        answer = run.client("POST", "/v1/search", body, tenant=name[0])
    else:
        answer = run.client.session(name, "POST", "/search", body)
    items = answer.body["items"] if answer.status == 200 else []
    return Result("search", op, [answer], items)


@operation("page")
def page(run: Run, op: Op, _scope: Scope) -> Result:
    """One page of a list of the session."""
    what, limit = op.get("what", "transcript"), op.get("limit", 20)
    cursor = f"&cursor={op['cursor']}" if op.get("cursor") else ""
    target = f"/{what}?limit={limit}{cursor}"
    return Result("page", op, [run.client.session(run.name_of(op), "GET", target)])


@operation("page_all")
def page_all(run: Run, op: Op, _scope: Scope) -> Result:
    """Every page. The contract lists upwards; downwards goes by `from` and `to`."""
    name, what, limit = run.name_of(op), op.get("what", "transcript"), op.get("limit", 20)
    if what == "sessions":
        return Result("page_all", op, data=all_sessions(run, op)[1])
    if op.get("order", "asc") == "asc" or what != "transcript":
        return Result("page_all", op, data=run.client.pages(name, what, limit))
    newest = run.client.session(name, "GET").ok()["turns"]
    items: list[Any] = []
    for last in range(newest, 0, -limit):
        target = f"/transcript?from={max(1, last - limit + 1)}&to={last}&limit={limit}"
        items += reversed(run.client.session(name, "GET", target).ok()["items"])
    return Result("page_all", op, data=items)
