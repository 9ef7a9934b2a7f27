"""The local stack as a process: requests, limits, shutdown and what survives a kill."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from integration.local_stack import RunningStack, alive, wait_for, wait_until_gone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.ministack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    running = RunningStack(tmp_path_factory.mktemp("stack"), TURNFOLD_SWEEP_SECONDS="1")
    try:
        yield running.wait_until_ready()
    finally:
        running.stop()


@pytest.fixture
def client(stack: RunningStack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.url, timeout=30, trust_env=False) as http_client:
        yield http_client


def _raw(stack: RunningStack, payload: bytes) -> bytes:
    address = urlsplit(stack.url)
    with socket.create_connection((str(address.hostname), int(address.port or 0)), 10) as peer:
        peer.sendall(payload)
        parts = []
        while data := peer.recv(65536):
            parts.append(data)
    return b"".join(parts)


def test_it_says_that_it_is_ready_after_what_it_lacks(stack: RunningStack) -> None:
    assert len(stack.output) == 2
    assert "OPENAI_API_KEY" in stack.output[0]
    assert stack.output[1] == f"Turnfold is ready at {stack.url}"


def test_odd_paths_reach_the_handler_unchanged(stack: RunningStack) -> None:
    address = urlsplit(stack.url)
    for path in ("/e/a%2Fb", "/e/a%252Fb", "/e/a/b", "/e/../x", "//e//x", "/e/%00", "/e/%F0%9F"):
        connection = http.client.HTTPConnection(str(address.hostname), address.port)
        connection.putrequest("GET", path)
        connection.endheaders()
        body = connection.getresponse().read().decode()
        assert f'"path": "{path}"' in body, path
        connection.close()


def test_bodies_and_headers_go_both_ways(client: httpx.Client) -> None:
    event = client.post("/e", content=b"\xff\x00").json()
    assert event["isBase64Encoded"] is True
    event = client.post("/e", json={"a": "ü"}, headers=[("X-A", "1"), ("X-A", "2")]).json()
    assert event["body"] == '{"a":"ü"}'
    assert event["multiValueHeaders"]["X-A"] == ["1", "2"]
    cookies = client.get("/cookies")
    assert cookies.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert cookies.text == "ü"
    assert client.get("/binary").content == b"\xff\x00\xfe"
    empty = client.get("/no-content")
    assert (empty.status_code, empty.content) == (204, b"")
    assert "content-length" not in empty.headers
    head = client.head("/healthz")
    assert (head.status_code, head.content) == (200, b"")
    chunked = client.post("/e", content=iter([b"ab", b"cd"])).json()
    assert chunked["body"] == "abcd"


def test_expect_continue_is_answered(stack: RunningStack) -> None:
    answer = _raw(
        stack,
        b"POST /e HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
        b"Connection: close\r\n\r\nhi",
    )
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_what_is_no_http_is_refused(stack: RunningStack) -> None:
    assert b" 400 " in _raw(stack, b"GET / HTTP/9.9.9\r\n\r\n").split(b"\r\n")[0]
    bad_length = _raw(stack, b"POST /e HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n")
    assert bad_length.startswith(b"HTTP/1.1 400")
    for size in (b"-1", b"+1", b"0x1", b"1_0", b""):
        bad_chunk = (
            b"POST /e HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%b\r\n" % size
        )
        assert _raw(stack, bad_chunk).startswith(b"HTTP/1.1 400")
    assert _raw(stack, b"BREW /e HTTP/1.1\r\nHost: h\r\n\r\n").startswith(b"HTTP/1.1 501")


def test_a_body_over_the_limit_is_refused(client: httpx.Client) -> None:
    answer = client.post("/e", content=b"x" * (10 * 1024 * 1024 + 1))
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"
    assert client.post("/e", content=iter([b"x" * 1024 * 1024] * 11)).status_code == 413


def test_a_large_answer_is_given_and_complained_about(
    stack: RunningStack, client: httpx.Client
) -> None:
    answer = client.post("/e", content=b"x" * (7 * 1024 * 1024))
    assert answer.status_code == 200
    wait_for(lambda: "Lambda refuses over 6 MB" in stack.log)


@pytest.mark.parametrize(
    ("path", "status"), [("/raise", 502), ("/malformed", 502), ("/exit", 502), ("/sleep/9", 504)]
)
def test_a_failing_handler_is_a_problem(client: httpx.Client, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.json()["status"] == status
    assert "a word for the log" not in answer.text
    assert client.get("/healthz").status_code == 200


def test_a_body_may_come_in_pieces(stack: RunningStack, client: httpx.Client) -> None:
    with client.stream("GET", "/pieces/all") as answer:
        assert answer.headers["transfer-encoding"] == "chunked"
        assert "content-length" not in answer.headers
        assert [one.decode() for one in answer.iter_raw()] == ["one ", "zwölf ", "three"]
    assert client.get("/pieces/all").text == "one zwölf three"
    old = _raw(stack, b"GET /pieces/all HTTP/1.0\r\nHost: h\r\n\r\n")
    head, _, body = old.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding" not in head
    assert body.decode() == "one zwölf three"
    assert client.get("/pieces/odd").status_code == 502


@pytest.mark.parametrize("how", ["raise", "exit", "hang"])
def test_pieces_that_break_off_do_not_look_whole(client: httpx.Client, how: str) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(f"/pieces/{how}")
    for _ in range(8):  # more than there are environments: each of them is free again
        assert client.get("/healthz").status_code == 200


def test_handlers_see_the_context_and_variables_of_lambda(
    stack: RunningStack, client: httpx.Client
) -> None:
    facts = client.get("/context").json()
    assert 2000 < facts["left"] <= 3000
    assert facts["function_name"] == "api"
    assert facts["invoked_function_arn"].startswith("arn:aws:lambda:us-east-1:")
    assert facts["aws_request_id"]
    variables = facts["variables"]
    assert variables["AWS_ENDPOINT_URL"].startswith("http://127.0.0.1:")
    assert variables["TURNFOLD_FROM_TEMPLATE"] == "3 attempts"
    assert variables["TURNFOLD_KEY_FILE"] == str(stack.data / "keys.json")
    assert variables["TURNFOLD_QUEUE_URL"].endswith("/turnfold-compaction.fifo")
    assert (stack.data / "keys.json").exists()


def test_requests_run_at_the_same_time_in_processes_of_their_own(client: httpx.Client) -> None:
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: client.get("/sleep/0.3"), range(12)))
        assert {answer.status_code for answer in answers} == {200}
        started = time.monotonic()
        answers = list(pool.map(lambda _: client.get("/sleep/0.5"), range(3)))
        assert time.monotonic() - started < 1.4
    assert len({answer.json()["pid"] for answer in answers}) > 1


def test_a_kept_connection_has_no_delay(client: httpx.Client) -> None:
    times = []
    for _ in range(50):
        started = time.perf_counter()
        client.post("/healthz", content=b"x" * 3000)
        times.append(time.perf_counter() - started)
    assert sorted(times)[25] < 0.03


def test_logs_are_for_people(stack: RunningStack, client: httpx.Client) -> None:
    client.get("/print")
    log = wait_for(lambda: stack.log if "hello" in stack.log else "")
    assert "api: printed by the handler\n" in log
    assert 'INFO    api: hello session="s 1"\n' in log


def test_the_sweeper_runs_by_its_schedule(stack: RunningStack) -> None:
    wait_for(lambda: len(stack.notes("sweeps")) >= 2)
    assert stack.notes("sweeps")[0]["source"] == "aws.scheduler"


def test_a_taken_port_or_folder_is_said(stack: RunningStack, tmp_path: Path) -> None:
    port = int(urlsplit(stack.url).port or 0)
    second = RunningStack(tmp_path, port)
    assert second.process.wait(20) == 1
    assert f"Port {port}" in second.log
    assert not (tmp_path / "store").exists()


def test_an_environment_that_cannot_load_is_said(tmp_path: Path) -> None:
    functions = tmp_path / "functions"
    for name in ("api", "compactor", "sweeper", "archivist"):
        (functions / name).mkdir(parents=True)
        (functions / name / "app.py").write_text("import nowhere_at_all\n", encoding="utf-8")
    running = RunningStack(tmp_path / "data", TURNFOLD_FUNCTIONS=str(functions))
    assert running.process.wait(60) == 1
    assert "No module named 'nowhere_at_all'" in running.log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_finishes_requests_and_leaves_no_process(tmp_path: Path, number: int) -> None:
    running = RunningStack(tmp_path).wait_until_ready()
    processes = running.processes()
    assert len(processes) >= 5
    answers: list[Any] = []

    def slow() -> None:
        answers.append(httpx.get(f"{running.url}/sleep/1.5", timeout=20, trust_env=False))

    thread = threading.Thread(target=slow)
    thread.start()
    time.sleep(0.5)
    assert running.stop(number) == 0
    thread.join()
    assert answers[0].status_code == 200
    assert answers[0].headers["connection"] == "close"
    assert not alive(processes)
    with pytest.raises(httpx.ConnectError):
        httpx.get(running.url, trust_env=False)


def _ministack(running: RunningStack) -> int:
    for pid in running.processes():
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123 - a file of the kernel
            if b"ministack_server" in file.read():
                return pid
    raise AssertionError("MiniStack does not run")


def test_a_hanging_emulator_is_ended_too(tmp_path: Path) -> None:
    running = RunningStack(tmp_path).wait_until_ready()
    processes = running.processes()
    os.kill(_ministack(running), signal.SIGSTOP)
    assert running.stop() == 0
    assert not alive(processes)


def test_the_death_of_the_emulator_ends_the_stack(tmp_path: Path) -> None:
    running = RunningStack(tmp_path).wait_until_ready()
    processes = running.processes()
    os.kill(_ministack(running), signal.SIGKILL)
    assert running.process.wait(20) == 1
    assert "MiniStack ended by itself" in running.log
    wait_until_gone(processes)


def test_a_stop_during_the_start_leaves_no_process(tmp_path: Path) -> None:
    for delay in (0.2, 0.6, 1.0):
        running = RunningStack(tmp_path / str(delay))
        time.sleep(delay)
        processes = running.processes()
        status = running.stop()
        assert status in {0, -signal.SIGTERM}  # before its handlers are set, the signal ends it
        wait_until_gone(processes)


def _more_than(names: list[str], number: int) -> bool:
    return len(names) > number


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_kill_of_everything(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    for burst in range(2):
        running = RunningStack(tmp_path).wait_until_ready()
        processes = running.processes()

        def store(number: int, burst: int = burst, url: str = running.url) -> None:
            name = f"{burst}-{number:04d}"
            try:
                answer = httpx.put(f"{url}/store/{name}", timeout=20, trust_env=False)
            except httpx.TransportError:
                return
            if answer.status_code == 201:
                acknowledged.append(name)

        with ThreadPoolExecutor(6) as pool:
            futures = [pool.submit(store, number) for number in range(400)]
            wait_for(partial(_more_than, acknowledged, (burst + 1) * 60), 60)
            if burst == 0:
                for pid in processes | running.processes():
                    if pid in alive({pid}):
                        os.kill(pid, signal.SIGKILL)
            else:  # only the parent: the others notice
                processes |= running.processes()
                os.kill(running.process.pid, signal.SIGKILL)
            for future in futures:
                future.cancel()
        running.process.wait(10)
        wait_until_gone(processes)
    again = RunningStack(tmp_path).wait_until_ready()
    try:
        stored = httpx.get(f"{again.url}/stored", timeout=30, trust_env=False).json()
    finally:
        again.stop()
    assert set(acknowledged) <= set(stored["items"])
    assert stored["objects"] >= len(acknowledged)
