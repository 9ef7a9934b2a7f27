"""The real SAM CLI: builds a checkout, and deploys what it built."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.local.settings import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SAM = ".venv-sam/bin/sam"
SECONDS = 600


class SamError(Exception):
    """A step failed; the text ends with what was printed last."""


@dataclass(frozen=True)
class Sam:
    """The SAM CLI in one checkout, which may be a copy of this one's sources."""

    checkout: Path

    @property
    def built(self) -> Path:
        """Where `build` leaves everything."""
        return self.checkout / ".aws-sam" / "build"

    def build(self, parameters: Mapping[str, str] | None = None) -> str:
        """`make build`, without making environments; the digest of the release."""
        python = _output([REPOSITORY / "infra" / "find_python.sh", "3.13"], self.checkout, {})
        folder = os.path.dirname(python)  # noqa: PTH120 - text, for PATH
        self._run(["build", "--cached", "--parallel"], {"PATH": f"{folder}:{os.environ['PATH']}"})
        script = self.checkout / "infra" / "release_digest.py"
        stamp: list[str | Path] = [sys.executable, script, "--stamp", self.built / "template.yaml"]
        return _output([*stamp, *_pairs(parameters or {})], self.checkout, {})

    def deploy(
        self, stack: str, credentials: Mapping[str, str], parameters: Mapping[str, str]
    ) -> None:
        """Deploy what was built."""
        self._run(
            [
                "deploy",
                *("--stack-name", stack),
                "--resolve-s3",
                *("--capabilities", "CAPABILITY_IAM"),
                "--no-confirm-changeset",
                "--no-progressbar",
                *("--parameter-overrides", *_pairs(parameters)),
            ],
            credentials,
        )

    def _run(self, arguments: Sequence[str], variables: Mapping[str, str]) -> None:
        sam = REPOSITORY / os.environ.get("TURNFOLD_SAM", SAM)
        _output([sam, *arguments], self.checkout, variables)


def _pairs(parameters: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in parameters.items()]


def _output(command: Sequence[str | Path], folder: Path, variables: Mapping[str, str]) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**kept, "SAM_CLI_TELEMETRY": "0", **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    except OSError as error:
        raise SamError(f"{command[0]} cannot be run ({error}): run `make venv-sam`") from error
    if done.returncode:
        named = " ".join(map(str, command))
        raise SamError(f"{named} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout.strip()
