"""`turnfold redrive`: dead letters back to their queue."""

import argparse
import sys
from typing import TYPE_CHECKING

from turnfold.cli.stack import add_stack_options, clients_of, output, outputs_of

if TYPE_CHECKING:
    from turnfold.cli.main import Commands

OUTPUTS = {
    "compaction": ("DeadLetterQueueUrl", "QueueUrl"),
    "archive": ("ArchiveDeadLetterQueueUrl", "ArchiveQueueUrl"),
}


def add_commands(groups: "Commands") -> None:
    """Add `redrive`."""
    command = groups.add_parser("redrive", help="bring dead letters back to their queue")
    command.add_argument(
        "queue", nargs="?", choices=OUTPUTS, default="compaction", help="which (%(default)s)"
    )
    command.add_argument("--count", action="store_true", help="only say how many there are")
    add_stack_options(command)
    command.set_defaults(run=_redrive)


def _redrive(arguments: argparse.Namespace) -> None:
    from turnfold.adapters.dead_letters import DeadLetters

    clients = clients_of(arguments)
    outputs = outputs_of(clients, arguments.stack)
    dead, queue = (output(outputs, name, "--stack") for name in OUTPUTS[arguments.queue])
    letters = DeadLetters(clients.sqs, dead, queue)
    if arguments.count:
        print(letters.count())
        return
    moved = letters.move()
    if moved.task:
        print("SQS moves them now; `turnfold redrive --count` says what is left", file=sys.stderr)
        print(moved.task)
        return
    print(f"moved {moved.messages}", file=sys.stderr)
