"""`turnfold keys`: API keys of a deployed stack."""

import argparse
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from turnfold.application.api_keys import ApiKeys, KeyRequest, public_view
from turnfold.cli.stack import add_stack_options, clients_of, output, outputs_of
from turnfold.domain.api_keys import SCOPES, read_key
from turnfold.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from turnfold.cli.main import Commands

COLUMNS = ("key_id", "tenant", "name", "scopes", "state", "expires_at", "last_used_at", "pepper")
_DAYS = re.compile(r"([1-9]\d{0,4})d")


def add_commands(groups: "Commands") -> None:
    """Add `keys create`, `list`, `revoke`, `admit` and `rotate-pepper`."""
    group = groups.add_parser("keys", help="API keys: create, list, revoke")
    commands = group.add_subparsers(title="commands", required=True, metavar="COMMAND")

    create = commands.add_parser("create", help="make a key and print it, once")
    create.add_argument("--tenant", required=True, help="whose data the key opens")
    create.add_argument("--name", default="", help="what it is for; shown in lists")
    create.add_argument(
        "--scopes", default="read,write", help=f"some of {','.join(SCOPES)} (%(default)s)"
    )
    create.add_argument(
        "--expires", help="30d, or a time such as 2027-01-31T00:00:00Z; without it: never"
    )
    create.set_defaults(run=_create)

    listing = commands.add_parser("list", help="show keys, without their secrets")
    listing.add_argument("--tenant", help="only those of one tenant")
    listing.set_defaults(run=_list)

    revoke = commands.add_parser("revoke", help="close a key for good")
    revoke.add_argument("key", help="the key's id, or the whole key")
    revoke.set_defaults(run=_revoke)

    admit = commands.add_parser(
        "admit", help="enter all active keys into the usage plan, after it was switched on"
    )
    admit.set_defaults(run=_admit)

    rotate = commands.add_parser("rotate-pepper", help="change what verifiers are made with")
    rotate.add_argument("--force", action="store_true", help="though active keys will be lost")
    rotate.set_defaults(run=_rotate)

    for command in (create, listing, revoke, admit, rotate):
        add_stack_options(command)
        command.add_argument("--table", help="table of the keys, in place of the stack's")
        command.add_argument("--pepper-secret", help="secret of the pepper, likewise")
        command.add_argument("--usage-plan", help="id of the usage plan, likewise")
        command.add_argument("--json", action="store_true", help="print JSON")


def keys_of(arguments: argparse.Namespace) -> ApiKeys:
    """The keys of the stack that the options name. With a table and a secret, no stack is read."""
    from turnfold.bootstrap_access import key_administration

    clients = clients_of(arguments)
    table, secret, plan = arguments.table, arguments.pepper_secret, arguments.usage_plan
    if not (table and secret):
        outputs = outputs_of(clients, arguments.stack)
        table = table or output(outputs, "KeyTableName", "--table")
        secret = secret or output(outputs, "PepperSecretArn", "--pepper-secret")
        plan = plan or outputs.get("UsagePlanId")
    return key_administration(clients, table, secret, plan, arguments.stack)


def expiry(text: str | None, now: datetime) -> datetime | None:
    """A moment, or days from now as `30d`; None for never. Raises `InvalidInputError`."""
    if text is None:
        return None
    days = _DAYS.fullmatch(text)
    if days:
        return now + timedelta(days=int(days[1]))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError("--expires takes 30d, or 2027-01-31T00:00:00Z") from None
    return moment.replace(tzinfo=moment.tzinfo or UTC)


def _create(arguments: argparse.Namespace) -> None:
    now = datetime.now(UTC)
    scopes = frozenset(one.strip() for one in arguments.scopes.split(","))
    request = KeyRequest(arguments.tenant, scopes, arguments.name, expiry(arguments.expires, now))
    key, record = keys_of(arguments).create(request)
    if arguments.json:
        print(json.dumps({"key": key, **public_view(record, now)}, ensure_ascii=False))
        return
    print("This is the only time the key is shown:", file=sys.stderr)
    print(key)


def _list(arguments: argparse.Namespace) -> None:
    now = datetime.now(UTC)
    views = [public_view(key, now) for key in keys_of(arguments).list_keys(arguments.tenant)]
    if arguments.json:
        print(json.dumps(views, ensure_ascii=False))
        return
    rows = [COLUMNS, *(tuple(_cell(view[name]) for name in COLUMNS) for view in views)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    for row in rows:
        print(
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        )


def _revoke(arguments: argparse.Namespace) -> None:
    whole = read_key(arguments.key)
    key = keys_of(arguments).revoke(whole.key_id if whole else arguments.key)
    if arguments.json:
        print(json.dumps(public_view(key, datetime.now(UTC)), ensure_ascii=False))
        return
    print(f"revoked {key.key_id}; the API may answer it for some minutes yet", file=sys.stderr)


def _admit(arguments: argparse.Namespace) -> None:
    admitted = keys_of(arguments).admit_all()
    if arguments.json:
        print(json.dumps({"admitted": admitted}))
        return
    print(f"admitted {admitted} active keys", file=sys.stderr)


def _rotate(arguments: argparse.Namespace) -> None:
    done = keys_of(arguments).rotate_pepper(force=arguments.force)
    if arguments.json:
        print(json.dumps({"current": done.current, "kept": done.kept, "dropped": done.dropped}))
        return
    print(
        f"current: {done.current}; valid besides: {', '.join(done.kept)};"
        f" dropped: {', '.join(done.dropped) or 'none'}",
        file=sys.stderr,
    )


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "-" if value in (None, "") else str(value)
