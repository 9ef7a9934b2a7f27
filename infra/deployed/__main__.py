"""`make deploy-local`: the deployed form on this machine, until it is told to stop."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from infra.deployed.emulator import Emulator, EmulatorError
from infra.deployed.sam import Sam, SamError
from infra.deployed.stack import DeployedStack
from infra.local.settings import REPOSITORY

PORT = 4566


class Stopped(Exception):  # noqa: N818 - not an error
    """Told to stop."""


def main() -> int:
    """Deploy what `make build` built, print address and keys, and wait."""
    parser = argparse.ArgumentParser(description="the deployed form on this machine")
    parser.add_argument("--port", type=int, default=PORT, help="of the emulator (%(default)s)")
    parser.add_argument("--keys", type=int, default=1, help="tenants that get a key (%(default)s)")
    parser.add_argument("--model", metavar="URL", help="an OpenAI-compatible endpoint to use")
    parser.add_argument("parameters", nargs="*", metavar="NAME=VALUE", help="of the template")
    asked = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        with tempfile.TemporaryDirectory(prefix="turnfold-") as folder:
            _run(asked, Path(folder))
    except Stopped:
        return 0
    except (EmulatorError, SamError) as error:
        print(f"Turnfold: {error}", file=sys.stderr)
        return 1
    return 0


def model_parameters(stack: DeployedStack, url: str) -> dict[str, str]:
    """What tells a stack of its model; the key is `OPENAI_API_KEY`, kept in a secret as on AWS."""
    secret = stack.client("secretsmanager").create_secret(
        Name="model-key", SecretString=os.environ.get("OPENAI_API_KEY") or "none"
    )
    return {"ModelBaseUrl": url, "ModelSecretArn": secret["ARN"]}


def _stop(_number: int, _frame: object) -> None:
    raise Stopped


def _run(asked: argparse.Namespace, folder: Path) -> None:
    with Emulator(folder, asked.port) as emulator:
        print(f"MiniStack is at {emulator.endpoint}; deploying", file=sys.stderr)
        started = time.monotonic()
        stack = DeployedStack(emulator, Sam(REPOSITORY))
        parameters = dict(one.split("=", 1) for one in asked.parameters)
        if asked.model:
            parameters |= model_parameters(stack, asked.model)
        stack.deploy(parameters)
        print(f"deployed in {time.monotonic() - started:.0f} s", file=sys.stderr)
        for number in range(1, asked.keys + 1):
            print(f"key {number}: {stack.new_key(f'local-{number}')}", flush=True)
        print(f"Turnfold is ready at {stack.url}", flush=True)
        while True:
            signal.pause()


if __name__ == "__main__":
    sys.exit(main())
