"""`turnfold`: what an operator does by hand.

Each group of commands is a module with `add_commands`, which is given the parser to add to; a
command sets `run`, which is given the arguments. A command prints what was asked for to standard
output, and whatever else it has to say to standard error.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from turnfold.cli import copies, keys, rebuild, redrive
from turnfold.domain.errors import TurnfoldError

type Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - it has no public name
"""What argparse gives to add commands to."""

GROUPS: tuple[Callable[[Commands], None], ...] = (
    copies.add_commands,
    rebuild.add_commands,
    keys.add_commands,
    redrive.add_commands,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. 0: done; 1: it could not be done; 2: it was not understood."""
    parser = argparse.ArgumentParser(prog="turnfold", description="Operate a Turnfold stack.")
    groups = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add_commands in GROUPS:
        add_commands(groups)
    parsed = parser.parse_args(arguments)
    try:
        parsed.run(parsed)
    except TurnfoldError as error:
        print(f"turnfold: {error}", file=sys.stderr)
        return 1
    return 0
