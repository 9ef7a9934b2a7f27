"""A deployed stack in the emulator: its outputs, its address, keys for it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3

from infra.deployed.sam import Sam, SamError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.deployed.emulator import Emulator

ALL_SCOPES = "read,write,admin"
READY_SECONDS = 60.0
HTTP_OK = 200


@dataclass(frozen=True)
class DeployedStack:
    """One stack, made by the SAM CLI in an emulator."""

    emulator: Emulator
    sam: Sam
    name: str = "turnfold"

    def deploy(self, parameters: Mapping[str, str] | None = None) -> None:
        """Create or update the stack with what was built last, and wait until it answers.

        Vectors are in the bucket: the emulator's CloudFormation makes no vector index.
        """
        given = {
            "EndpointUrl": self.emulator.endpoint,
            "VectorIndex": "false",
            **(parameters or {}),
        }
        self.sam.deploy(self.name, self.emulator.credentials, given)
        self._wait_for_health()

    def delete(self) -> None:
        """Delete the stack, but not what it keeps. `sam delete` knows only AWS's own addresses."""
        formation = self.client("cloudformation")
        formation.delete_stack(StackName=self.name)
        formation.get_waiter("stack_delete_complete").wait(
            StackName=self.name, WaiterConfig={"Delay": 1, "MaxAttempts": 120}
        )

    def client(self, service: str) -> Any:
        """A client with the rights of the account's owner."""
        variables = self.emulator.credentials
        make_client: Any = boto3.client  # typed for services that are named in the source only
        return make_client(
            service,
            endpoint_url=variables["AWS_ENDPOINT_URL"],
            aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
            region_name=variables["AWS_DEFAULT_REGION"],
        )

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs of the stack."""
        found = self.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"][0]
        return {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", [])}

    @property
    def url(self) -> str:
        """Where the API answers here: the emulator has no names for it, as AWS has."""
        found = re.fullmatch(r"https://(\w+)\.execute-api\.[^/]+/([\w-]+)", self.outputs["ApiUrl"])
        if not found:
            raise SamError(f"not the address of a REST API: {self.outputs['ApiUrl']}")
        return f"{self.emulator.endpoint}/_aws/execute-api/{found[1]}/{found[2]}"

    def new_key(self, tenant: str, scopes: str = ALL_SCOPES) -> str:
        """A new API key, made as an operator makes it."""
        said: dict[str, Any] = json.loads(
            self.turnfold("keys", "create", "--tenant", tenant, "--scopes", scopes, "--json")
        )
        key: str = said["key"]
        return key

    def turnfold(self, *arguments: str) -> str:
        """What the command line prints to standard output."""
        done = subprocess.run(
            [sys.executable, "-m", "turnfold.cli", *arguments, "--stack", self.name],
            env={**os.environ, **self.emulator.credentials},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SamError(f"turnfold {' '.join(arguments)}: {done.stderr[-2000:]}")
        return done.stdout.strip()

    def _wait_for_health(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        answer = "nothing"
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/healthz", timeout=30) as response:  # noqa: S310 - loopback
                    if response.status == HTTP_OK:
                        return
            except urllib.error.HTTPError as error:
                answer = f"{error.code}: {error.read(300)!r}"
            except OSError as error:
                answer = str(error)
            time.sleep(0.5)
        raise SamError(f"GET /healthz does not succeed; the last answer was {answer}")
