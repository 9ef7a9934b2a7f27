"""`turnfold rebuild`: working memory anew from the transcript, of some sessions or of all.

`--all` is for the day when the table is lost: it goes by the bucket, with the operator's
credentials, and works although the table knows nothing.
"""

import argparse
import sys
from typing import TYPE_CHECKING

from turnfold.cli.copies import client_of
from turnfold.cli.progress import Progress
from turnfold.cli.service_client import add_service_options
from turnfold.cli.stack import add_stack_options, clients_of, output, outputs_of
from turnfold.domain.errors import InvalidInputError, TurnfoldError
from turnfold.domain.sessions import SessionKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turnfold.cli.main import Commands


def add_commands(groups: "Commands") -> None:
    """Add `rebuild`."""
    command = groups.add_parser("rebuild", help="working memory anew from the transcript")
    command.add_argument("sessions", nargs="*", metavar="SESSION", help="ids, over the API")
    command.add_argument(
        "--all", action="store_true", help="every session that has a transcript, of every tenant"
    )
    add_service_options(command)
    add_stack_options(command)
    for name in ("table", "bucket", "queue-url"):
        command.add_argument(f"--{name}", help="with --all: in place of the stack's")
    command.set_defaults(run=_rebuild)


def _rebuild(arguments: argparse.Namespace) -> None:
    if arguments.all:
        _rebuild_all(arguments)
        return
    if not arguments.sessions:
        raise InvalidInputError("name the sessions to rebuild, or use --all")
    client = client_of(arguments)
    with Progress("sessions", len(arguments.sessions)) as progress:
        for session_id in arguments.sessions:
            client.call("POST", client.session_path(session_id, "rebuild"))
            progress.add(1)


def _rebuild_all(arguments: argparse.Namespace) -> None:
    from turnfold.bootstrap import Turnfold

    service = Turnfold(_environment(arguments))
    failed = 0
    with Progress("sessions", None) as progress:
        for found in service.archived_sessions():
            if not isinstance(found, SessionKey):
                print(f"{found}: its id cannot be told, it is too long", file=sys.stderr)
                failed += 1
                continue
            try:
                service.rebuild(found)
            except TurnfoldError as error:
                print(f"{found.tenant}/{found.session_id}: {error}", file=sys.stderr)
                failed += 1
                continue
            progress.add(1)
    if failed:
        raise InvalidInputError(f"{failed} sessions are not being rebuilt")


def _environment(arguments: argparse.Namespace) -> "Mapping[str, str]":
    """Where the resources are: as the options say, else as the stack does."""
    wanted = {
        "TURNFOLD_TABLE": (arguments.table, "TableName", "--table"),
        "TURNFOLD_BUCKET": (arguments.bucket, "BucketName", "--bucket"),
        "TURNFOLD_QUEUE_URL": (arguments.queue_url, "QueueUrl", "--queue-url"),
    }
    clients = clients_of(arguments)
    missing = any(given is None for given, _, _ in wanted.values())
    outputs = outputs_of(clients, arguments.stack) if missing else {}
    return {
        name: given or output(outputs, its_output, option)
        for name, (given, its_output, option) in wanted.items()
    }
