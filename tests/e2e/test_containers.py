"""`sam local` runs what was built in containers: every function once, and the API over HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from e2e.functions import (
    EVENTS,
    EVENTS_OF,
    built_functions,
    local_template,
    python_of_the_runtime,
    variables,
)
from e2e.stages import stage
from infra.deployed.alone import runtime_folder
from support.forwarder import forwarded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.deployed.stack import DeployedStack

pytestmark = [pytest.mark.ministack, pytest.mark.slow, pytest.mark.timeout(500)]

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "infra" / "deployed"
SAM = ROOT / ".venv-sam" / "bin" / "sam"
BRIDGE = "198.18.0.1"
READY_SECONDS = 120


def obstacle() -> str | None:
    """Why containers cannot be run on this machine; None if they can."""
    if os.environ.get("TURNFOLD_CONTAINERS") == "0":
        return "TURNFOLD_CONTAINERS is 0"
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "it needs Linux on x86_64"
    if os.geteuid() != 0:
        return "it needs root, for a container engine of its own"
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return "it needs Debian's packages"
    if "12" not in Path("/etc/debian_version").read_text("utf-8"):
        return "it needs Debian 12"
    return None


@dataclass(frozen=True)
class Containers:
    """The SAM CLI with an engine, and variables by which functions reach the emulator."""

    stack: DeployedStack
    engine: str
    variables: Path

    def command(self, *arguments: str) -> list[str]:
        return [
            *(str(SAM), "local", *arguments),
            *("--template", str(local_template(self.stack.sam.built))),
            *("--env-vars", str(self.variables)),
            "--skip-pull-image",
        ]

    @property
    def environment(self) -> dict[str, str]:
        given = {"DOCKER_HOST": self.engine, "SAM_CLI_TELEMETRY": "0", "AWS_REGION": "us-east-1"}
        return {**os.environ, **self.stack.emulator.credentials, **given}


@pytest.fixture(scope="module")
def containers(
    stack: DeployedStack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Containers]:
    reason = obstacle()
    if reason:
        pytest.skip(f"containers cannot be run here: {reason}")
    folder = tmp_path_factory.mktemp("engine")
    engine = f"unix://{folder}/docker.sock"
    environment = {**os.environ, "DOCKER_HOST": engine}
    try:
        with stage("container engine (installed where there is none)"):
            done = subprocess.run(
                [SCRIPTS / "engine.sh", "start", folder],
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode:
            pytest.skip(f"no container engine starts here: {done.stderr[-500:]}")
        with stage("image of the runtime"):
            runtime = runtime_folder(tmp_path_factory.mktemp("runtime"))
            done = subprocess.run(
                [SCRIPTS / "lambda_image.sh", SAM, python_of_the_runtime(), runtime],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr[-2000:]
        # The emulator listens on the loopback alone; containers see the bridge.
        with forwarded(BRIDGE, stack.emulator.port) as port:
            endpoint = f"http://{BRIDGE}:{port}"
            yield Containers(stack, engine, _variables(stack, endpoint, folder / "variables.json"))
    finally:
        subprocess.run([SCRIPTS / "engine.sh", "stop", folder], check=False, capture_output=True)


def _variables(stack: DeployedStack, endpoint: str, path: Path) -> Path:
    told = {
        name: {**variables(stack, name), "AWS_ENDPOINT_URL": endpoint}
        for name in built_functions(stack.sam.built)
    }
    for values in told.values():
        for name, value in values.items():
            values[name] = value.replace(f"localhost:{stack.emulator.port}", endpoint[7:])
    path.write_text(json.dumps(told), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "occasion"), [(name, events[0]) for name, events in EVENTS_OF.items()]
)
def test_sam_local_invokes_every_function(containers: Containers, name: str, occasion: str) -> None:
    with stage(f"sam local invoke {name}"):
        done = subprocess.run(
            containers.command("invoke", name, "--event", str(EVENTS / f"{occasion}.json")),
            env=containers.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    assert "errorMessage" not in answer, answer


def test_sam_local_serves_a_commit_and_a_context(containers: Containers, key: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = containers.command("start-api", "--port", str(port), "--warm-containers", "LAZY")
    log = containers.variables.with_name("start-api.log")
    headers = {"Authorization": f"Bearer {key}"}
    url = f"http://127.0.0.1:{port}"
    with stage("sam local start-api, a commit and a context"), log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=containers.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            with httpx.Client(base_url=url, headers=headers, timeout=120) as api:
                _wait_for(api, log)
                body: dict[str, Any] = json.loads(
                    json.loads((EVENTS / "api-commit.json").read_text("utf-8"))["body"]
                )
                done = api.post("/v1/sessions/contained/turns", json=body)
                assert done.status_code == 201, log.read_text()[-3000:]
                view = api.get("/v1/sessions/contained/context").json()
                assert [one["content"] for one in view["messages"]] == [
                    one["content"] for one in body["messages"]
                ]
        finally:
            os.killpg(process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(api: httpx.Client, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if api.get("/healthz").status_code == 200:
                return
        time.sleep(0.5)
    pytest.fail(f"sam local start-api does not answer: {log.read_text(errors='replace')[-3000:]}")
