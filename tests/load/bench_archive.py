"""What the archive's routes cost: an import that is killed, exports, objects written and read.

    python tests/load/bench_archive.py [--only import export writes reads] [--turns 500 1000 ...]

- `import`: the command line brings a file of turns into the local stack, is killed on the way and
  run again; then exports it. Seconds, and the peak memory of the client and of the API's processes.
- `export`: sessions of several sizes by the API's handler in a process of its own, straight after
  the import, when every turn is an object by itself, and once all is rolled up. `--latency`
  milliseconds are added to each call of S3, since an emulator is nearer than S3.
- `writes`: calls of S3 for 1,000 turns, committed one by one, with compaction, index and archivist.
- `reads`: calls for reading a transcript of 5,000 turns page by page.

Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("layers/core", "functions", "tests", ".")]

from integration.local_stack import RunningStack
from support.aws import Services, aws_environment, make_services
from support.handlers import running_handlers
from support.ministack import running_ministack
from support.service import plain_turn
from turnfold.cli.import_file import import_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from support.api import Session

IMPORTED = 10_000
KILLED_AT = 0.3
"""Share of the turns that are in when the first run is killed."""

WORDS = 60
TURNS = (500, 1000, 5000, 10_000)
WRITTEN = 1000
DRAIN_EVERY = 5
READ = 5000
PAGE = 100
PATIENCE = 1800.0
KIB = 1024
HEADERS = {"Authorization": "Bearer local"}


def write_file(path: Path, turns: int) -> None:
    """A file of turns as they are exported."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, turns + 1):
            said = {"type": "turn", "turn": number, "messages": plain_turn(number, WORDS)}
            file.write(json.dumps(said, ensure_ascii=False, separators=(",", ":")) + "\n")


def megabytes(kib: int) -> float:
    """Of a number of KiB, as getrusage and /proc tell them."""
    return round(kib / KIB, 1)


# ------------------------------------------------------------------------- the local stack, by CLI


class Command:
    """One run of the command line in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        path = str(ROOT / "layers" / "core")
        self._started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "turnfold.cli", *arguments],
            env=os.environ | {"PYTHONPATH": path, "no_proxy": "127.0.0.1"},
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> dict[str, Any]:
        """End it as a failing machine does."""
        self._process.send_signal(signal.SIGKILL)
        return self.wait()

    def wait(self) -> dict[str, Any]:
        """Its seconds and its peak memory."""
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return {
            "status": self._process.returncode,
            "seconds": round(time.perf_counter() - self._started, 1),
            "client_peak_mb": megabytes(usage.ru_maxrss),
        }


class ApiProcesses:
    """The peak memory of the API's processes of a stack, from one look to the next."""

    def __init__(self, stack: RunningStack) -> None:
        self._stack = stack
        self.reset()

    def reset(self) -> None:
        for folder in self._folders():
            (folder / "clear_refs").write_text("5", encoding="ascii")

    def peak_mb(self) -> float:
        texts = [(folder / "status").read_text(encoding="ascii") for folder in self._folders()]
        peaks = (re.search(r"^VmHWM:\s+(\d+)", text, re.MULTILINE) for text in texts)
        return megabytes(max(int(peak[1]) for peak in peaks if peak))

    def _folders(self) -> Iterator[Path]:
        for pid in self._stack.processes():
            folder = Path("/proc") / str(pid)
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"infra.local.environment" in words and words[-2].startswith(b"api."):
                yield folder


def measure_import(folder: Path, turns: int) -> dict[str, Any]:
    """Import a file, killed on the way, and export the session again."""
    source, exported = folder / "turns.jsonl", folder / "exported.jsonl"
    write_file(source, turns)
    functions = {
        "TURNFOLD_FUNCTIONS": str(ROOT / "functions"),
        "TURNFOLD_TEMPLATE": str(ROOT / "template.yaml"),
    }
    stack = RunningStack(folder / "stack", 0, **functions).wait_until_ready()
    try:
        api = ApiProcesses(stack)
        client = httpx.Client(base_url=stack.url, headers=HEADERS, trust_env=False, timeout=60)
        importing = ("import", str(source), "--session", "long", "--url", stack.url)
        command = Command(*importing)
        while committed(client) < KILLED_AT * turns:
            time.sleep(0.05)
        killed = command.kill() | {"turns": committed(client)}
        resumed = Command(*importing).wait() | {"api_peak_mb": api.peak_mb()}
        again = Command(*importing).wait() | {"turns": committed(client)}
        exports = []
        for _ in range(2):
            api.reset()
            told = Command("export", "long", "-o", str(exported), "--url", stack.url).wait()
            exports.append(told | {"api_peak_mb": api.peak_mb()})
        each_once(exported, turns)
    finally:
        stack.stop()
    return {
        "turns": turns,
        "file_mb": round(source.stat().st_size / KIB**2, 1),
        "killed": killed,
        "resumed": resumed,
        "run_again": again,
        "exports": exports,
    }


def committed(client: httpx.Client) -> int:
    answer = client.get("/v1/sessions/long")
    turns: int = answer.json()["turns"] if answer.is_success else 0
    return turns


def each_once(exported: Path, turns: int) -> None:
    """Every turn of the file is in the export, once and at its place."""
    place = 0
    with exported.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            said = json.loads(line)
            if said["type"] == "turn":
                place += 1
                assert said["turn"] == place
                assert said["messages"] == plain_turn(place, WORDS)
    assert place == turns, f"{place} turns of {turns}"


# -------------------------------------------------------------------------- the handler, by itself


def bring_in(session: Session, folder: Path, turns: int) -> None:
    """Import that many turns into a session, of which nothing is compacted.

    An emulator's queries look at every item, so that compaction would take longer than all else.
    """
    session("PUT", "", {"settings": {"auto_compression": False, "pin_mode": "off"}}).ok(201)
    path = folder / f"{session.id}.jsonl"
    write_file(path, turns)
    for part in import_parts(path, session.id):
        session("POST", "/import", raw=part.body, Idempotency_Key=part.key).ok(201)


def export_alone(endpoint: str, folder: str, session_id: str, latency: float, answer: Any) -> None:
    """In a process of its own: export a session by the handler, following where it leads."""
    with aws_environment(endpoint):
        services = existing_services(endpoint)
        slow_down(services, latency)
        with running_handlers(services, Path(folder)) as handlers:
            session = handlers.api.session(session_id)
            session("GET").ok()
            session("GET", "/turns/1").ok()
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            seconds, statuses, query = [], [], ""
            with services.counted_calls() as calls:
                while True:
                    started = time.perf_counter()
                    told = session("GET", f"/export{query}")
                    seconds.append(round(time.perf_counter() - started, 2))
                    statuses.append(told.status)
                    location = told.headers.get("location", "")
                    query = location if location.startswith("?") else ""
                    if not query:
                        break
            size = len(told.text) if told.status == 200 else size_of(services, location)
    answer.put(
        {
            "statuses": statuses,
            "seconds": seconds,
            "export_mb": round(size / KIB**2, 1),
            "peak_mb_before": megabytes(before),
            "peak_mb": megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss),
            "calls": dict(calls),
        }
    )


def size_of(services: Services, link: str) -> int:
    """Bytes behind a link; 0 where there is none."""
    path = urllib.parse.unquote(urllib.parse.urlsplit(link).path)
    key = path.removeprefix(f"/{services.bucket}/")
    if not key:
        return 0
    size: int = services.s3.head_object(Bucket=services.bucket, Key=key)["ContentLength"]
    return size


def existing_services(endpoint: str) -> Services:
    """The services of an emulator on which `make_services` was called already."""
    from turnfold.adapters.aws_clients import AwsClients

    clients = AwsClients()
    url = f"{endpoint}/000000000000"
    return Services(
        clients.dynamodb,
        clients.s3,
        clients.sqs,
        "memory",
        "transcripts",
        f"{url}/doorbells.fifo",
        f"{url}/archive.fifo",
    )


def slow_down(services: Services, latency: float) -> None:
    """Let every call of S3 take so many seconds more."""

    def wait(**_: object) -> None:
        time.sleep(latency)

    services.s3.meta.events.register("before-send.s3.*", wait)


def measure_exports(folder: Path, turns: Sequence[int], latency: float) -> list[dict[str, Any]]:
    """Exports of sessions of several sizes, single records and rolled up."""
    found = []
    spawn = multiprocessing.get_context("spawn")
    with running_ministack(folder) as endpoint, aws_environment(endpoint):
        services = make_services(endpoint)
        with running_handlers(services, folder) as handlers:
            for count in turns:
                session = handlers.api.session(f"s{count}")
                bring_in(session, folder, count)
                told: dict[str, Any] = {"turns": count}
                for state in ("single_records", "rolled_up"):
                    if state == "rolled_up":
                        handlers.drain(PATIENCE)
                    answer = spawn.Queue()
                    process = spawn.Process(
                        target=export_alone,
                        args=(endpoint, str(folder), session.id, latency, answer),
                    )
                    process.start()
                    while process.is_alive() and answer.empty():
                        time.sleep(0.05)
                    told[state] = answer.get(timeout=1)
                    process.join()
                    print(count, state, told[state], file=sys.stderr, flush=True)
                found.append(told)
    return found


def measure_writes(folder: Path, turns: int) -> dict[str, Any]:
    """Calls of S3 for turns that are committed one by one."""
    with running_ministack(folder) as endpoint, aws_environment(endpoint):
        services = make_services(endpoint)
        with running_handlers(services, folder) as handlers:
            kinds: Counter[str] = Counter()

            def note(params: dict[str, Any], **_: object) -> None:
                kinds[str(params["Key"]).split("/")[3]] += 1

            services.s3.meta.events.register("before-parameter-build.s3.PutObject", note)
            session = handlers.api.session("written")
            with services.counted_calls() as calls:
                for number in range(1, turns + 1):
                    body = {"messages": plain_turn(number, WORDS)}
                    session("POST", "/turns", body).ok(201)
                    if number % DRAIN_EVERY == 0:
                        handlers.drain(PATIENCE)
            in_s3 = set(services.s3.meta.service_model.operation_names)
            s3_calls = {name: count for name, count in calls.items() if name in in_s3}
            searches = search_calls(services, session)
    return {"turns": turns, "puts": dict(kinds), "s3_calls": s3_calls, "searches": searches}


def search_calls(services: Services, session: Session) -> dict[str, Any]:
    """Calls of a first search and of those after it."""
    found = []
    for number in (17, 400, 900, 31):
        with services.counted_calls() as calls:
            session("POST", "/search", {"query": f"Question {number}"}).ok()
        found.append(dict(calls))
    return {"first": found[0], "warm_at_most": max(sum(one.values()) for one in found[1:])}


def measure_reads(folder: Path, turns: int) -> dict[str, Any]:
    """Calls for reading a transcript page by page (`bench_search.py` searches in one)."""
    with running_ministack(folder) as endpoint, aws_environment(endpoint):
        services = make_services(endpoint)
        with running_handlers(services, folder) as handlers:
            session = handlers.api.session("read")
            bring_in(session, folder, turns)
            handlers.drain(PATIENCE)
            seen, cursor = 0, None
            with services.counted_calls() as calls:
                while True:
                    query = f"?limit={PAGE}" + (f"&cursor={cursor}" if cursor else "")
                    page = session("GET", f"/transcript{query}").ok()
                    numbers = [one["turn"] for one in page["items"]]
                    assert numbers == list(range(seen + 1, seen + 1 + len(numbers)))
                    seen += len(numbers)
                    cursor = page["next_cursor"]
                    if cursor is None:
                        break
            assert seen == turns
    return {"turns": turns, "pages_of": PAGE, "calls": dict(calls)}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = ("import", "export", "writes", "reads")
    parser.add_argument("--only", nargs="+", choices=every, default=every)
    parser.add_argument("--turns", type=int, nargs="+", default=TURNS, help="of the exports")
    parser.add_argument("--latency", type=float, default=0.0, help="milliseconds a call of S3")
    arguments = parser.parse_args()
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folders = {one: Path(name) / one for one in arguments.only}
        for folder in folders.values():
            folder.mkdir()
        if "import" in folders:
            measured["import"] = measure_import(folders["import"], IMPORTED)
        if "export" in folders:
            latency = arguments.latency / 1000
            measured["export"] = measure_exports(folders["export"], arguments.turns, latency)
        if "writes" in folders:
            measured["writes"] = measure_writes(folders["writes"], WRITTEN)
        if "reads" in folders:
            measured["reads"] = measure_reads(folders["reads"], READ)
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
