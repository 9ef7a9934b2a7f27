"""`turnfold export | import | verify`: sessions out of and into a service, over its API."""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from turnfold.cli.import_file import count_turns, import_parts
from turnfold.cli.progress import Progress
from turnfold.cli.service_client import ServiceClient, add_service_options
from turnfold.domain.errors import DamagedRecordError, InvalidInputError

if TYPE_CHECKING:
    from turnfold.cli.main import Commands

NDJSON = "application/x-ndjson"


def add_commands(groups: "Commands") -> None:
    """Add `export`, `import` and `verify`."""
    export = groups.add_parser("export", help="a session, or all of a user, as JSON Lines")
    what = export.add_mutually_exclusive_group(required=True)
    what.add_argument("session", nargs="?", help="the session's id")
    what.add_argument("--user", help="all sessions of that user, one after the other")
    export.add_argument("-o", "--output", type=Path, help="file to write, else standard output")
    export.set_defaults(run=_export)

    importing = groups.add_parser(
        "import", help="an export, or messages of OpenAI, LangChain or mm-memory"
    )
    importing.add_argument("file", type=Path, help="what to import; run it again to go on")
    importing.add_argument(
        "--session", help="into that session; without it, into those that the export names"
    )
    importing.set_defaults(run=_import)

    verify = groups.add_parser("verify", help="check the hash chain of a session's transcript")
    verify.add_argument("session", help="the session's id")
    verify.set_defaults(run=_verify)

    for command in (export, importing, verify):
        add_service_options(command)


def client_of(arguments: argparse.Namespace) -> ServiceClient:
    """The service that the options name."""
    return ServiceClient(arguments.url, arguments.key)


def _export(arguments: argparse.Namespace) -> None:
    client = client_of(arguments)
    with _opened(arguments.output) as output:
        for session_id in _sessions(client, arguments):
            size, chunks = client.stream(client.session_path(session_id, "export"))
            with Progress(f"bytes of {session_id}", size) as progress:
                for chunk in chunks:
                    output.write(chunk)
                    progress.add(len(chunk))


def _sessions(client: ServiceClient, arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.session is not None:
        yield arguments.session
        return
    query = {"user_id": arguments.user, "limit": "100"}
    while True:
        page = client.call("GET", "/v1/sessions", query=query)
        for one in page["items"]:
            yield one["session_id"]
        if not page["next_cursor"]:
            return
        query["cursor"] = page["next_cursor"]


@contextlib.contextmanager
def _opened(path: Path | None) -> Iterator[IO[bytes]]:
    """The output. A file appears under its name only when it is complete."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    partial = path.with_name(f"{path.name}.part")
    with partial.open("wb") as file:
        yield file
    partial.replace(path)


def _import(arguments: argparse.Namespace) -> None:
    client, path = client_of(arguments), arguments.file
    if not path.is_file():
        raise InvalidInputError(f"there is no file {path}")
    faults = 0

    def report(place: int, reason: str) -> None:
        nonlocal faults
        faults += 1
        print(f"{path}:{place}: {reason}", file=sys.stderr)

    with Progress("turns", count_turns(path) or None) as progress:
        for part in import_parts(
            path, arguments.session, lambda fault: report(fault.place, fault.reason)
        ):
            if not part.session_id:
                raise InvalidInputError("say with --session where these messages belong")
            answer = _send(client, part.session_id, part.body, part.key)
            progress.add(answer["turns_imported"])
            for fault in answer["errors"]:
                place = part.places[min(fault["line"], len(part.places)) - 1]
                report(place, fault["msg"])
            faults += answer["error_count"] - len(answer["errors"])
    if faults:
        print(f"{faults} lines were left out", file=sys.stderr)


def _send(client: ServiceClient, session_id: str, body: bytes, key: str) -> dict[str, Any]:
    """Import one part, and again where the service did not get through it in time."""
    while True:
        answer: dict[str, Any] = client.call(
            "POST",
            client.session_path(session_id, "import"),
            body=body,
            headers={"Content-Type": NDJSON, "Idempotency-Key": key},
        )
        if answer["complete"]:
            return answer


def _verify(arguments: argparse.Namespace) -> None:
    client = client_of(arguments)
    path = client.session_path(arguments.session, "transcript", "verify")
    query: dict[str, str] = {}
    answer = client.call("GET", path)
    with Progress("turns", answer["turns"]) as progress:
        seen = 0
        while True:
            progress.add(answer["checked_through"] - seen)
            seen = answer["checked_through"]
            if answer["ok"] is not None:
                break
            query["cursor"] = answer["next_cursor"]
            answer = client.call("GET", path, query=query)
    if not answer["ok"]:
        raise DamagedRecordError(f"turn {answer['first_bad_turn']} is not as it was committed")
    print(f"{answer['turns']} turns, the chain is whole")
