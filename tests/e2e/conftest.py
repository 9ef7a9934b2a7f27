"""One deployed stack for all: built by the real SAM CLI, deployed into MiniStack with IAM."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from e2e.stages import STAGES, stage
from infra.deployed.emulator import Emulator
from infra.deployed.sam import Sam
from infra.deployed.stack import DeployedStack

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("functions", "layers", "infra", "template.yaml", "samconfig.toml")
PARAMETERS = {"AlarmEmail": "operator@example.org", "StageName": "v"}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how long each stage took, and what was measured."""
    if STAGES:
        terminalreporter.section("stages")
        for line in STAGES:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session", autouse=True)
def tools() -> None:
    """Skip where the tools are not installed, unless in CI."""
    for folder in (".venv-ministack", ".venv-sam"):
        if not (ROOT / folder).exists() and not os.environ.get("CI"):
            pytest.skip(f"{folder} is missing: run `make e2e`")


@pytest.fixture(scope="session")
def sam(tools: None) -> Sam:
    """A copy of the sources, which a test may change; SAM's cache of it outlives the run."""
    checkout = ROOT / ".aws-sam" / "e2e"
    for name in SOURCES:
        source, target = ROOT / name, checkout / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            checkout.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return Sam(checkout)


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory, tools: None) -> Iterator[Emulator]:
    """An account of its own."""
    with Emulator(tmp_path_factory.mktemp("emulator")) as running:
        yield running


@pytest.fixture(scope="session")
def stack(sam: Sam, emulator: Emulator) -> DeployedStack:
    """The stack, deployed."""
    with stage("sam build"):
        sam.build(PARAMETERS)
    deployed = DeployedStack(emulator, sam)
    with stage("sam deploy"):
        deployed.deploy(PARAMETERS)
    return deployed


@pytest.fixture(scope="session")
def key(stack: DeployedStack) -> str:
    """A key of a tenant, made by the command line."""
    return stack.new_key("acme")


@pytest.fixture
def api(stack: DeployedStack, key: str) -> Iterator[httpx.Client]:
    """HTTP with that key. The address is read anew: the emulator changes it with the stack."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=stack.url, headers=headers, timeout=60) as client:
        yield client
